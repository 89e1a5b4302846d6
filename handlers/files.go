package handlers

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// pageConfinement keeps a published page from acting as the dashboard: it has an
// origin of its own and loads and sends nothing.
const pageConfinement = "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; media-src 'self' data:; font-src data:"

// getFile gives the bytes of a published file, or of one attached to a task.
func (a *API) getFile(w http.ResponseWriter, r *request) error {
	path := strings.TrimPrefix(r.params.ByName("filePath"), "/")
	f, err := a.store.File(r.Context(), r.who.Caller, r.params.ByName("workerId"), path, r.URL.Query().Get("v"))
	if err != nil {
		return err
	}
	blob, err := a.store.OpenBlob(f.SHA256)
	if err != nil {
		return err
	}
	defer blob.Close()
	if r.Method == http.MethodHead {
		r.Header.Del("Range") // means nothing but for GET (RFC 9110, section 14.2)
	}
	h := w.Header()
	h.Set("Content-Type", contentType(f))
	h.Set("Content-Security-Policy", pageConfinement)
	h.Set("ETag", `"`+f.SHA256+`"`)
	h.Set("Cache-Control", "private, no-cache")
	// A browser asks each time: who signs out leaves nothing that the next one could
	// open from its memory.
	if r.who.KeyID != "" && r.URL.Query().Get("v") != "" {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	return serveContent(w, r, blob, f)
}

func contentType(f store.File) string {
	if strings.HasPrefix(f.MediaType, "text/") && !strings.Contains(f.MediaType, "charset") {
		return f.MediaType + "; charset=utf-8"
	}
	return f.MediaType
}

// serveContent is http.ServeContent with our own words for a range outside the
// file.
func serveContent(w http.ResponseWriter, r *request, blob io.ReadSeeker, f store.File) error {
	tw := &rangeWriter{ResponseWriter: w}
	http.ServeContent(tw, r.Request, "", time.Time{}, blob)
	if !tw.refused {
		return nil
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "ETag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Content-Range", "bytes */"+strconv.FormatInt(f.Size, 10))
	return &problem{Status: http.StatusRequestedRangeNotSatisfiable, Code: "range_not_satisfiable", Message: "Range: lies outside the file"}
}

// rangeWriter holds a 416 back: net/http would write it as plain text.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader passes every status on but 416.
func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write passes the body on, but not that of a 416.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// getOpenAPI gives the description of this API.
func (a *API) getOpenAPI(w http.ResponseWriter, _ *request) error {
	doc, err := OpenAPI()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc) // the client may have gone
	return nil
}

// getHealth says that the process answers.
func (a *API) getHealth(w http.ResponseWriter, _ *request) error {
	return respond(w, http.StatusOK, map[string]string{"status": "ok"})
}

// getReadiness says whether work is taken and done.
func (a *API) getReadiness(w http.ResponseWriter, r *request) error {
	checks := map[string]string{"database": "ok", "runner": "ok"}
	var errs []error
	if err := a.store.Ping(r.Context()); err != nil {
		checks["database"] = "failing"
		errs = append(errs, err)
	}
	if !a.runner.Alive() {
		checks["runner"] = "failing"
		errs = append(errs, errors.New("the runner's dispatcher stands still"))
	}
	if a.cfg.SchedulerAlive != nil {
		checks["scheduler"] = "ok"
		if !a.cfg.SchedulerAlive() {
			checks["scheduler"] = "failing"
			errs = append(errs, errors.New("the scheduler stands still"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		a.cfg.Log.Error("not ready", "err", err)
		return respond(w, http.StatusServiceUnavailable, map[string]any{"status": "unavailable", "checks": checks})
	}
	return respond(w, http.StatusOK, map[string]any{"status": "ok", "checks": checks})
}
