package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store"
	"journeyman/store/db"
)

// maxJSON bounds a JSON body, in bytes.
const maxJSON = 1 << 20

// A Body is a JSON object that a client sent, or a form with the same fields. Its methods read
// fields and add an entry to Invalid for each invalid one. check reports the fields that no method
// has read.
type Body struct {
	fields  map[string]json.RawMessage
	form    bool         // every value is a string
	files   []store.File // attached to a form, not yet in a workspace
	known   []string     // names that were read
	ignored []string     // paths of nested fields that no method has read
	Invalid db.Fields    // one entry for each field that breaks a rule
}

// readBody reads a JSON object.
func readBody(w http.ResponseWriter, r *request) (*Body, error) {
	raw, done, err := readJSON(w, r, "a JSON body", maxJSON)
	if err != nil {
		return nil, err
	}
	defer done()
	return ParseBody(raw)
}

// readJSON reads a body as readAll does, and refuses a Content-Type that is not JSON.
func readJSON(w http.ResponseWriter, r *request, what string, limit int64) (raw []byte, done func(), err error) {
	if err := wantJSON(r.Request); err != nil {
		return nil, nil, err
	}
	return readAll(w, r, what, limit)
}

// ParseBody reads a JSON object. It returns an Invalid error for any other value.
func ParseBody(raw []byte) (*Body, error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff")) // RFC 8259 lets a parser ignore a byte order mark
	if !utf8.Valid(raw) {                         // encoding/json would replace the wrong bytes silently
		return nil, db.Errorf(db.Invalid, "the body is not valid UTF-8")
	}
	b := &Body{}
	if err := json.Unmarshal(raw, &b.fields); err != nil {
		var syntax *json.SyntaxError
		switch {
		case len(bytes.TrimSpace(raw)) == 0:
			return nil, db.Errorf(db.Invalid, "the body is empty: send a JSON object")
		case errors.As(err, &syntax):
			return nil, db.Errorf(db.Invalid, "the body is not valid JSON: %s at byte %d",
				syntax.Error(), syntax.Offset)
		}
		return nil, db.Errorf(db.Invalid, "the body must be a JSON object")
	}
	if b.fields == nil { // null is no error for encoding/json
		return nil, db.Errorf(db.Invalid, "the body must be a JSON object")
	}
	return b, nil
}

// check returns an error that names all invalid fields. Call it after every field was read: the
// remaining fields may be misspelt, so a header names them. They are errors for a client that asks
// for strict handling (RFC 7240, section 4.4).
func (b *Body) check(w http.ResponseWriter, r *request) error {
	ignored := b.unread()
	if len(ignored) > 0 {
		w.Header().Set("X-Ignored-Fields", listOfFields(ignored))
	}
	if prefer(r.Request).strict {
		for _, name := range ignored {
			b.refuseField(name)
		}
	}
	return b.Invalid.Err()
}

// refuseField notes a field that the request does not have, and the name that may be meant.
func (b *Body) refuseField(name string) {
	message := "is not a field of this request"
	if near := Nearest(name, b.known); near != "" {
		message += `: did you mean "` + near + `"?`
	}
	b.Invalid.Add(db.FirstRunes(name, maxIgnoredName), "%s", message)
}

// unread lists the fields of the body that no method has read, sorted.
func (b *Body) unread() []string {
	names := slices.Clone(b.ignored)
	for name := range b.fields {
		if !slices.Contains(b.known, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// field returns a field of the body, and notes that there is such a field.
func (b *Body) field(name string) (json.RawMessage, bool) {
	if !slices.Contains(b.known, name) { // some fields are read twice
		b.known = append(b.known, name)
	}
	raw, sent := b.fields[name]
	return raw, sent
}

// has reports whether a field is there and not null.
func (b *Body) has(name string) bool {
	raw, ok := b.field(name)
	return ok && string(raw) != "null"
}

// text reads a string, or nil if it is absent or null.
func (b *Body) text(name string) *string {
	if !b.has(name) {
		return nil
	}
	var v string
	if json.Unmarshal(b.fields[name], &v) != nil {
		b.Invalid.Add(name, "must be a string")
		return nil
	}
	return &v
}

// Text reads a string, or "" if it is absent or null.
func (b *Body) Text(name string) string {
	if v := b.text(name); v != nil {
		return *v
	}
	return ""
}

// Integer reads a whole number in a range. sent is false if it is absent or null.
func (b *Body) Integer(name string, least, most int) (n int, sent bool) {
	if !b.has(name) {
		return 0, false
	}
	if json.Unmarshal(b.fields[name], &n) != nil || n < least || n > most {
		b.Invalid.Add(name, "must be an integer from %d to %d", least, most)
	}
	return n, true
}

// json returns the JSON of a field that is not a string. In a form, the string holds the JSON.
func (b *Body) json(name string) json.RawMessage {
	raw, _ := b.field(name)
	var text string
	if b.form && json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw
}

// names reads an array of strings, or nil if it is absent or null.
func (b *Body) names(name string) *[]string {
	if !b.has(name) {
		return nil
	}
	var v []*string // pointers, because a null in the array is an error
	if json.Unmarshal(b.json(name), &v) != nil || slices.Contains(v, nil) {
		b.Invalid.Add(name, "must be an array of strings")
		return nil
	}
	names := make([]string, len(v))
	for i, s := range v {
		names[i] = *s
	}
	return &names
}

// Instruction reads the required field input.
func (b *Body) Instruction() string {
	v := b.text("input")
	switch {
	case !b.has("input"):
		b.Invalid.Add("input", "is required")
	case v == nil: // text has noted its wrong type
	case strings.TrimSpace(*v) == "":
		b.Invalid.Add("input", "must not be empty")
	default:
		return *v
	}
	return ""
}

// flag reads a boolean, or false if it is absent or null.
func (b *Body) flag(name string) bool {
	var v bool
	if b.has(name) && json.Unmarshal(b.json(name), &v) != nil {
		b.Invalid.Add(name, "must be true or false")
	}
	return v
}

// Budget reads the field budget, or BudgetStandard if it is absent or null.
func (b *Body) Budget() store.Budget {
	v := b.text("budget")
	if v == nil {
		return store.BudgetStandard
	}
	b.Invalid.Check(store.Budget(*v).Valid(), "budget", "must be low, standard, high or unlimited")
	return store.Budget(*v)
}

// idempotencyKey returns the key that a request with this body shares with its repetitions.
func (b *Body) idempotencyKey(r *request) (db.IdempotencyKey, error) {
	content, err := b.Canonical()
	if err != nil {
		return db.IdempotencyKey{}, err
	}
	return idempotencyKey(r, content)
}

// checkedKey calls check and, if all fields are valid, idempotencyKey.
func (b *Body) checkedKey(w http.ResponseWriter, r *request) (key db.IdempotencyKey, err error) {
	if err := b.check(w, r); err != nil {
		return key, err
	}
	return b.idempotencyKey(r)
}

// Canonical returns the same bytes for bodies that mean the same: the object with its
// keys in order and without spaces, and the names and contents of the files.
func (b *Body) Canonical() ([]byte, error) {
	raw, err := json.Marshal(b.fields)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	// Decoding and encoding sorts the keys at every depth.
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // 1.0 and 1 stay different
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode body: %w", err)
	}
	if raw, err = json.Marshal(v); err != nil || !b.form {
		return raw, err
	}
	h := sha256.New() // of the files in order; %q keeps a title from imitating another entry
	for _, f := range b.files {
		fmt.Fprintf(h, "%q %s\n", f.Title, f.SHA256)
	}
	return h.Sum(raw), nil
}
