package dashboard_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
)

// unnamed matches characters that must not be in the name of a screenshot.
var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// TestBrowserEveryPage opens every page with hostile text. The text must have no effect, and
// axe-core must find no fault, wide and narrow, light and dark. Then it opens every page in German: none may be
// wider than the window. Without scripts, each page must have a title and must not wait for a script.
func TestBrowserEveryPage(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	w := newWindow(e.Site).borrow(e.ann)
	visit := func(check func(path string)) {
		for _, path := range e.shown() {
			w.open(path)
			w.expect("does not conform to the required format") // Chromium's message about an invalid date
			check(path)
		}
	}
	visit(func(path string) {
		name := path
		for parameter, value := range e.values {
			if value != "0" {
				name = strings.ReplaceAll(name, value, parameter)
			}
		}
		w.look("every" + strings.TrimRight(unnamed.ReplaceAllString(strings.ToLower(name[:min(len(name), 60)]), "-"), "-"))
	})
	call(w, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": "de"}})
	visit(func(path string) {
		if w.text("document.documentElement.lang") != "de" {
			t.Errorf("%s is not in German", path)
		}
		for _, width := range []int64{360, 1280} {
			w.size(width, "light")
			if w.text("document.documentElement.scrollWidth > innerWidth") == "true" {
				t.Errorf("%s scrolls sideways at %d px", path, width)
			}
		}
	})
	call(w, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": "en"}})
	w.script(false)
	visit(func(path string) {
		if w.text("document.querySelector('h1')?.innerText || ''") == "" || w.text("document.querySelector('[aria-busy=true]')") != "null" {
			t.Errorf("%s says nothing without scripts", path)
		}
	})
	w.open("/tasks/evil")
	w.sees("onclick=alert(1)", "write_file")
	w.click("4 steps") // the steps fold without a script
	w.sees("write_file")
	w.open("/usage")
	w.sees("Credits by day and worker", "Day by day")
	w.open("/mail")
	w.fill("Status", "held")
	w.click("Filter")
	w.sees("eve@elsewhere.example")
}

// shown returns the pages that users open. The next runs of a schedule are text for a script.
func (e *evilSite) shown() []string {
	return slices.DeleteFunc(e.pages(), func(path string) bool { return strings.Contains(path, "/next-runs") })
}
