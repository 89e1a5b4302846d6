package dashboard

import (
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"journeyman/handlers/dashboard/text"
)

// An edition is the templates in one language.
type edition struct {
	lang  *text.Language
	pages map[string]*template.Template // by file name; each includes the layout
	parts *template.Template            // the templates that pages share
}

// parseEditions parses the templates in English now, and in another language when somebody
// first asks for it. Both take the same files and functions, so that what parses in one
// language parses in all.
func (d *Dashboard) parseEditions() error {
	languages, err := text.Languages()
	if err != nil {
		return err
	}
	d.languages, d.editions = languages, map[string]func() (*edition, error){}
	for _, l := range languages {
		d.editions[l.Code] = sync.OnceValues(func() (*edition, error) { return d.parse(l) })
	}
	_, err = d.editions[languages[0].Code]()
	return err
}

// language returns the language of a request: the one that the user has chosen, else the one
// that the browser asks for.
func (d *Dashboard) language(r *http.Request, chosen string) *text.Language {
	return text.Choose(d.languages, chosen, r.Header.Get("Accept-Language"))
}

// edition returns the templates in the language of a request.
func (d *Dashboard) edition(r *request) *edition {
	e, err := d.editions[r.lang.Code]()
	if err != nil {
		d.cfg.Log.Error("templates", "language", r.lang.Code, "err", err)
		// English was parsed by New: its error would have stopped the server.
		e, _ = d.editions[d.languages[0].Code]()
	}
	return e
}

// parse parses each page together with the layout and the shared parts. The file names of
// the parts begin with part-.
func (d *Dashboard) parse(l *text.Language) (*edition, error) {
	parts, err := template.New("").Funcs(d.functions(l)).ParseFS(embedded,
		"templates/layout.html", "templates/part-*.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(embedded, "templates/*.html")
	if err != nil {
		return nil, err
	}
	e := &edition{lang: l, parts: parts, pages: map[string]*template.Template{}}
	for _, file := range files {
		name := path.Base(file)
		if name == "layout.html" || strings.HasPrefix(name, "part-") {
			continue
		}
		// Each page defines a template "content": without a copy they would overwrite
		// each other.
		page, err := parts.Clone()
		if err == nil {
			page, err = page.ParseFS(embedded, file)
		}
		if err != nil {
			return nil, err
		}
		e.pages[name] = page
	}
	return e, nil
}

// t returns a text in the language of the page.
func (r *request) t(key text.Key, values ...any) string { return r.lang.T(key, values...) }
