package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

// arguments are the arguments of one call. Methods parse one argument by its name and check its
// type and limits. They collect all problems, so that the model can correct all of them in its
// next call. Types are strict, null means absent, and unknown names are ignored.
type arguments struct {
	fields   map[string]json.RawMessage
	within   string    // path of fields in messages, such as "items[2]."
	problems *[]string // shared with the arguments of nested objects
}

// objectSchema returns the JSON Schema of an object with these properties, which are lines of
// JSON. required are the names of the required properties.
func objectSchema(properties string, required ...string) json.RawMessage {
	var needed string
	if len(required) > 0 {
		needed = fmt.Sprintf("  \"required\": [\"%s\"],\n", strings.Join(required, `", "`))
	}
	return fmt.Appendf(nil, "{\n  \"type\": \"object\",\n  \"properties\": {%s\n  },\n%s"+
		"  \"additionalProperties\": false\n}", properties, needed)
}

// parse parses the arguments of a call. The input may be empty.
func parse(input json.RawMessage) *arguments {
	a := &arguments{problems: new([]string)}
	input = bytes.TrimSpace(input)
	// Some models send no arguments, or null, to a tool without required arguments.
	if len(input) == 0 || string(input) == "null" {
		return a
	}
	if err := json.Unmarshal(input, &a.fields); err != nil {
		a.wrong("the arguments must be a JSON object")
	}
	return a
}

// err returns an *Error with all problems so far, or nil.
func (a *arguments) err() error {
	if len(*a.problems) == 0 {
		return nil
	}
	return Errorf("%s", strings.Join(*a.problems, "; "))
}

// wrong adds a problem.
func (a *arguments) wrong(format string, args ...any) {
	*a.problems = append(*a.problems, fmt.Sprintf(format, args...))
}

// has reports whether an argument is present. It adds a problem if a required argument is
// missing.
func (a *arguments) has(name string, required bool) bool {
	if raw, ok := a.fields[name]; ok && string(raw) != "null" {
		return true
	}
	if required {
		a.wrong("%s%s is required", a.within, name)
	}
	return false
}

// read decodes an argument into v, and reports whether that succeeded. want describes the type
// of v for messages.
func (a *arguments) read(name string, v any, want string) bool {
	if json.Unmarshal(a.fields[name], v) == nil {
		return true
	}
	a.wrong("%s%s must be %s, not %s", a.within, name, want, kindOf(a.fields[name]))
	return false
}

// text returns a string of at most most characters. It returns "" for an absent argument.
func (a *arguments) text(name string, required bool, most int) string {
	var s string
	if !a.has(name, required) || !a.read(name, &s, "a string") {
		return ""
	}
	// maxLength of JSON Schema counts characters, not bytes, so this check counts characters,
	// too.
	if n := utf8.RuneCountInString(s); n > most {
		a.wrong("%s%s can have %d characters and has %d", a.within, name, most, n)
	}
	return s
}

// path returns the path of a file, which is required.
func (a *arguments) path() string {
	var p string
	if a.has("path", true) && a.read("path", &p, "a string") {
		return a.checkPath("path", p)
	}
	return p
}

// folder returns the path of a file or folder. It returns ".", the workspace, for an absent or
// empty path.
func (a *arguments) folder() string {
	p := a.text("path", false, math.MaxInt)
	if p == "" {
		return "."
	}
	return a.checkPath("path", p)
}

// optionalPath returns the path of a file. It returns "" for an absent argument, and the empty path is a problem.
func (a *arguments) optionalPath(name string) string {
	var p string
	if a.has(name, false) && a.read(name, &p, "a string") {
		return a.checkPath(name, p)
	}
	return p
}

// checkPath returns the path that the model means. Hidden characters may be escaped, as results show
// them: a path has no backslashes otherwise.
func (a *arguments) checkPath(name, p string) string {
	p = visible.Named(p)
	if _, err := workspace.SafePath(p); err != nil {
		a.wrong("%s%s: %s", a.within, name, err)
	}
	return p
}

// number returns a whole number of at least least. It returns def for an absent argument.
func (a *arguments) number(name string, def, least int) int {
	var f float64
	if !a.has(name, false) || !a.read(name, &f, "a whole number") {
		return def
	}
	// JSON has only one number type, so 3.0 is a whole number, too. Above 2^53, a float64
	// cannot represent every whole number.
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		a.wrong("%s%s must be a whole number", a.within, name)
		return def
	}
	if f < float64(least) {
		a.wrong("%s%s must be at least %d", a.within, name, least)
	}
	return int(f)
}

// texts returns a list of at most most strings, each of at most each characters. It returns nil
// for an absent argument.
func (a *arguments) texts(name string, most, each int) []string {
	list := a.strings(name, most)
	for i, s := range list {
		if n := utf8.RuneCountInString(s); n > each {
			a.wrong("%s%s[%d] can have %d characters and has %d", a.within, name, i, each, n)
		}
	}
	return list
}

// strings returns a list of at most most strings. It returns nil for an absent argument.
func (a *arguments) strings(name string, most int) []string {
	var list []string
	if !a.has(name, false) || !a.read(name, &list, "a list of strings") {
		return nil
	}
	if len(list) > most {
		a.wrong("%s%s can have %d entries and has %d", a.within, name, most, len(list))
		return nil
	}
	return list
}

// boolean returns true or false. It returns false for an absent argument.
func (a *arguments) boolean(name string) bool {
	var b bool
	if a.has(name, false) {
		a.read(name, &b, "true or false")
	}
	return b
}

// paths returns a list of at most most paths of files. It returns nil for an absent argument.
func (a *arguments) paths(name string, most int) []string {
	list := a.strings(name, most)
	for i, p := range list {
		list[i] = visible.Named(p)
		if _, err := workspace.SafePath(list[i]); err != nil {
			a.wrong("%s%s[%d]: %s", a.within, name, i, err)
		}
	}
	return list
}

// objects returns a list of at most most objects, which is required.
func (a *arguments) objects(name string, most int) []*arguments {
	var list []json.RawMessage
	if !a.has(name, true) || !a.read(name, &list, "a list") {
		return nil
	}
	// Checked before the entries: a very long list must not cause a very long error.
	if len(list) > most {
		a.wrong("%s%s can have %d entries and has %d", a.within, name, most, len(list))
		return nil
	}
	var objects []*arguments
	for i, raw := range list {
		within := fmt.Sprintf("%s%s[%d]", a.within, name, i)
		object := &arguments{within: within + ".", problems: a.problems}
		// encoding/json accepts null for a map, and leaves the map nil.
		if json.Unmarshal(raw, &object.fields) != nil || object.fields == nil {
			a.wrong("%s must be an object, not %s", within, kindOf(raw))
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

// textsByName returns an object of at most most strings. It returns nil for an absent argument.
func (a *arguments) textsByName(name string, most int) map[string]string {
	var values map[string]*string
	if !a.has(name, false) || !a.read(name, &values, "an object of strings") {
		return nil
	}
	texts := map[string]string{}
	for key, value := range values {
		if value == nil { // encoding/json accepts null for a string
			a.wrong("%s%s must be an object of strings: %q is null", a.within, name, key)
			return nil
		}
		texts[key] = *value
	}
	if len(texts) > most {
		a.wrong("%s%s can have %d entries", a.within, name, most)
	}
	return texts
}

// kindOf returns the name of a JSON value's type for messages. The first byte is enough,
// because raw is valid JSON without surrounding white space.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// explain converts a workspace error to an *Error if the model can act on it. It returns other
// errors unchanged.
func explain(err error) error { return explainFor("path", err) }

// explainFor is like explain for a path in the argument with that name.
func explainFor(name string, err error) error {
	refused, ok := errors.AsType[*workspace.Error](err)
	switch {
	case !ok:
		return err
	case refused.Kind == workspace.Invalid:
		return Errorf("%s: %s", name, refused.Message)
	}
	return &Error{Message: refused.Message}
}

// result encodes v as JSON. It does not escape "<", ">" and "&", because longer text costs more
// and models understand it less.
func result(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
