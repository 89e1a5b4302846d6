package dashboard

import (
	"path"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/files"
	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
)

// TestTemplatesParse parses the templates in all languages, because the server does so only at their first
// use. Each page has a content.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	fr, err := frame.New(frame.Config{Files: embedded, BaseURL: "http://localhost", Functions: files.Functions()})
	is.NoErr(err)
	for _, l := range text.Languages() {
		set, err := fr.TemplatesFor(&frame.Request{Lang: l})
		is.NoErr(err)
		for _, file := range glob(t, "templates/*.html") {
			name := strings.TrimSuffix(path.Base(file), ".html")
			if name == "layout" || strings.HasPrefix(name, "part-") {
				continue
			}
			is.True(set.Lookup(name+"/content") != nil) // the layout includes it
		}
	}
}
