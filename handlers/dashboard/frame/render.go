package frame

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/show"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/visible"
	"journeyman/store/workers"
)

// pageData is the data of every template. Page is the page's own part of it.
type pageData struct {
	Title         string
	Path          string // of the page: the navigation marks it
	Language      string // the code of the page's language
	Done          string // the message about the last form; "" for none
	Who           people.Identity
	Organizations []people.Organization // that the user may switch to; empty if there is one
	Deciding      int64                 // decisions and answers that the user can make
	Model         ModelState            // of workers without their own model
	Pinned        []workers.Pin         // workers that the user has pinned
	Busy          map[string]bool       // by id, the pinned workers that run a task
	Since         string                // the position in the stream of changes at which the page was read
	Disk          diskNotice
	Head          WorkerHead // of the page's worker; zero on other pages
	Page          any

	set  *template.Template
	name string // of the page's file, without .html
}

// Place returns what the page defines for a place of the frame, or "" if it defines nothing.
func (v pageData) Place(place string) (template.HTML, error) {
	t := v.set.Lookup(v.name + "/" + place)
	if t == nil {
		return "", nil
	}
	var b strings.Builder
	err := t.Execute(&b, v)
	return template.HTML(b.String()), err //nolint:gosec // made by a template
}

// Initials returns the sign of the user's account.
func (v pageData) Initials() string { return Initials(v.Who.UserName, v.Who.Email) }

// Initials returns the first letters of the first and the last word of a name. Without a name
// it returns the first letter of the email address.
func Initials(name, email string) string {
	words := strings.Fields(name)
	if len(words) == 0 {
		words = []string{email}
	}
	letters := db.FirstRunes(words[0], 1)
	if len(words) > 1 {
		letters += db.FirstRunes(words[len(words)-1], 1)
	}
	return strings.ToUpper(letters)
}

// SignedIn reports whether a user is signed in.
func (v pageData) SignedIn() bool { return v.Who.UserID != "" }

// DecidingMore reports whether the real number may be larger than Deciding.
func (v pageData) DecidingMore() bool { return v.Deciding >= store.MaxPendingDecisions }

// May reports whether the user has the right.
func (v pageData) May(right people.Right) bool { return v.Who.May(right) }

// Here reports whether the page belongs to an entry of the navigation.
func (v pageData) Here(part string) bool {
	return v.Path == part || strings.HasPrefix(v.Path, part+"/")
}

// Render writes a page. It executes the template first, so that the status can still change after
// an error.
func (fr *Frame) Render(w http.ResponseWriter, r *Request, status int, file, title string, page any) error {
	set, err := fr.TemplatesFor(r)
	if err != nil {
		return err
	}
	v := pageData{Title: title, Path: r.URL.Path, Language: r.Lang.Code, Who: r.Who,
		Since: r.since, Head: r.Head, Page: page, set: set, name: strings.TrimSuffix(file, ".html"),
		Done: r.Lang.Label("done", r.URL.Query().Get("done"))}
	v.Disk = fr.diskNotice(v)
	if v.SignedIn() {
		list, err := fr.Store.People.Organizations(r.Context(), r.Who.Caller)
		if err != nil {
			return err
		}
		if v.Deciding, err = fr.Store.PendingDecisions(r.Context(), r.Who.Caller); err != nil {
			return err
		}
		v.Model = fr.ModelState(r.Context(), r.Who.OrganizationID)
		if v.Pinned, err = fr.Store.Workers.Pins(r.Context(), r.Who.Caller); err != nil {
			return err
		}
		v.Busy = fr.Runner.Streams.Busy(r.Who.OrganizationID)
		// The layout offers a switch between organizations only if there are several.
		if len(list) > 1 {
			v.Organizations = list
		}
	}
	return Send(w, r, status, set, layoutFile, v, shownFor(file))
}

// Send writes a template as an answer. reveal shows the hidden characters of a text.
func Send(w http.ResponseWriter, r *Request, status int, set *template.Template, name string, data any,
	reveal func(string) string) error {
	// After the first byte, an error could not change the status.
	var b strings.Builder
	if err := set.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	html := WithBase(r.basePath, show.Hidden(b.String(), reveal))
	_, _ = io.WriteString(w, html) // an error means that the browser closed the connection
	return nil
}

// Page writes a page with status 200.
func (fr *Frame) Page(w http.ResponseWriter, r *Request, file, title string, page any) error {
	return fr.Render(w, r, http.StatusOK, file, title, page)
}

// Redirect sends the browser to another page of this server after a form. The browser requests it with GET, so
// that reloading the page does not send the form again.
func Redirect(w http.ResponseWriter, r *Request, to string) error {
	http.Redirect(w, r.Request, r.basePath+to, http.StatusSeeOther)
	return nil
}

// Done returns the address of a page that shows a message at its top. message is the id of its text, so
// that a link cannot put other text on a page.
func Done(page, message string) string { return page + "?done=" + message }

// Filters returns the named fields that the query of a list sets.
func Filters(query url.Values, names ...string) url.Values {
	set := url.Values{}
	for _, name := range names {
		if value := query.Get(name); value != "" {
			set.Set(name, value)
		}
	}
	return set
}

// ListPage returns the address of the page of a list that begins at cursor, with the same filters.
// It returns "" without a cursor, because there is no further page.
func ListPage(path string, filters url.Values, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := url.Values{"cursor": {cursor}}
	maps.Copy(q, filters)
	return path + "?" + q.Encode()
}

// PageNumber returns the number of the page that the query asks for, from one.
func PageNumber(r *Request) int64 {
	n, err := strconv.ParseInt(r.URL.Query().Get("page"), 10, 64)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Neighbours returns the addresses of the pages before and after page n of a list with
// total rows, size rows on a page. An address is empty if there is no such page.
func Neighbours(r *Request, n, total, size int64) (before, next string) {
	page := func(n int64) string {
		q := Filters(r.URL.Query(), "task") // of a workspace
		q.Set("page", strconv.FormatInt(n, 10))
		return r.URL.EscapedPath() + "?" + q.Encode()
	}
	if n > 1 {
		before = page(n - 1)
	}
	if n < (total+size-1)/size {
		next = page(n + 1)
	}
	return before, next
}

// assets are the style sheets and scripts, by name. Their addresses hold a hash of the
// content, so that browsers may cache a file forever and still get each change.
type assets map[string]asset

type asset struct {
	data []byte
	hash string
}

// loadAssets reads the assets and hashes them.
func loadAssets(files fs.FS) (assets, error) {
	a := assets{}
	err := fs.WalkDir(files, "assets", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, file)
		sum := sha256.Sum256(data)
		a[strings.TrimPrefix(file, "assets/")] = asset{data, hex.EncodeToString(sum[:6])}
		return err
	})
	return a, err
}

// address returns the address of an asset.
func (a assets) address(name string) (string, error) {
	file, ok := a[name]
	if !ok {
		return "", errors.New("there is no asset " + name)
	}
	return "/assets/" + file.hash + "/" + name, nil
}

// contentType returns the media type of an asset.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	}
	return "image/svg+xml"
}

// ServeHTTP serves an asset. An address with the hash of an older content is not found.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/assets/"), "/")
	file, ok := a[name]
	// A page of an older version uses an older hash. It must not get the new content, which its
	// browser would cache under the old address.
	if !ok || hash != file.hash {
		if !handlers.RefuseProgram(w, r, db.Errorf(db.NotFound, "there is nothing at this address")) {
			http.NotFound(w, r)
		}
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(file.data)
}

// decisionPages are the pages on which somebody decides. They show every hidden character, also the
// parts of emoji.
var decisionPages = []string{"consent.html", "decide.html", "invitation.html"}

// shownFor returns the function that shows the hidden characters of a page.
func shownFor(file string) func(string) string {
	if slices.Contains(decisionPages, file) {
		return visible.Text
	}
	return visible.Running
}
