package handlers

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// pageConfinement keeps a published page from acting as the dashboard: it has an
// origin of its own and loads and sends nothing.
const pageConfinement = "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; " +
	"media-src 'self' data:; font-src data:; frame-ancestors 'self'"

// Confine sets the headers of a response that holds the bytes of a file of any author. A
// page of this server may show the file in a frame.
func Confine(h http.Header) {
	h.Set("Content-Security-Policy", pageConfinement)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "SAMEORIGIN")
}

// RefuseCode returns a Forbidden error if a page of this server asks for a file of any author as its
// script or style. Otherwise a page in which somebody has injected an element would run the
// file: the page's policy permits code of this server.
func RefuseCode(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "script", "style", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt",
		"manifest":
		return db.Errorf(db.Forbidden, "a file of a worker cannot be code of a page: download it instead")
	}
	return nil
}

// orSignIn returns the identity of the caller of an address that a browser may open. A browser that is
// not signed in is redirected to the sign-in page, which leads back.
func (a *API) orSignIn(w http.ResponseWriter, r *http.Request) (people.Identity, error) {
	who, err := a.auth.keyOrSession(w, r)
	if db.IsKind(err, db.Unauthorized) && isBrowser(r) {
		err = redirectTo(w, a.base+"/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), "sign in first")
	}
	return who, err
}

// isBrowser reports whether a browser opens an address as a page, and not a program with a key.
func isBrowser(r *http.Request) bool { return r.Header.Get("Authorization") == "" && WantsHTML(r) }

// redirectTo returns the error whose answer redirects a browser.
func redirectTo(w http.ResponseWriter, address, message string) error {
	w.Header().Set("Location", address)
	return &Problem{Status: http.StatusSeeOther, Code: "see_other", Message: message}
}

// getFile writes the bytes of a file that was published, or attached to a task.
func (a *API) getFile(w http.ResponseWriter, r *request) error {
	if err := RefuseCode(r.Request); err != nil {
		return err
	}
	path, version := strings.TrimPrefix(r.param("filePath"), "/"), r.query.Get("v")
	f, err := a.store.File(r.Context(), r.who.Caller, r.param("workerId"), path, version)
	if isBrowser(r.Request) && (db.IsKind(err, db.Forbidden) || db.IsKind(err, db.NotFound)) {
		// The page of the file says why, or offers to switch to the organization of the file.
		page := strings.Replace(r.URL.EscapedPath(), "/files/", "/preview/", 1)
		return redirectTo(w, a.base+strings.TrimPrefix(page, "/api")+"?"+url.Values{"v": {version}}.Encode(), "see the page")
	}
	if err != nil {
		return err
	}
	blob, err := a.store.OpenBlob(r.Context(), f.SHA256)
	if err != nil {
		return err
	}
	defer blob.Close()
	if r.Method == http.MethodHead {
		r.Header.Del("Range") // only GET has ranges (RFC 9110, section 14.2)
	}
	h := w.Header()
	h.Set("Content-Type", contentType(f))
	Confine(h)
	h.Set("ETag", `"`+f.SHA256+`"`)
	h.Set("Cache-Control", "private, no-cache")
	// A browser asks each time: after its user has signed out, the next user must not open the file
	// from the browser's cache. A program with a key may cache a version, which never changes.
	if r.who.KeyID != "" && version != "" {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	return serveContent(w, r, blob, f)
}

// contentType returns the media type of a file. The tools of workers write text in UTF-8.
func contentType(f store.File) string {
	if strings.HasPrefix(f.MediaType, "text/") && !strings.Contains(f.MediaType, "charset") {
		return f.MediaType + "; charset=utf-8"
	}
	return f.MediaType
}

// serveContent calls http.ServeContent, and returns a Problem for a range outside the file.
func serveContent(w http.ResponseWriter, r *request, blob io.ReadSeeker, f store.File) error {
	tw := &rangeWriter{ResponseWriter: w}
	http.ServeContent(tw, r.Request, "", time.Time{}, blob)
	if !tw.refused {
		return nil
	}
	// ServeContent has set headers of the file, which would be wrong for an error in JSON.
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "ETag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Content-Range", "bytes */"+strconv.FormatInt(f.Size, 10))
	return &Problem{Status: http.StatusRequestedRangeNotSatisfiable, Code: "range_not_satisfiable",
		Message: "Range: lies outside the file"}
}

// rangeWriter suppresses a 416, which net/http would write as plain text.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader passes on every status except 416.
func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write passes on the body, except that of a 416.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
