package message

import (
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestPagesAreConvertedWhenNeeded checks that all pages of a mail are converted at once, and none
// that repeats the plain text.
func TestPagesAreConvertedWhenNeeded(t *testing.T) {
	t.Parallel()
	part := func(kind, text string) string {
		return "--b\r\nContent-Type: text/" + kind + "\r\n\r\n" + text + "\r\n"
	}
	for name, tt := range map[string]struct{ kind, body, text, pages string }{
		"two forms": {"alternative", part("plain", "Plain") + part("html", "<p>One"), "Plain", ""},
		"a hint at the HTML": {"alternative", part("plain", "Please view this in HTML") + part("html", "<p>One"),
			"[<p>One]", "<p>One"},
		"an empty form": {"alternative", part("plain", " ") + part("html", "<p>One"), "[<p>One]", "<p>One"},
		"a hint at empty HTML": {"alternative", part("plain", "Please view this in HTML") + part("html", ""),
			"Please view this in HTML", ""},
		"parts in a row": {"mixed", part("html", "One") + part("plain", "Two") + part("html", "Three"),
			"[One]\n\nTwo\n\n[Three]", "One Three"},
		"pages in a row":  {"mixed", part("html", "One") + part("html", " "), "[One]", "One  "},
		"nothing at all":  {"mixed", part("plain", "") + part("plain", " "), "", ""},
		"related to text": {"related", part("html", "One"), "[One]", "One"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			var seen []string
			convert := func(pages []string) ([]string, error) {
				is.Equal(len(seen), 0) // all at once
				for _, page := range pages {
					if seen = append(seen, page); strings.TrimSpace(page) == "" {
						pages[len(seen)-1] = ""
					} else {
						pages[len(seen)-1] = "[" + page + "]"
					}
				}
				return pages, nil
			}
			raw := []byte("Content-Type: multipart/" + tt.kind + "; boundary=b\r\n\r\n" + tt.body + "--b--\r\n")
			body, err := ReadBody(ReadHeader(raw), raw, convert, func(Attachment) error { return nil })
			is.NoErr(err)
			is.Equal(body.Text, tt.text)
			is.Equal(strings.Join(seen, " "), tt.pages)
		})
	}
}

// TestWithoutTags reads pages in time that grows linearly with their length.
func TestWithoutTags(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a<br>b":                           "a\nb",
		"<p>1 &lt; 2</P>":                  "\n1 < 2\n",
		"a<script>x</Script >b":            "ab",
		"a<style>x":                        "a",
		"a<b":                              "a",
		"a < b > c":                        "a  c",
		strings.Repeat("<script>", 30_000): "",
		strings.Repeat("<", 250_000):       "",
	} {
		is.New(t).Equal(withoutTags(in), want)
	}
	_, err := io.WriteString(io.Discard, withoutTags("<script>"+strings.Repeat("</", 120_000)))
	is.New(t).NoErr(err)
}
