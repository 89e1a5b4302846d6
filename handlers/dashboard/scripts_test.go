package dashboard

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestScriptsFindTheirAttributes finds data attributes that a script looks for and no page has, and
// those that no script or style sheet uses.
func TestScriptsFindTheirAttributes(t *testing.T) {
	t.Parallel()
	templates, scripts := contents(t, "templates/*.html"), contents(t, "assets/*.js")
	pages := templates + contents(t, "*.go") + contents(t, "*/*.go")
	for _, m := range regexp.MustCompile(`\[data-([a-z-]+)`).FindAllStringSubmatch(scripts, -1) {
		if !regexp.MustCompile(`data-` + m[1] + `[ =>"{]`).MatchString(pages) {
			t.Errorf("a script looks for data-%s, which no page has", m[1])
		}
	}
	users := scripts + contents(t, "assets/*.css")
	others := []string{"binary", "state"} // an option of curl; for tests in a browser
	for _, m := range regexp.MustCompile(`\bdata-([a-z-]+)[= >{]`).FindAllStringSubmatch(templates, -1) {
		first, rest, _ := strings.Cut(m[1], "-")
		inScript := regexp.MustCompile(`(dataset|words)\.` + first + "(?i:" + rest + `)\b`)
		if !strings.Contains(users, "data-"+m[1]) && !inScript.MatchString(scripts) && !slices.Contains(others, m[1]) {
			t.Errorf("nothing uses the attribute data-%s", m[1])
		}
	}
}

// contents returns the contents of the files that match a pattern, joined.
func contents(t *testing.T, pattern string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range glob(t, pattern) {
		text, err := os.ReadFile(name)
		is.New(t).NoErr(err)
		all.Write(text)
	}
	return all.String()
}
