package dashboard

import (
	"html/template"
	"net/http"
	"sync"

	"journeyman/handlers/dashboard/text"
)

// layoutFile is the template of the frame of every page.
const layoutFile = "layout.html"

// setTemplates sets the languages, and the function that returns all templates in each. The templates are
// parsed at their first use: API clients need none.
func (d *Dashboard) setTemplates() {
	d.languages = text.Languages()
	d.templates = map[string]func() (*template.Template, error){}
	for _, l := range d.languages {
		d.templates[l.Code] = sync.OnceValues(func() (*template.Template, error) {
			if err := l.Check(); err != nil {
				return nil, err
			}
			return template.New("").Funcs(d.functions(l)).ParseFS(embedded, "templates/*.html")
		})
	}
}

// language returns the language of a request: the one that the user has chosen, otherwise the one
// that the browser prefers.
func (d *Dashboard) language(r *http.Request, chosen string) *text.Language {
	return text.Choose(d.languages, chosen, r.Header.Get("Accept-Language"))
}

// templatesFor returns the templates in the language of a request.
func (d *Dashboard) templatesFor(r *request) (*template.Template, error) {
	return d.templates[r.lang.Code]()
}

// t returns a text in the language of the page.
func (r *request) t(key text.Key, values ...any) string { return r.lang.T(key, values...) }
