package files_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

func TestFileList(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Printer"})
	path := "/workers/" + w.ID + "/files"
	b.Get(path).Shows("This worker has published no files yet", "curl "+s.URL)
	s.Publish(w, "a.txt", "first")
	s.Publish(w, "reports/2030 März/b?#%2F+x.md", "# Hello")
	s.Publish(w, "a.txt", "second")
	b.PublishBytes(w, "pixel.png", []byte("\x89PNG\r\n\x1a\nattached"))
	p := b.Get(path)
	is.Equal(len(p.Previews()), 3) // the newest version of each
	at := strings.Index
	ordertest.Below(is, at(p.Body, "pixel.png"), at(p.Body, "a.txt"))       // newest first
	ordertest.Below(is, at(p.Body, "a.txt"), at(p.Body, "b?#%2F&#43;x.md")) // newest first
	for name, address := range p.Previews() {
		shown := b.Get(address)
		is.Equal(shown.Status, http.StatusOK)
		m := regexp.MustCompile(`<a class="button" href="([^"]*)" download="`).FindStringSubmatch(shown.Body)
		file := b.Get(strings.ReplaceAll(m[1], "&#43;", "+"))
		is.Equal(file.Status, http.StatusOK) // the address of the bytes works for any name
		is.True(name != "a.txt" || file.Body == "second" && shown.Has("second</pre>"))
	}
	is.Equal(b.Get("/workers/"+w.ID+"/preview/none.txt").Status, http.StatusNotFound)
	is.Equal(b.Get(path+"?cursor=%21").Status, http.StatusBadRequest)

	// A script with a hundred files.
	var lines []string
	for i := range 60 {
		name := fmt.Sprintf("many-%02d.txt", i)
		lines = append(lines, dashboardtest.Calling("write_file", "path", name, "content", "x"),
			dashboardtest.Calling("publish_file", "path", name))
	}
	is.Equal(s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Input: dashboardtest.Scripted(lines...)}).Status,
		store.Completed)
	first := b.Get(path)
	is.Equal(len(first.Previews()), 25)
	first.SmallerThan(50 << 10)
	second := b.Get(dashboardtest.Href(b.Get(dashboardtest.Href(first, "Older files")), "Older files"))
	is.Equal(len(second.Previews()), 13)
	is.True(second.Has("To the newest") && !second.Has("Older files"))
}

func TestFilePreviews(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{})
	png, err := base64.StdEncoding.DecodeString(dashboardtest.Pixel)
	is.New(t).NoErr(err)
	pdf, err := os.ReadFile("../testdata/one.pdf")
	is.New(t).NoErr(err)
	for name, tt := range map[string]struct {
		content string
		has     string
		lacks   string
	}{
		"page.html": {dashboardtest.Hostile, ` sandbox="" title="page.html"></iframe>`, "<script>alert(1)"},
		"notes.md": {"# Notes\n\n[x](javascript:alert(1)) **bold**\n\n" + dashboardtest.Hostile, "<strong>bold</strong>",
			"javascript:"},
		"data.json": {`{"a": "</pre><script>alert(1)</script>"}`,
			"&#34;a&#34;</span>: <span class=\"s2\">&#34;&lt;/pre&gt;&lt;script&gt;", "</pre><script"},
		"drawing.svg": {`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`,
			`<img class="preview" src="/api/workers/`, "alert(1)"},
		"long.txt":    {strings.Repeat("a line of text\n", 10_000), "Only the beginning is shown", "There is no preview"},
		"odd.bin":     {"\x00\x01\x02", "There is no preview", "\x00"},
		"text.xyz":    {"plain words", "plain words</pre>", "There is no preview"},
		"pixel.png":   {string(png), `<img class="preview" src="/api/workers/`, "<pre"},
		"one.pdf":     {string(pdf), "This is the text of the document", "<iframe"},
		"sheet.csv":   {"Name;Note\n\"A;B\";<script>alert(1)</script>\n", "<td>A;B</td><td>&lt;script&gt;", "<script>alert"},
		"broken.docx": {"PK no document", "The text of this document cannot be read", "PK no"},
		"empty.txt":   {"", "<pre tabindex=\"0\"></pre>", "There is no preview"},
	} {
		t.Run(name, func(t *testing.T) {
			if raced && name == "one.pdf" {
				t.Skip("compiling the reader of PDF documents takes minutes with the race detector")
			}
			is := is.New(t)
			b.PublishBytes(w, name, []byte(tt.content))
			p := b.Get("/workers/" + w.ID + "/preview/" + name)
			p.Answers(http.StatusOK).Shows(tt.has)
			p.Lacks(tt.lacks)
			is.True(p.Harmless())
			file := b.Get("/api/workers/" + w.ID + "/files/" + name)
			is.Equal(file.Body, tt.content)
			is.True(strings.Contains(file.Header.Get("Content-Security-Policy"), "default-src 'none'"))
			is.Equal(file.Header.Get("X-Content-Type-Options"), "nosniff")
		})
	}
}
