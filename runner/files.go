package runner

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"journeyman/runner/sandbox"
	"journeyman/store"
)

// MaxFileSize is the default limit of an attachment and of a published file, in
// bytes.
const MaxFileSize = 25 << 20

// FileURL is the address of a file, of just that version.
func (r *Runner) FileURL(f store.File) string {
	segments := strings.Split(f.Path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return r.cfg.BaseURL + "/api/workers/" + f.WorkerID + "/files/" + strings.Join(segments, "/") + "?v=" + f.SHA256[:12]
}

// publish keeps a copy of what a workspace file holds now.
func (r *Runner) publish(ws *sandbox.Workspace, workerID, path, title string) (f store.File, err error) {
	clean, err := sandbox.SafePath(path)
	if err != nil {
		return f, err
	}
	src, err := ws.Open(clean)
	if err != nil {
		return f, err
	}
	defer src.Close()
	return r.keep(src, store.File{WorkerID: workerID, Path: clean, Title: title}, MaxFileSize)
}

// keep copies src into the data folder and completes f.
func (r *Runner) keep(src io.Reader, f store.File, limit int64) (store.File, error) {
	head := &headReader{r: src}
	blob, err := r.cfg.Store.PutBlob(head, limit)
	if err != nil {
		return f, fmt.Errorf("keep file: %w", err)
	}
	f.SHA256, f.Size = blob.SHA256, blob.Size
	f.MediaType = sandbox.MediaType(f.Path, head.head)
	return f, nil
}

// headReader remembers the first bytes read, enough to tell a media type.
type headReader struct {
	r    io.Reader
	head []byte
}

// Read reads from the underlying reader.
func (h *headReader) Read(b []byte) (int, error) {
	n, err := h.r.Read(b)
	if room := 512 - len(h.head); room > 0 {
		h.head = append(h.head, b[:min(n, room)]...)
	}
	return n, err
}

// Keep takes a client's file in, before it is known which worker it is for. It
// fails with store.TooLarge beyond limit bytes.
func (r *Runner) Keep(name string, src io.Reader, limit int64) (store.File, error) {
	return r.keep(src, store.File{Path: sandbox.PlaceName(name), Title: name}, limit)
}

// Attach puts a kept file into the root of a worker's workspace under a safe name
// made from the client's, before the turn it belongs to is accepted. If the turn
// is then not accepted, Detach takes the file away again.
func (r *Runner) Attach(workerID string, f store.File) (store.File, error) {
	blob, err := r.cfg.Store.OpenBlob(f.SHA256)
	if err != nil {
		return f, err
	}
	defer blob.Close()
	ws, err := r.workspace(workerID)
	if err != nil {
		return f, err
	}
	defer r.closeWorkspace(workerID)
	f.WorkerID = workerID
	f.Path, err = ws.Place(f.Title, blob, f.Size)
	var se *sandbox.Error
	if errors.As(err, &se) {
		return f, store.Errorf(store.TooLarge, "%s", se.Message)
	}
	return f, store.Unavailable(err)
}

// Detach removes attachments of a turn that was not accepted.
func (r *Runner) Detach(files []store.File) {
	for _, f := range files {
		ws, err := r.workspace(f.WorkerID)
		if err == nil {
			err = ws.Remove(f.Path)
			r.closeWorkspace(f.WorkerID)
		}
		if err != nil {
			r.cfg.Log.Warn("remove attachment of a refused turn", "worker", f.WorkerID, "path", f.Path, "err", err)
		}
	}
}
