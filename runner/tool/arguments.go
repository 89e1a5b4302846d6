package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"journeyman/runner/sandbox"
)

// arguments are those of one call. Each is taken by its name, with its type and
// limits; what is wrong with them is gathered, so that the model hears everything
// at once. Types are strict, null is as good as absent, unknown names are ignored.
type arguments struct {
	fields   map[string]json.RawMessage
	within   string    // what leads to the fields, such as "items[2].", in messages
	problems *[]string // shared with the arguments within these
}

// parse reads the arguments of a call, which may be left out altogether.
func parse(input json.RawMessage) *arguments {
	a := &arguments{problems: new([]string)}
	input = bytes.TrimSpace(input)
	if len(input) == 0 || string(input) == "null" {
		return a
	}
	if err := json.Unmarshal(input, &a.fields); err != nil {
		a.wrong("the arguments must be a JSON object")
	}
	return a
}

// err is an *Error that tells everything found wrong so far, or nil.
func (a *arguments) err() error {
	if len(*a.problems) == 0 {
		return nil
	}
	return Errorf("%s", strings.Join(*a.problems, "; "))
}

func (a *arguments) wrong(format string, args ...any) {
	*a.problems = append(*a.problems, fmt.Sprintf(format, args...))
}

// has says whether name is there. If it is required and is not, that is wrong.
func (a *arguments) has(name string, required bool) bool {
	if raw, ok := a.fields[name]; ok && string(raw) != "null" {
		return true
	}
	if required {
		a.wrong("%s%s is required", a.within, name)
	}
	return false
}

// read decodes name into v, whose type the words in want describe.
func (a *arguments) read(name string, v any, want string) bool {
	if json.Unmarshal(a.fields[name], v) == nil {
		return true
	}
	a.wrong("%s%s must be %s, not %s", a.within, name, want, kindOf(a.fields[name]))
	return false
}

// text takes a string of at most most characters, "" if it is absent.
func (a *arguments) text(name string, required bool, most int) string {
	var s string
	if !a.has(name, required) || !a.read(name, &s, "a string") {
		return ""
	}
	if n := utf8.RuneCountInString(s); n > most {
		a.wrong("%s%s can have %d characters and has %d", a.within, name, most, n)
	}
	return s
}

// path takes the path of a file, which is required.
func (a *arguments) path() string {
	var p string
	if a.has("path", true) && a.read("path", &p, "a string") {
		a.checkPath(p)
	}
	return p
}

// folder takes the path of a file or folder, the whole workspace if it is absent
// or empty.
func (a *arguments) folder() string {
	p := a.text("path", false, math.MaxInt)
	if p == "" {
		return "."
	}
	a.checkPath(p)
	return p
}

func (a *arguments) checkPath(p string) {
	if _, err := sandbox.SafePath(p); err != nil {
		a.wrong("%spath: %s", a.within, err)
	}
}

// number takes a whole number of at least least, or def if it is absent.
func (a *arguments) number(name string, def, least int) int {
	var f float64
	if !a.has(name, false) || !a.read(name, &f, "a whole number") {
		return def
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		a.wrong("%s%s must be a whole number", a.within, name)
		return def
	}
	if f < float64(least) {
		a.wrong("%s%s must be at least %d", a.within, name, least)
	}
	return int(f)
}

// boolean takes true or false, false if it is absent.
func (a *arguments) boolean(name string) bool {
	var b bool
	if a.has(name, false) {
		a.read(name, &b, "true or false")
	}
	return b
}

// objects takes a list of at most most objects, which is required.
func (a *arguments) objects(name string, most int) []*arguments {
	var list []json.RawMessage
	if !a.has(name, true) || !a.read(name, &list, "a list") {
		return nil
	}
	if len(list) > most {
		a.wrong("%s%s can have %d entries and has %d", a.within, name, most, len(list))
		return nil
	}
	var objects []*arguments
	for i, raw := range list {
		within := fmt.Sprintf("%s%s[%d]", a.within, name, i)
		object := &arguments{within: within + ".", problems: a.problems}
		if json.Unmarshal(raw, &object.fields) != nil || object.fields == nil {
			a.wrong("%s must be an object, not %s", within, kindOf(raw))
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

// kindOf names the type of a JSON value.
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

// told makes an *Error of what the workspace refused, and leaves other errors as
// they are: they are not the model's doing.
func told(err error) error {
	var refused *sandbox.Error
	if !errors.As(err, &refused) {
		return err
	}
	if refused.Kind == sandbox.Invalid {
		return Errorf("path: %s", refused.Message)
	}
	return &Error{Message: refused.Message}
}

// result is v as JSON, with "<", ">" and "&" left as they are: escaped, they would
// cost a model tokens and clarity.
func result(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
