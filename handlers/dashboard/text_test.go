package dashboard

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/types"
	"html"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/tools/go/packages"

	"journeyman/handlers/dashboard/text"
)

// TestCatalogues finds translations that no page uses, and texts of the pages without a translation.
func TestCatalogues(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	used := usedKeys(t)
	is.True(used["Saved."])                  // en.json is read
	is.True(used["Bounced"])                 // a table in Go is read
	is.True(used["Sign in"])                 // a template is read
	is.True(!used["nothing uses this text"]) // the search finds no other strings
	for _, l := range text.Languages()[1:] {
		keys := l.Keys()
		for _, key := range keys {
			if !used[key] {
				t.Errorf("%s.json translates %q, which nobody uses", l.Code, key)
			}
			if translated := l.T(text.Key(key)); !slices.Equal(verbs(translated), verbs(key)) {
				t.Errorf("%s.json: %q has other verbs than %q", l.Code, translated, key)
			}
		}
		for key := range used {
			if !slices.Contains(keys, key) {
				t.Errorf("%s.json does not translate %q", l.Code, key)
			}
		}
	}
}

// verbs returns the verbs of a pattern, in the order of their values.
func verbs(pattern string) []string {
	list := regexp.MustCompile(`%(\[\d\])?[sdqv]`).FindAllString(pattern, -1)
	// Verbs with the index of their value may have any order.
	if strings.Contains(pattern, "%[") {
		slices.Sort(list)
	}
	return list
}

// usedKeys returns all keys of templates, of Go files and of en.json.
func usedKeys(t *testing.T) map[string]bool {
	used := map[string]bool{}
	for _, file := range glob(t, "templates/*.html") {
		source, err := embedded.ReadFile(file)
		is.New(t).NoErr(err)
		templateKeys(string(source), used)
	}
	goKeys(t, used)
	for _, group := range labels(t) {
		for _, label := range group {
			used[label] = true
		}
	}
	return used
}

// labels returns en.json.
func labels(t *testing.T) (groups map[string]map[string]string) {
	source, err := os.ReadFile("text/en.json")
	is.New(t).NoErr(err)
	is.New(t).NoErr(json.Unmarshal(source, &groups))
	return groups
}

// TestLabelGroups compares the groups of en.json with those that the code names. A group that is missing
// would leave its places on the pages empty.
func TestLabelGroups(t *testing.T) {
	t.Parallel()
	var named []string
	for _, file := range slices.Concat(glob(t, "*.go"), glob(t, "*/*.go")) {
		source, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		for _, m := range regexp.MustCompile(`\bLabel\("([^"]*)"`).FindAllStringSubmatch(string(source), -1) {
			named = append(named, m[1])
		}
	}
	for _, file := range glob(t, "templates/*.html") {
		source, err := embedded.ReadFile(file)
		is.New(t).NoErr(err)
		for _, m := range regexp.MustCompile(`\blabel "([^"]*)"`).FindAllStringSubmatch(string(source), -1) {
			named = append(named, m[1])
		}
	}
	slices.Sort(named)
	is.New(t).Equal(slices.Compact(named), slices.Sorted(maps.Keys(labels(t))))
}

func glob(t *testing.T, pattern string) []string {
	if strings.HasPrefix(pattern, "templates") {
		files, err := fs.Glob(embedded, pattern)
		is.New(t).NoErr(err)
		return files
	}
	files, err := filepath.Glob(pattern)
	is.New(t).NoErr(err)
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// templateKeys adds the keys of a template: the strings after t, th and tn. t and th take one key, tn takes
// two after the number.
func templateKeys(source string, used map[string]bool) {
	text := "(\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)"
	call := regexp.MustCompile(`\b(?:th? ` + text + `|tn (?:\([^()]*\)|[^" ]+) ` + text + ` ` + text + `)`)
	for _, action := range actions.FindAllString(source, -1) {
		for _, m := range call.FindAllStringSubmatch(action, -1) {
			for _, quoted := range m[1:] {
				if key, err := strconv.Unquote(quoted); err == nil {
					used[key] = true
				}
			}
		}
	}
}

// goKeys adds the keys of the Go files, here and in the packages below: all constants of the type text.Key.
func goKeys(t *testing.T, used map[string]bool) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, "./...")
	is.New(t).NoErr(err)
	const texts = "journeyman/handlers/dashboard/text"
	at := slices.IndexFunc(loaded, func(p *packages.Package) bool { return p.PkgPath == texts })
	key := loaded[at].Types.Scope().Lookup("Key").Type()
	for _, p := range loaded {
		is.New(t).Equal(p.Errors, nil) // keys would be missing
		keysOf(p.TypesInfo, key, used) // also where nothing imports the package of the texts
	}
	delete(used, "") // used for no text
}

// keysOf adds the constants of the type key.
func keysOf(info *types.Info, key types.Type, used map[string]bool) {
	parts := map[ast.Expr]bool{} // parts of a sum of constants: the sum is the key
	for e := range info.Types {
		if sum, ok := e.(*ast.BinaryExpr); ok {
			parts[sum.X], parts[sum.Y] = true, true
		}
	}
	for e, tv := range info.Types {
		if tv.Value != nil && types.Identical(tv.Type, key) && !parts[e] {
			used[constant.StringVal(tv.Value)] = true
		}
	}
}

// TestTemplatesAreTranslated finds words in templates without t, between elements and in attributes
// for people.
func TestTemplatesAreTranslated(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(literalWords(`<p title="Some {{t "x"}}">{{t "Known"}} <b>words</b> <code>GET /x</code></p><script>let x</script>`),
		[]string{"Some", "words"})
	is.Equal(literalWords(`{{define "title"}}x{{end}}<a{{if .A}} title="{{t "a > b"}}"{{end}} data-confirm="Sure?">{{.B}}</a>`),
		[]string{"Sure?"})
	for _, file := range glob(t, "templates/*.html") {
		source, err := embedded.ReadFile(file)
		is.New(t).NoErr(err)
		for _, words := range literalWords(string(source)) {
			if !untranslated(words) {
				t.Errorf("%s: %q does not go through t", file, words)
			}
		}
	}
}

// untranslated reports whether words are the same in all languages: names and keys.
func untranslated(words string) bool {
	return slices.Contains([]string{"Journeyman", "( + ) · Journeyman", "Ctrl", "Ctrl ↵", "Ctrl S", "Esc", "ID", "PROVIDER:MODEL",
		// the value of an attribute, in its own template
		"bare task waits", `aria-describedby="h- e- " aria-describedby="e- " aria-invalid="true"`}, words)
}

// literalWords returns the texts of a template that hold words, without actions, code, scripts and
// styles.
func literalWords(source string) (found []string) {
	source = actions.ReplaceAllStringFunc(source, func(a string) string {
		if strings.Contains(a, "/*") {
			return ""
		}
		return " "
	})
	source = regexp.MustCompile(`(?s)<(pre|code|script|style)\b[^>]*>.*?</(pre|code|script|style)>|<!--.*?-->`).
		ReplaceAllString(source, "<br>")
	note := func(words string) {
		words = strings.Join(strings.Fields(html.UnescapeString(words)), " ")
		if regexp.MustCompile(`\pL{2}`).MatchString(words) {
			found = append(found, words)
		}
	}
	element := regexp.MustCompile(`(?s)<[a-zA-Z/!](?:"[^"]*"|[^">])*>`)
	attribute := regexp.MustCompile(`\s(aria-label|aria-description|title|placeholder|alt|label|data-[a-z-]+)="([^"]*)"`)
	for _, tag := range element.FindAllString(source, -1) {
		for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
			// A data attribute holds a name or an address for scripts, or a text. Names have no
			// spaces, except in data-live.
			if m[1] == "data-confirm" || m[1] == "data-label" || !strings.HasPrefix(m[1], "data-") ||
				m[1] != "data-live" && strings.Contains(strings.TrimSpace(m[2]), " ") {
				note(m[2])
			}
		}
	}
	for _, words := range element.Split(source, -1) {
		note(words)
	}
	return found
}

// actions matches an action of a template. Its strings may hold braces.
var actions = regexp.MustCompile("(?s)\\{\\{(?:\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`|[^}\"`]|\\}[^}])*\\}\\}")
