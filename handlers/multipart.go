package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"unicode/utf8"

	"journeyman/store"
)

// An upload is a multipart body: fields as JSON strings, and files that are kept
// but not yet in a workspace.
type upload struct {
	body  body
	text  int // bytes of the fields
	files []store.File
}

// createTaskWithFiles is createTask for a multipart body: the files are in the
// workspace before the turn is accepted.
func (a *API) createTaskWithFiles(w http.ResponseWriter, r *request) error {
	u, err := a.readUpload(w, r)
	if err != nil {
		return err
	}
	turn := u.body.task(r.who.Caller)
	stream := u.stream()
	if err := u.body.invalid.Err(); err != nil {
		return err
	}
	content, err := u.canonical()
	if err != nil {
		return err
	}
	if turn.Once, err = once(r, content); err != nil {
		return err
	}
	accepted, err := a.commitWithFiles(r, turn, u.files, stream)
	if err != nil {
		return err
	}
	return a.answer(w, r, accepted, stream, true)
}

// commitWithFiles is commit with the files in the workspace before.
func (a *API) commitWithFiles(r *request, turn store.NewTurn, files []store.File, stream bool) (accepted store.Accepted, err error) {
	accepted.Turn, accepted.Replayed, err = a.store.Lookup(r.Context(), turn.Once)
	if err != nil || accepted.Replayed {
		return accepted, err
	}
	for tries := 0; ; tries++ {
		placed := turn
		if err := a.attach(r, &placed, files); err != nil {
			return accepted, err
		}
		accepted, err = a.commit(r, placed, stream)
		if err == nil && !accepted.Replayed {
			return accepted, nil
		}
		a.runner.Detach(placed.Attachments)
		// Another request has made the task meanwhile: the files go to its worker.
		var e *store.Error
		if !errors.As(err, &e) || e.Code != store.CodeMoved || tries == maxMoves {
			return accepted, err
		}
	}
}

// maxMoves is how often files are put elsewhere. Once is enough: a task does not
// change its worker.
const maxMoves = 2

// attach puts the files into the workspace of the worker the turn is for.
func (a *API) attach(r *request, turn *store.NewTurn, files []store.File) error {
	workerID, err := a.store.TargetWorker(r.Context(), *turn)
	if err != nil {
		return err
	}
	if workerID == "" {
		workerID = store.NewID("wrk", a.cfg.Now())
		turn.NewWorker.ID = workerID
	}
	for _, f := range files {
		placed, err := a.runner.Attach(workerID, f)
		if err != nil {
			a.runner.Detach(turn.Attachments)
			return err
		}
		turn.Attachments = append(turn.Attachments, placed)
	}
	return nil
}

// readUpload reads a multipart body as it comes. Every part with a filename is a
// file, whatever its name.
func (a *API) readUpload(w http.ResponseWriter, r *request) (*upload, error) {
	in := newPatientReader(w, r, a.cfg.Uploads.RequestSize)
	end := newEnding(r.Header.Get("Content-Type"))
	r.Body = io.NopCloser(io.TeeReader(in, end))
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, store.Errorf(store.Invalid, "the multipart body has no usable boundary")
	}
	u := &upload{body: body{fields: map[string]json.RawMessage{}}}
	for err == nil {
		var part *multipart.Part
		if part, err = parts.NextRawPart(); err == nil {
			err = a.readPart(u, part)
		}
	}
	if err == io.EOF {
		// Only at the end of the body does net/http begin to notice that a client goes.
		_, err = io.Copy(io.Discard, r.Body)
	}
	if err == nil && !end.seen {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, a.uploadError(err)
	}
	return u, nil
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
		return &ending{seen: true} // somebody else will say so
	}
	return &ending{boundary: []byte("--" + params["boundary"] + "--")}
}

// Write never fails.
func (e *ending) Write(b []byte) (int, error) {
	if e.seen {
		return len(b), nil
	}
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
	case errors.As(err, &known):
		return err
	case errors.Is(err, multipart.ErrMessageTooLarge):
		return store.Errorf(store.TooLarge, "the headers of a part are too large")
	case errors.Is(err, errKeep):
		return err
	}
	return store.Errorf(store.Invalid, "the multipart body is malformed or broke off")
}

var errKeep = errors.New("keep attachment")

const maxFields = 100

func (a *API) readPart(u *upload, part *multipart.Part) error {
	if name := part.FileName(); name != "" {
		if len(u.files) == a.cfg.Uploads.Files {
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
		u.files = append(u.files, f)
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(part, int64(maxJSON-u.text+1)))
	if err != nil {
		return err
	}
	// Fields are held in memory, several times over while they are read.
	if u.text += len(text); u.text > maxJSON || len(u.body.fields) == maxFields {
		return store.Errorf(store.TooLarge, "a request has at most %d fields, of at most %d bytes together", maxFields, maxJSON)
	}
	if !utf8.Valid(text) {
		return store.Errorf(store.Invalid, "the field %q is not valid UTF-8", part.FormName())
	}
	if len(text) == 0 {
		return nil // forms send what was left out so
	}
	u.body.fields[part.FormName()], err = json.Marshal(string(text))
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

// stream reads the field stream, which in a form is text.
func (u *upload) stream() bool {
	v := u.body.text("stream")
	if v == nil {
		return false
	}
	u.body.invalid.Check(*v == "true" || *v == "false", "stream", "must be true or false")
	return *v == "true"
}

// canonical is equal for bodies that mean the same: boundaries differ from try to
// try.
func (u *upload) canonical() ([]byte, error) {
	content, err := u.body.canonical()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, f := range u.files {
		fmt.Fprintf(h, "%q %s\n", f.Title, f.SHA256)
	}
	return h.Sum(slices.Clone(content)), nil
}
