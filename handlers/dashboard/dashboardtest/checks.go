package dashboardtest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/net/html"

	"journeyman/store/visible"
)

// Unseen holds a character of each kind that people cannot see: for the direction of writing, of no
// width, a variation selector, tags, a soft hyphen, separators, a filler and controls.
const Unseen = "\u202e\u2066\u200b\u200d\ufeff\ufe0f\U000e0100\U000e0041\u00ad\u2028\u2029\u3164\u061c\x1b\u009b"

// ShowsHidden fails unless a page shows each character of Unseen as an escape, and has none itself.
func (p Page) ShowsHidden(t *testing.T) {
	t.Helper()
	if !strings.Contains(p.Body, visible.Line(Unseen)) {
		t.Errorf("the page does not show %s", visible.Line(Unseen))
	}
	for _, r := range p.Body {
		if r != '\n' && r != '\t' && visible.Hidden(r) {
			t.Fatalf("the page holds %U", r)
		}
	}
}

// Check fails the test if a page has markup from hostile text, or anything that would need a weaker
// policy.
func (p Page) Check(t testing.TB, path string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(p.Body))
	is.New(t).NoErr(err)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		bad := n.Data == "x-evil" || n.Data == "style" || n.Data == "base"
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
			address := strings.ToLower(strings.TrimSpace(a.Val))
			bad = bad || strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" ||
				(a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction") && strings.HasPrefix(address,
					"javascript:")
		}
		switch n.Data {
		case "script":
			bad = bad || !strings.HasPrefix(attributes["src"], "/assets/") || n.FirstChild != nil
		case "link", "img", "iframe", "object", "embed":
			address := attributes["src"] + attributes["href"] + attributes["data"]
			bad = bad || !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//")
		case "form":
			bad = bad || !strings.HasPrefix(attributes["action"],
				"/") && attributes["action"] != "" || strings.HasPrefix(attributes["action"], "//")
		case "meta":
			bad = bad || attributes["http-equiv"] != ""
		}
		if bad {
			t.Errorf("%s holds <%s %v>", path, n.Data, n.Attr)
		}
	}
}

// Guarded fails the test unless a response has the headers of every page.
func (p Page) Guarded(t testing.TB, path string) {
	t.Helper()
	policy := p.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy,
		"*") {
		t.Errorf("%s has the policy %q", path, policy)
	}
	if !strings.Contains(policy, "frame-ancestors 'none'") && !strings.Contains(policy,
		"frame-ancestors 'self'") && !strings.Contains(policy, "sandbox") {
		t.Errorf("%s may be framed: %q", path, policy)
	}
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin"} {
		if got := p.Header.Get(name); got != value && got != "no-referrer" { // which is stricter
			t.Errorf("%s has %s: %q", path, name, p.Header.Get(name))
		}
	}
	if !strings.Contains(p.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("%s may be kept: %q", path, p.Header.Get("Cache-Control"))
	}
}

// Hostile is a text that must have no effect on any page.
const Hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>'{{.}}`

// Harmless reports whether a page holds no part of the hostile text as markup.
func (p Page) Harmless() bool {
	return !strings.Contains(p.Body, "<script>alert") && !strings.Contains(p.Body, "<img src=x")
}

var linksToWorkers = regexp.MustCompile(`<a class="row title-row" href="/workers/(wrk_[^"]*)">.*?<span class="cut">([^<]*)<`)

// Workers returns the titles that a list of workers shows.
func (p Page) Workers() (list []string) {
	for _, m := range linksToWorkers.FindAllStringSubmatch(p.Body, -1) {
		list = append(list, strings.TrimSpace(m[2]))
	}
	return list
}

// The greatest sizes of pages, in bytes.
const (
	MaxPage     = 60 << 10
	MaxLongPage = 256 << 10 // of a task whose texts all reach their limits
)
