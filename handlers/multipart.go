package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"unicode/utf8"

	"journeyman/store"
)

// readInstruction reads a body that runs something: a JSON object or, with files, a
// form that has the same fields.
func (a *API) readInstruction(w http.ResponseWriter, r *request) (*Body, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		return a.readForm(w, r)
	}
	return readBody(w, r)
}

// readForm reads a multipart body as it comes. Every part with a filename is a file,
// whatever its name.
func (a *API) readForm(w http.ResponseWriter, r *request) (*Body, error) {
	if err := a.store.Room(); err != nil { // before the files arrive
		return nil, err
	}
	in := newPatientReader(w, r, a.cfg.Uploads.RequestSize)
	in.onDisk = true
	defer in.done()
	end := newEnding(r.Header.Get("Content-Type"))
	// This is a copy, so that a later reader of the request's own body takes no shares again.
	form := *r.Request
	form.Body = io.NopCloser(io.TeeReader(in, end))
	parts, err := form.MultipartReader()
	if err != nil {
		return nil, store.Errorf(store.Invalid, "the multipart body has no usable boundary")
	}
	// NextRawPart leaves the transfer encoding alone; NextPart would decode quoted-printable.
	b, room := &Body{fields: map[string]json.RawMessage{}, form: true}, maxJSON
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextRawPart(); err == nil {
			err = a.readPart(b, part, &room)
		}
	}
	if err == io.EOF {
		// Only after the body was read to its end does net/http notice that a client goes.
		_, err = io.Copy(io.Discard, form.Body)
	}
	if err == nil && !end.seen { // a file that is cut off must not pass as a whole one
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, a.uploadError(err)
	}
	return b, nil
}

// An ending watches a multipart body go by for its last boundary. Where it is
// missing the body was cut off: mime/multipart takes a cut in the headers of a
// part for the end.
type ending struct {
	boundary []byte // the last one, with its dashes
	carry    []byte // the bytes before, in which it may begin
	seen     bool
}

func newEnding(contentType string) *ending {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return &ending{seen: true} // MultipartReader refuses the header
	}
	return &ending{boundary: []byte("--" + params["boundary"] + "--")}
}

// Write never fails.
func (e *ending) Write(b []byte) (int, error) {
	if e.seen {
		return len(b), nil
	}
	// The boundary may lie across two writes, so the end of each is carried over.
	n := len(e.boundary)
	e.carry = append(e.carry, b[:min(n, len(b))]...)
	e.seen = bytes.Contains(e.carry, e.boundary) || bytes.Contains(b, e.boundary)
	if len(b) > n {
		e.carry = append(e.carry[:0], b[len(b)-n:]...)
	}
	e.carry = append(e.carry[:0], e.carry[max(0, len(e.carry)-n):]...)
	return len(b), nil
}

func (a *API) uploadError(err error) error {
	var tooLarge *http.MaxBytesError
	var known *store.Error
	switch {
	case errors.As(err, &tooLarge):
		return store.Errorf(store.TooLarge, "a request has at most %d bytes", a.cfg.Uploads.RequestSize)
	case errors.As(err, &known), errors.Is(err, errKeep):
		return err
	case errors.Is(err, multipart.ErrMessageTooLarge):
		return store.Errorf(store.TooLarge, "the headers of a part are too large")
	}
	return store.Errorf(store.Invalid, "the multipart body is malformed or incomplete")
}

// errKeep marks failures of our own disk, which are not the client's fault.
var errKeep = errors.New("keep attachment")

// maxFields bounds the fields of a form that are no files.
const maxFields = 100

// readPart adds a part to a form. room is how many bytes its fields may still have.
func (a *API) readPart(b *Body, part *multipart.Part, room *int) error {
	if name := part.FileName(); name != "" {
		if len(b.files) == a.cfg.Uploads.Files {
			return store.Errorf(store.TooLarge, "a request has at most %d files", a.cfg.Uploads.Files)
		}
		src := &partReader{r: part}
		f, err := a.runner.Keep(name, src, a.cfg.Uploads.FileSize)
		if src.err != nil {
			return src.err // the client's, not ours
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errKeep, err)
		}
		b.files = append(b.files, f)
		return nil
	}
	// One byte more than there is room for shows that the part is too long.
	text, err := io.ReadAll(io.LimitReader(part, int64(*room+1)))
	if err != nil {
		return err
	}
	// Fields are held in memory, several times over while they are read.
	if *room -= len(text); *room < 0 || len(b.fields) == maxFields {
		return store.Errorf(store.TooLarge, "a request has at most %d fields, of at most %d bytes together",
			maxFields, maxJSON)
	}
	if !utf8.Valid(text) {
		return store.Errorf(store.Invalid, "the field %q is not valid UTF-8", part.FormName())
	}
	if len(text) == 0 {
		return nil // a browser sends an empty text for a field that was left out
	}
	b.fields[part.FormName()], err = json.Marshal(string(text))
	return err
}

// partReader remembers why reading from the client failed.
type partReader struct {
	r   io.Reader
	err error
}

// Read reads from the part.
func (p *partReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}
