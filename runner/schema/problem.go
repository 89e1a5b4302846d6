package schema

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Limits of the error message for one value.
const (
	maxProblems = 10
	maxProblem  = 300 // characters of one problem
)

// problems returns the innermost problems of a validation, at most ten, each with its place.
func problems(ve *jsonschema.ValidationError) string {
	var list []string
	collect(ve, message.NewPrinter(language.English), &list)
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > maxProblems {
		list = append(list[:maxProblems], fmt.Sprintf("and %d more", len(list)-maxProblems))
	}
	return strings.Join(list, "; ")
}

func collect(ve *jsonschema.ValidationError, p *message.Printer, list *[]string) {
	if len(ve.Causes) == 0 {
		*list = append(*list, cut(pointer(join(ve.InstanceLocation))+": "+ve.ErrorKind.LocalizedString(p), maxProblem))
	}
	for _, cause := range ve.Causes {
		collect(cause, p, list)
	}
}

// compileProblem returns the place and the reason of a compiler error.
func compileProblem(err error, root map[string]any) string {
	var (
		invalid *jsonschema.SchemaValidationError
		ve      *jsonschema.ValidationError
		re      *jsonschema.InvalidRegexError
		load    *jsonschema.LoadURLError
		leaves  *leavesError
		nothing *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
	)
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &ve):
		return problems(ve)
	case errors.As(err, &re):
		return fmt.Sprintf("%s: %s is not a regular expression: %v", pointer(fragment(re.URL)),
			cut(quote(re.Regex), maxProblem), re.Err)
	case errors.As(err, &load) && errors.As(load.Err, &leaves):
		return atReference(root, leaves.url) + leaves.Error()
	case errors.As(err, &nothing):
		return missingTarget(root, nothing.URL)
	case errors.As(err, &anchor):
		return missingTarget(root, anchor.Reference)
	}
	// The address exists only inside this package, so it would confuse the schema's author.
	return cut(strings.ReplaceAll(err.Error(), address, ""), 2*maxProblem)
}

// missingTarget returns the problem of a reference to an address that does not exist.
func missingTarget(root map[string]any, to string) string {
	ref := cut(quote("#"+fragment(to)), maxProblem)
	return atReference(root, to) + fmt.Sprintf("the reference %s has no target", ref)
}

// atReference returns the place of the reference to that address, "" if it is not found.
func atReference(root map[string]any, to string) string {
	at, ok := findReference(root, "", to)
	if !ok {
		return ""
	}
	return pointer(at) + ": "
}

func findReference(v any, at, to string) (string, bool) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && leadsTo(ref, to) {
			return at + "/$ref", true
		}
		for _, name := range sortedKeys(v) {
			if found, ok := findReference(v[name], at+"/"+escape(name), to); ok {
				return found, true
			}
		}
	case []any:
		for i, item := range v {
			if found, ok := findReference(item, at+"/"+strconv.Itoa(i), to); ok {
				return found, true
			}
		}
	}
	return "", false
}

func leadsTo(ref, to string) bool {
	here, err := url.Parse(address)
	if err != nil {
		return false
	}
	target, err := here.Parse(ref)
	if err != nil {
		return ref == to
	}
	wanted, err := url.Parse(to)
	if err != nil {
		return false
	}
	// The compiler writes some targets with their fragment and others without it.
	without := *target
	without.Fragment, without.RawFragment = "", ""
	return target.String() == wanted.String() || without.String() == wanted.String() && !strings.Contains(to, "#")
}

// fragment returns the decoded fragment of an address.
func fragment(address string) string {
	_, f, _ := strings.Cut(address, "#")
	if decoded, err := url.PathUnescape(f); err == nil {
		return decoded
	}
	return f
}

// pointer returns a JSON pointer for users: "/" is the whole document.
func pointer(at string) string {
	if at == "" {
		return "/"
	}
	return at
}

func join(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("/" + escape(key))
	}
	return b.String()
}

func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

func unescape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
}

// child returns the property or item of v of that name.
func child(v any, key string) (any, bool) {
	switch at := v.(type) {
	case map[string]any:
		found, ok := at[key]
		return found, ok
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(at) {
			return at[i], true
		}
	}
	return nil, false
}

func quote(s string) string { return strconv.Quote(s) }

// cut returns the first n characters of text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n]) + "…"
}
