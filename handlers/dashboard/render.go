package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"journeyman/store"
)

// A view is what every template is given. Page is the page's own data.
type view struct {
	Title         string
	Path          string // of the page, to mark where we are
	Done          string // what the last form did, "" for nothing
	Who           store.Identity
	Organizations []store.Organization // to switch between; empty with only one
	Version       string
	Page          any
}

// SignedIn reports whether somebody is.
func (v view) SignedIn() bool { return v.Who.UserID != "" }

// May reports whether the role of who is signed in has the right.
func (v view) May(right store.Right) bool { return v.Who.Role.May(right) }

// Here reports whether the page lies under a part of the navigation.
func (v view) Here(part string) bool { return v.Path == part || strings.HasPrefix(v.Path, part+"/") }

// render writes a page, whole or not at all.
func (d *Dashboard) render(w http.ResponseWriter, r *request, status int, file, title string, page any) error {
	t := d.templates[file]
	if t == nil {
		return fmt.Errorf("there is no template %q", file)
	}
	v := view{Title: title, Path: r.URL.Path, Done: doneMessages[r.URL.Query().Get("done")], Who: r.who, Version: d.cfg.Version, Page: page}
	if v.SignedIn() {
		list, err := d.store.Organizations(r.Context(), r.who.UserID)
		if err != nil {
			return err
		}
		if len(list) > 1 {
			v.Organizations = list
		}
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout.html", v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser may have gone
	return nil
}

// page is render for a page that is as it should be.
func (d *Dashboard) page(w http.ResponseWriter, r *request, file, title string, page any) error {
	return d.render(w, r, http.StatusOK, file, title, page)
}

// redirect sends the browser to a page of ours after a form.
func redirect(w http.ResponseWriter, r *request, to string) error {
	http.Redirect(w, r.Request, to, http.StatusSeeOther)
	return nil
}

// done is redirect with a message at the top of the page: what names one of
// doneMessages.
func done(w http.ResponseWriter, r *request, to, what string) error {
	sep := "?"
	if strings.Contains(to, "?") {
		sep = "&"
	}
	return redirect(w, r, to+sep+"done="+what)
}

// parseTemplates reads each page together with the layout and the parts that
// pages share, whose names begin with part-.
func (d *Dashboard) parseTemplates() (map[string]*template.Template, error) {
	base, err := template.New("").Funcs(d.functions()).ParseFS(embedded, "templates/layout.html", "templates/part-*.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		return nil, err
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		name := path.Base(file)
		if name == "layout.html" || strings.HasPrefix(name, "part-") {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(embedded, file)
		}
		if err != nil {
			return nil, err
		}
		pages[name] = t
	}
	return pages, nil
}

// assets are the embedded style and scripts under addresses that hold their hash,
// so that browsers keep them until they change.
type assets map[string]asset

type asset struct {
	data []byte
	hash string
}

func loadAssets() (assets, error) {
	a := assets{}
	err := fs.WalkDir(embedded, "assets", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := embedded.ReadFile(file)
		sum := sha256.Sum256(data)
		a[strings.TrimPrefix(file, "assets/")] = asset{data, hex.EncodeToString(sum[:6])}
		return err
	})
	return a, err
}

// address gives the address of an asset.
func (a assets) address(name string) (string, error) {
	file, ok := a[name]
	if !ok {
		return "", errors.New("there is no asset " + name)
	}
	return "/assets/" + file.hash + "/" + name, nil
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// ServeHTTP gives an asset.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/assets/"), "/")
	file, ok := a[name]
	if !ok || hash != file.hash {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(file.data)
}
