package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/store"
)

// maxJSON bounds a JSON body, in bytes.
const maxJSON = 1 << 20

// A body is a JSON object a client sent. Its methods read fields and note every
// invalid one in invalid; fields nobody reads are ignored.
type body struct {
	fields  map[string]json.RawMessage
	invalid store.Fields
}

// readBody reads a JSON object.
func readBody(w http.ResponseWriter, r *request) (*body, error) {
	if err := wantJSON(r.Request); err != nil {
		return nil, err
	}
	in := newPatientReader(w, r, maxJSON)
	raw, err := io.ReadAll(in)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, store.Errorf(store.TooLarge, "a JSON body has at most %d bytes", maxJSON)
	}
	if err != nil {
		return nil, store.Errorf(store.Invalid, "the body broke off")
	}
	return parseBody(raw)
}

// A patientReader reads a request's body. The client has request.readIn for each
// next piece, and a number of times that for the whole: an upload over a slow line
// takes long, a client that stands still must not hold the connection. At the end of
// the body the deadline is lifted, since it would end a long wait for a result; after
// a failure it stays, since net/http goes on reading to the end of the body.
type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	piece   time.Duration
	until   time.Time
}

// maxPieces bounds the whole time for a body, in times that for a piece.
const maxPieces = 60

func newPatientReader(w http.ResponseWriter, r *request, limit int64) *patientReader {
	return &patientReader{body: http.MaxBytesReader(w, r.Body, limit), control: http.NewResponseController(w), piece: r.readIn,
		until: time.Now().Add(maxPieces * r.readIn)}
}

// Read reads what the client sends in time.
func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(p.piece)
	if deadline.After(p.until) {
		deadline = p.until
	}
	_ = p.control.SetReadDeadline(deadline) // where it is not supported there is no slow client
	n, err := p.body.Read(b)
	if err == io.EOF {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func parseBody(raw []byte) (*body, error) {
	if !utf8.Valid(raw) {
		return nil, store.Errorf(store.Invalid, "the body is not valid UTF-8")
	}
	b := &body{}
	if err := json.Unmarshal(raw, &b.fields); err != nil {
		var syntax *json.SyntaxError
		switch {
		case len(bytes.TrimSpace(raw)) == 0:
			return nil, store.Errorf(store.Invalid, "the body is empty: send a JSON object")
		case errors.As(err, &syntax):
			return nil, store.Errorf(store.Invalid, "the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)
		}
		return nil, store.Errorf(store.Invalid, "the body must be a JSON object")
	}
	if b.fields == nil {
		return nil, store.Errorf(store.Invalid, "the body must be a JSON object")
	}
	return b, nil
}

func wantJSON(r *http.Request) error {
	value := r.Header.Get("Content-Type")
	if value == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(value)
	if err == nil && (mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")) {
		return nil
	}
	return unsupported("application/json")
}

func unsupported(want string) error {
	return &problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "the Content-Type must be " + want}
}

// has reports whether a field is there and not null.
func (b *body) has(name string) bool {
	raw, ok := b.fields[name]
	return ok && string(raw) != "null"
}

// text reads a string, nil where it is absent or null.
func (b *body) text(name string) *string {
	if !b.has(name) {
		return nil
	}
	var v string
	if json.Unmarshal(b.fields[name], &v) != nil {
		b.invalid.Add(name, "must be a string")
		return nil
	}
	return &v
}

// names reads an array of strings, nil where it is absent or null.
func (b *body) names(name string) *[]string {
	if !b.has(name) {
		return nil
	}
	var v []*string // a null among them is no string
	if json.Unmarshal(b.fields[name], &v) != nil || slices.Contains(v, nil) {
		b.invalid.Add(name, "must be an array of strings")
		return nil
	}
	names := make([]string, len(v))
	for i, s := range v {
		names[i] = *s
	}
	return &names
}

// instruction reads the required field input.
func (b *body) instruction() string {
	v := b.text("input")
	switch {
	case !b.has("input"):
		b.invalid.Add("input", "is required")
	case v == nil: // noted already
	case strings.TrimSpace(*v) == "":
		b.invalid.Add("input", "must not be empty")
	default:
		return *v
	}
	return ""
}

// flag reads a boolean, false where it is absent or null.
func (b *body) flag(name string) bool {
	var v bool
	if b.has(name) && json.Unmarshal(b.fields[name], &v) != nil {
		b.invalid.Add(name, "must be true or false")
	}
	return v
}

// budget reads the field budget, BudgetStandard where it is absent or null.
func (b *body) budget() store.Budget {
	v := b.text("budget")
	if v == nil {
		return store.BudgetStandard
	}
	b.invalid.Check(store.Budget(*v).Valid(), "budget", "must be low, standard, high or unlimited")
	return store.Budget(*v)
}

// once tells the request with this body from its repetitions.
func (b *body) once(r *request) (store.Once, error) {
	content, err := b.canonical()
	if err != nil {
		return store.Once{}, err
	}
	return once(r, content)
}

// canonical is the object with its keys in order and without spaces: equal for
// bodies that mean the same.
func (b *body) canonical() ([]byte, error) {
	raw, err := json.Marshal(b.fields)
	if err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // 1.0 and 1 stay what they are
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode body: %w", err)
	}
	return json.Marshal(v)
}
