package dashboard

import (
	"path"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestTemplatesParse parses the templates in all languages, because the server does so only at their first
// use. Each page has a content.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := &Dashboard{}
	d.setTemplates()
	for _, parse := range d.templates {
		set, err := parse()
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
