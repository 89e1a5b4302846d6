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

// TestBrowserWithoutScripts reads every page with scripts off: it is there, says what
// it is about, and waits for nothing.
func TestBrowserWithoutScripts(t *testing.T) {
	t.Parallel()
	e := newEvilSite(t)
	w := newWindow(e.site).borrow(e.ann)
	w.script(false)
	for _, path := range e.pages() {
		w.open(path)
		w.expect("does not conform to the required format")
		if w.text("document.querySelector('main h1').innerText") == "" || w.text("document.querySelector('[aria-busy=true]')") != "null" {
			t.Errorf("%s says nothing without scripts", path)
		}
	}
	w.open("/tasks/evil")
	w.sees("onclick=alert(1)", "write_file", "completed")
	w.click("write_file") // folds without a script
	w.open("/usage")
	w.sees("Credits by day and worker", "Day by day")
	w.open("/mail")
	w.fill("Status", "held")
	w.click("Filter")
	w.sees("eve@elsewhere.example")
}
