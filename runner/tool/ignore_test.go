package tool

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

func TestIgnoredFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	for _, path := range []string{".git/config", "sub/.git/HEAD", "a.log", "keep.log", "sub/b.log", "sub/deep/c.log", "build/out.txt",
		"sub/build/out.txt", "src/main.go", "src/gen/x.go", "docs/gen/x.go"} {
		h.put(t, path, "needle\n")
	}
	h.put(t, ".gitignore", "# comment\n*.log\n!keep.log\n/build/\nsrc/gen\n")
	h.put(t, "sub/.gitignore", "!b.log\n")
	const note = "[left out: .git and what .gitignore names; give one as path to see it]\n"
	is.Equal(h.text(t, "list_files", object{"glob": "*.{log,txt,go}"}),
		"docs/gen/x.go\t7\nkeep.log\t7\nsrc/main.go\t7\nsub/b.log\t7\nsub/build/out.txt\t7\n"+note)
	is.Equal(h.text(t, "list_files", object{"path": "build"}), "build/out.txt\t7\n")  // the call contains the path
	is.Equal(h.text(t, "list_files", object{"path": ".git"}), ".git/config\t7\n")     // the call contains the path
	is.Equal(h.text(t, "list_files", object{"path": "src"}), "src/main.go\t7\n"+note) // the rules of parent folders apply
	is.Equal(h.text(t, "search_files", object{"pattern": "needle", "path": "src"}), "src/main.go\n1:needle\n[1 matches in 1 of 1 text files]\n"+note)
	is.Equal(h.text(t, "list_files", object{"path": "a.log"}), "a.log\t7\n")
}

// TestIgnoreAsGit compares the rules with those of git, on random rules and trees.
func TestIgnoreAsGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	for round := range rounds(300, 8) {
		compareWithGit(t, git, rand.New(rand.NewPCG(7, uint64(round))))
	}
}

// compareWithGit creates a tree of random names and rules, and compares the files that git and
// walkFiles list.
func compareWithGit(t *testing.T, git string, r *rand.Rand) {
	t.Helper()
	h := newTurn(t, workspace.Limits{})
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	name := func() string { return pick("a", "b", "c", "ab", "abc", "a.b", "#x", "!y", "x y", "b.log", "[z]") }
	for range 12 {
		p := name()
		for range r.IntN(4) {
			p += "/" + name()
		}
		if os.MkdirAll(filepath.Join(h.dir, filepath.Dir(p)), 0o755) == nil {
			_ = os.WriteFile(filepath.Join(h.dir, p), nil, 0o600) // fails if a folder has the name
		}
	}
	piece := func() string {
		return pick("a", "b", "c", "ab", "*", "?", "**", "***", "[ab]", "[!a]", "[^a]", "[a-c]", "[c-a]", "[[:alpha:]]", "[]x]", `\#`, `\!`, `\a`,
			"*.b", "a*b", "*b*", ".", "#x", "!y", "x y", "[z]", `\[z\]`, "[", `[\]z]`, "{a,b}", "[a/]", "[+-9]", "b.log ", `a\ `)
	}
	rule := func() string {
		text := pick("", "", "", "!", "/", "!/", "**/", " ")
		for i := range 1 + r.IntN(3) {
			next := piece()
			// Contrary to their manual, some versions of git match folders with ** within a
			// name.
			if i > 0 && (strings.HasSuffix(text, "*") || strings.HasPrefix(next, "*")) {
				text += pick("/", "/**/")
			} else if i > 0 {
				text += pick("/", "/", "", "/**/")
			}
			text += next
		}
		return text + pick("", "", "", "/", "/**", "/*", " ", "\r", `\`)
	}
	_ = filepath.WalkDir(h.dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && r.IntN(3) == 0 {
			var rules strings.Builder
			for range 1 + r.IntN(4) {
				rules.WriteString(rule() + "\n")
			}
			err = os.WriteFile(filepath.Join(p, ".gitignore"), []byte(rules.String()), 0o600)
		}
		return err
	})
	want := untracked(t, git, h.dir)
	var got []string
	_, err := walkFiles(t.Context(), h.ws, ".", func(e workspace.Entry) error {
		if !e.Mode.IsDir() {
			got = append(got, e.Path)
		}
		return nil
	})
	is.New(t).NoErr(err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("git shows %q, walkFiles %q, with the rules\n%s", want, got, allRules(h.dir))
	}
}

// untracked returns the files that git does not ignore.
func untracked(t *testing.T, git, dir string) []string {
	t.Helper()
	run := func(args ...string) []byte {
		cmd := exec.Command(git, append([]string{"-c", "core.excludesFile=", "-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %s: %v", args, err)
		}
		return out
	}
	run("init", "-q")
	out := run("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
	list := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(list)
	return list
}

func allRules(dir string) string {
	var b bytes.Buffer
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if filepath.Base(p) == ".gitignore" {
			data, _ := os.ReadFile(p) // the walk has just found it
			fmt.Fprintf(&b, "%s: %q\n", p[len(dir):], data)
		}
		return err
	})
	return b.String()
}

// FuzzGlob checks that each pattern compiles or is rejected, and that a plain name matches
// itself.
func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"**/*.go", "{a,b{c,d}}", "[!a-z]", `\`, "[[:alpha:]x", "a**b", "***", "[a/b]", "{", "}", "[\xff-a]"} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		re, err := compileGlob(pattern, true)
		if err == nil {
			re.MatchString(path)
		}
		if utf8.ValidString(pattern) && !strings.ContainsAny(pattern, `*?[]{}\`) && (err != nil || !re.MatchString(pattern)) {
			t.Errorf("%q does not match itself: %v", pattern, err)
		}
		parseIgnore(pattern)
	})
}

// TestGlobs checks patterns whose translation is not obvious.
func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{`[a\-z]`, "-", true},
		{`[a\-z]`, "m", false}, // not a range
		{`[!-a]`, "-", false},
		{`[!-a]`, "b", true},
		{`{**/*.go,**/*.md}`, "a.md", true},
		{`{**/*.go,**/*.md}`, "a/b/c.md", true},
		{`x{a,**}`, "xb/c", false}, // ** within a name matches characters of that name
	} {
		is := is.New(t)
		re, err := compileGlob(tt.pattern, true)
		is.NoErr(err)
		if re.MatchString(tt.path) != tt.want {
			t.Errorf("%s matches %s: %v, want %v", tt.pattern, tt.path, !tt.want, tt.want)
		}
	}
}

// TestIgnoreInALargeFolder walks many files below ordinary rules. When the work of a walk is used up, plain rules apply
// all the same.
func TestIgnoreInALargeFolder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "**/dir%d/*.gen\n", i)
	}
	text.WriteString("node_modules/\n*.log\n")
	g := &ignorer{folders: []ignoreRules{{".", parseIgnore(text.String())}}}
	for i := range 10_000 {
		is.True(!g.ignored(workspace.Entry{Path: fmt.Sprintf("services/backend/internal/module/file_%06d_test.go", i)}))
	}
	modules := workspace.Entry{Path: "web/node_modules", Mode: fs.ModeDir}
	is.True(g.ignored(modules))
	g.work = maxIgnoreWork
	is.True(!g.ignored(workspace.Entry{Path: "a/dir1/x.gen"}))
	is.True(g.ignored(modules))
	is.True(g.ignored(workspace.Entry{Path: "a/x.log"}))
}
