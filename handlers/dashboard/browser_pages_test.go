package dashboard_test

import (
	"regexp"
	"strings"
	"testing"
)

// unnamed is what the name of a picture has no room for.
var unnamed = regexp.MustCompile(`[^a-z0-9]+`)

// TestBrowserEveryPage opens every page that evil is on: it does nothing there, and
// axe-core finds nothing, wide and narrow, light and dark.
func TestBrowserEveryPage(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	w := newWindow(e.site).borrow(e.ann)
	for _, path := range e.pages() {
		w.open(path)
		w.expect("does not conform to the required format") // Chromium's word on a date that is none
		name := path
		for parameter, value := range e.values {
			if value != "0" {
				name = strings.ReplaceAll(name, value, parameter)
			}
		}
		w.look("every" + strings.TrimRight(unnamed.ReplaceAllString(strings.ToLower(name[:min(len(name), 60)]), "-"), "-"))
	}
}
