package frame

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
func (fr *Frame) setTemplates() {
	fr.Languages = text.Languages()
	fr.templates = map[string]func() (*template.Template, error){}
	for _, l := range fr.Languages {
		fr.templates[l.Code] = sync.OnceValues(func() (*template.Template, error) {
			if err := l.Check(); err != nil {
				return nil, err
			}
			return template.New("").Funcs(fr.functions(l)).Funcs(fr.cfg.Functions).ParseFS(fr.cfg.Files, "templates/*.html")
		})
	}
}

// language returns the language of a request: the one that the user has chosen, otherwise the one
// that the browser prefers.
func (fr *Frame) language(r *http.Request, chosen string) *text.Language {
	return text.Choose(fr.Languages, chosen, r.Header.Get("Accept-Language"))
}

// TemplatesFor returns the templates in the language of a request.
func (fr *Frame) TemplatesFor(r *Request) (*template.Template, error) {
	return fr.templates[r.Lang.Code]()
}

// T returns a text in the language of the page.
func (r *Request) T(key text.Key, values ...any) string { return r.Lang.T(key, values...) }
