package dashboard

import (
	"path"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestTemplatesParse parses all templates in all languages, because the server parses a page only
// at its first use.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := &Dashboard{}
	d.setEditions()
	for code, e := range d.editions {
		if _, err := e.partsAlone(); err != nil {
			t.Errorf("%s: the parts: %v", code, err)
		}
		for _, file := range glob(t, "templates/*.html") {
			name := path.Base(file)
			if name == layoutFile || strings.HasPrefix(name, "part-") {
				continue
			}
			page, err := e.page(name)
			if err != nil {
				t.Errorf("%s: %s: %v", code, name, err)
				continue
			}
			is.True(page.Lookup("content") != nil) // the template of the page
			if name == "signin.html" {
				is.Equal(page.Lookup("found"), nil) // the page does not include an unneeded part
			}
			again, err := e.page(name)
			is.NoErr(err)
			is.Equal(page, again) // parsed once
		}
	}
}
