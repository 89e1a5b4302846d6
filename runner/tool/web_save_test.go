package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/workspace"
)

// fetch calls web_fetch, which may reach this machine.
func (h *turn) fetch(t *testing.T, args object) (string, error) {
	t.Helper()
	input, err := json.Marshal(args)
	is.New(t).NoErr(err)
	out, err := WebFetch(testDocuments, dial.Guard{AllowPrivate: true}, "test").Run(t.Context(), h, input)
	return string(out), err
}

// files returns a server of files. It returns the header X-Key of a request, too.
func files(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body, contentType string
		switch strings.TrimPrefix(r.URL.Path, "/") {
		case "picture":
			body, contentType = string(testPicture(t, 3, 2)), "image/png"
		case "prices":
			body, contentType = "a;b\r\n1;\xe4\r\n", "text/csv"
		case "report":
			body, contentType = "%PDF-1.7\n\xff\x00", "application/pdf"
		case "archive":
			body, contentType = "PK\x03\x04\x00\x00"+r.Header.Get("X-Key"), "application/zip"
		case "login":
			body, contentType = "<html>Please sign in", "text/html; charset=utf-8"
		case "long":
			body, contentType = strings.Repeat("\x00", 1001), "application/zip"
		case "echo":
			body, contentType = "key="+r.Header.Get("X-Key"), "text/plain"
		case "moved":
			http.Redirect(w, r, "/picture", http.StatusFound)
			return
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestWebFetchSaves(t *testing.T) {
	t.Parallel()
	s := files(t)
	key := map[string]string{"X-Key": "${secret:KEY}"}
	for name, tt := range map[string]struct {
		from, save string
		headers    map[string]string
		want       string // contents of the file
		says       string // text of the error, if there is one
	}{
		"picture":            {"/picture", "a/b.png", nil, string(testPicture(t, 3, 2)), ""},
		"after a redirect":   {"/moved", "b.png", nil, string(testPicture(t, 3, 2)), ""},
		"text, unchanged":    {"/prices", "prices.csv", nil, "a;b\r\n1;\xe4\r\n", ""},
		"document":           {"/report", "r.pdf", nil, "%PDF-1.7\n\xff\x00", ""},
		"no extension":       {"/login", "page", nil, "<html>Please sign in", ""},
		"page as a document": {"/login", "r.pdf", nil, "", "is text/html; no program can open plain text as .pdf"},
		"a secret in text":   {"/echo", "e.txt", key, "key=[secret:KEY]", ""},
		"a secret in others": {"/archive", "a.zip", key, "", "contains the value of a secret"},
		"too long":           {"/long", "l.zip", nil, "", "larger than a file can be, 1000 bytes"},
		"missing":            {"/none", "n.zip", nil, "", "404"},
		"leads out":          {"/picture", "../b.png", nil, "", `save: "../b.png" leads outside`},
		"empty":              {"/picture", "", nil, "", "save: a path cannot be empty"},
		"folder":             {"/login", "old", nil, "", `save: "old" is a folder`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{FileSize: 1000})
			is.NoErr(os.Mkdir(filepath.Join(h.dir, "old"), 0o755))
			out, err := h.fetch(t, object{"url": s.URL + tt.from, "save": tt.save, "headers": tt.headers})
			if tt.says != "" {
				says(t, err, tt.says)
				is.Equal(len(h.sources), 0)
				left, err := os.ReadDir(h.dir)
				is.NoErr(err)
				is.Equal(len(left), 1) // the folder
				return
			}
			is.NoErr(err)
			is.Equal(h.get(t, tt.save), tt.want)
			var got saved
			is.NoErr(json.Unmarshal([]byte(out), &got))
			is.Equal(got.Path, tt.save)
			is.Equal(got.Size, len(tt.want))
			is.Equal(h.sources, []string{got.URL + " "})
		})
	}
}

func TestWebFetchSaveLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := files(t)
	h := newTurn(t, workspace.Limits{TotalSize: 1000})
	_, err := h.fetch(t, object{"url": s.URL + "/long", "save": "l.zip"})
	says(t, err, "the workspace can hold 1000 bytes")
	_, err = h.fetch(t, object{"url": s.URL + "/picture", "save": "a.png", "offset": 1})
	says(t, err, "offset cannot be used with save")
	_, err = h.fetch(t, object{"url": s.URL + "/picture"})
	says(t, err, "image/png, which cannot be read as text; save keeps it as a file")
	h.hosts = []string{"example.com"}
	_, err = h.fetch(t, object{"url": s.URL + "/picture", "save": "a.png"})
	says(t, err, "127.0.0.1 is not permitted")
	is.Equal(len(h.sources), 0)
}

// TestWebFetchCookies fetches pages that need the cookies of an earlier response of the same call. 127.0.0.1 and
// localhost are one server, but two hosts.
func TestWebFetchCookies(t *testing.T) {
	t.Parallel()
	var near, far string
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch at := r.URL.Query().Get("at"); {
		case r.URL.Path == "/wall" && r.Header.Get("Cookie") == "":
			w.Header().Set("Set-Cookie", "seen=1; Path=/")
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		case r.URL.Path == "/leave":
			w.Header().Add("Set-Cookie", "secret=1; Path=/")
			w.Header().Add("Set-Cookie", "wide=1; Path=/; Domain=localhost")
			http.Redirect(w, r, at, http.StatusFound)
		default:
			_, _ = fmt.Fprintf(w, "cookies=%s", r.Header.Get("Cookie"))
		}
	}
	s, other := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(s.Close)
	t.Cleanup(other.Close)
	near, far = s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for name, tt := range map[string]struct{ address, want string }{
		"redirect to itself":       {near + "/wall", "cookies=seen=1"},
		"none of an earlier call":  {near + "/", "cookies="},
		"to another host":          {near + "/leave?at=" + far, "cookies="},
		"to another port":          {near + "/leave?at=" + other.URL, "cookies="},
		"to another host and back": {near + "/leave?at=" + far + "/leave?at=" + near, "cookies=secret=1"},
		"of another, to itself":    {far + "/leave?at=" + far + "/wall", "cookies=secret=1; wide=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			out, err := newTurn(t, workspace.Limits{}).fetch(t, object{"url": tt.address})
			is.NoErr(err)
			var f fetched
			is.NoErr(json.Unmarshal([]byte(out), &f))
			is.Equal(f.Content, tt.want)
		})
	}
}
