package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"unicode/utf8"

	"journeyman/store/db"
)

// readInstruction reads a body with an instruction: a JSON object or, with files, a form that has
// the same fields.
func (a *API) readInstruction(w http.ResponseWriter, r *request) (*Body, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == "multipart/form-data" {
		return a.readForm(w, r)
	}
	b, err := readBody(w, r)
	var p *Problem
	if errors.As(err, &p) && p.Code == codeMediaType {
		p.Message += ", or multipart/form-data for a form with files"
	}
	return b, err
}

// readForm reads a multipart body while it arrives. Every part with a filename is a file, whatever
// its name. With the error of a part it returns the parts before that one.
func (a *API) readForm(w http.ResponseWriter, r *request) (*Body, error) {
	// Before the files arrive.
	if err := cmp.Or(a.store.Gate.Room(), a.store.DiskOf(r.who.OrganizationID).Room()); err != nil {
		return nil, err
	}
	in, err := newPatientReader(w, r, a.cfg.Uploads.RequestSize)
	if err != nil {
		return nil, err
	}
	in.onDisk = true
	defer in.done()
	end := newBoundaryFinder(r.Header.Get("Content-Type"))
	// This is a copy, so that a later reader of the request's own body takes no shares again.
	form := *r.Request
	form.Body = io.NopCloser(io.TeeReader(in, end))
	parts, err := form.MultipartReader()
	if err != nil {
		return nil, db.Errorf(db.Invalid, "the multipart body has no usable boundary")
	}
	// NextRawPart leaves the transfer encoding alone; NextPart would decode quoted-printable.
	b, room := &Body{fields: map[string]json.RawMessage{}, form: true}, maxJSON
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextRawPart(); err == nil {
			err = a.readPart(r.Context(), r.who.OrganizationID, b, part, &room)
		}
	}
	if err == io.EOF {
		// net/http only notices that a client disconnects after the whole body was read.
		_, err = io.Copy(io.Discard, form.Body)
	}
	if err == nil && !end.seen { // a truncated file must not count as complete
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return b, a.uploadError(err)
	}
	return b, nil
}

// A boundaryFinder is a writer that searches a multipart body for its closing boundary. A body
// without one is truncated: mime/multipart takes a body that ends in the headers of a part for
// complete.
type boundaryFinder struct {
	boundary []byte // the closing boundary, with its dashes
	carry    []byte // the last bytes written, in which the boundary may begin
	seen     bool
}

func newBoundaryFinder(contentType string) *boundaryFinder {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return &boundaryFinder{seen: true} // MultipartReader refuses the header
	}
	return &boundaryFinder{boundary: []byte("--" + params["boundary"] + "--")}
}

// Write never fails.
func (e *boundaryFinder) Write(b []byte) (int, error) {
	if e.seen {
		return len(b), nil
	}
	// The boundary may begin in one write and end in the next, so the end of each is kept.
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
	var known *db.Error
	switch {
	case errors.As(err, &tooLarge):
		return db.Errorf(db.TooLarge, "a request has at most %d bytes", a.cfg.Uploads.RequestSize)
	case errors.As(err, &known), errors.Is(err, errKeep):
		return err
	case errors.Is(err, multipart.ErrMessageTooLarge):
		return db.Errorf(db.TooLarge, "the headers of a part are too large")
	}
	return db.Errorf(db.Invalid, "the multipart body is malformed or incomplete")
}

// errKeep marks failures of the server's own disk.
var errKeep = errors.New("keep attachment")

// maxFields bounds the fields of a form that are no files.
const maxFields = 100

// readPart adds a part to a form. room is the number of bytes that are left for fields.
func (a *API) readPart(ctx context.Context, organizationID string, b *Body, part *multipart.Part, room *int) error {
	if name := part.FileName(); name != "" {
		if len(b.files) == a.cfg.Uploads.Files {
			return db.Errorf(db.TooLarge, "a request has at most %d files", a.cfg.Uploads.Files)
		}
		src := &partReader{r: part}
		f, err := a.runner.Keep(ctx, organizationID, name, src, a.cfg.Uploads.FileSize)
		if src.err != nil {
			return src.err // the client's failure, not the disk's
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
	// Reading a field needs several times its size in memory.
	if *room -= len(text); *room < 0 || len(b.fields) == maxFields {
		return db.Errorf(db.TooLarge, "a request has at most %d fields, of at most %d bytes together",
			maxFields, maxJSON)
	}
	if !utf8.Valid(text) {
		return db.Errorf(db.Invalid, "the field %q is not valid UTF-8", part.FormName())
	}
	if len(text) == 0 {
		return nil // a browser sends an empty text for an empty field
	}
	b.fields[part.FormName()], err = json.Marshal(string(text))
	return err
}

// A partReader keeps the error of reading from the client.
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
