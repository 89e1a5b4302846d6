package dashboard_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

var previews = regexp.MustCompile(`<th scope="row"><a href="([^"]*/preview/[^"]*)">([^<]*)</a>`)

// previews returns the addresses of the files on a page, by path.
func (p page) previews() map[string]string {
	list := map[string]string{}
	for _, m := range previews.FindAllStringSubmatch(p.body, -1) {
		list[m[2]] = strings.ReplaceAll(m[1], "&#43;", "+")
	}
	return list
}

// pixel is a picture.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// publish publishes a text file of a worker.
func (s *site) publish(w workers.Worker, path, content string) {
	s.t.Helper()
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Input: scripted(calling("write_file", "path", path, "content", content), calling("publish_file", "path", path))})
	if turn.Status != store.Completed {
		s.t.Fatalf("publish %s: %+v", path, turn.Failure)
	}
}

// publishBytes publishes a binary file of a worker.
func (b *browser) publishBytes(w workers.Worker, name string, content []byte) {
	b.t.Helper()
	p := b.send(b.form("/workers/"+w.ID+"/run", []string{"input", scripted(calling("publish_file", "path", name))}, name, string(content)))
	if turn := b.ended(strings.TrimPrefix(p.location(), "/tasks/")); turn.Status != store.Completed {
		b.t.Fatalf("publish %s: %+v", name, turn.Failure)
	}
}

func TestFileList(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Printer"})
	path := "/workers/" + w.ID + "/files"
	b.get(path).shows("This worker has published no files yet", "curl "+s.url)
	s.publish(w, "a.txt", "first")
	s.publish(w, "reports/2030 März/b?#%2F+x.md", "# Hello")
	s.publish(w, "a.txt", "second")
	b.publishBytes(w, "pixel.png", []byte("\x89PNG\r\n\x1a\nattached"))
	p := b.get(path)
	is.Equal(len(p.previews()), 3) // the newest version of each
	at := strings.Index
	ordertest.Below(is, at(p.body, "pixel.png"), at(p.body, "a.txt"))       // newest first
	ordertest.Below(is, at(p.body, "a.txt"), at(p.body, "b?#%2F&#43;x.md")) // newest first
	for name, address := range p.previews() {
		shown := b.get(address)
		is.Equal(shown.status, http.StatusOK)
		m := regexp.MustCompile(`<a class="button" href="([^"]*)" download="`).FindStringSubmatch(shown.body)
		file := b.get(strings.ReplaceAll(m[1], "&#43;", "+"))
		is.Equal(file.status, http.StatusOK) // the address of the bytes works for any name
		is.True(name != "a.txt" || file.body == "second" && shown.has("second</pre>"))
	}
	is.Equal(b.get("/workers/"+w.ID+"/preview/none.txt").status, http.StatusNotFound)
	is.Equal(b.get(path+"?cursor=%21").status, http.StatusBadRequest)

	// A script with a hundred files.
	var lines []string
	for i := range 60 {
		name := fmt.Sprintf("many-%02d.txt", i)
		lines = append(lines, calling("write_file", "path", name, "content", "x"), calling("publish_file", "path", name))
	}
	is.Equal(s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Input: scripted(lines...)}).Status, store.Completed)
	first := b.get(path)
	is.Equal(len(first.previews()), 25)
	first.smallerThan(50 << 10)
	second := b.get(link(b.get(link(first, "Older files")), "Older files"))
	is.Equal(len(second.previews()), 13)
	is.True(second.has("To the newest") && !second.has("Older files"))
}

func TestFilePreviews(t *testing.T) {
	_, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{})
	png, err := base64.StdEncoding.DecodeString(pixel)
	is.New(t).NoErr(err)
	pdf, err := os.ReadFile("testdata/one.pdf")
	is.New(t).NoErr(err)
	for name, tt := range map[string]struct {
		content string
		has     string
		lacks   string
	}{
		"page.html":   {hostile, ` sandbox="" title="page.html"></iframe>`, "<script>alert(1)"},
		"notes.md":    {"# Notes\n\n[x](javascript:alert(1)) **bold**\n\n" + hostile, "<strong>bold</strong>", "javascript:"},
		"data.json":   {`{"a": "</pre><script>alert(1)</script>"}`, "&#34;a&#34;</span>: <span class=\"s2\">&#34;&lt;/pre&gt;&lt;script&gt;", "</pre><script"},
		"drawing.svg": {`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`, `<img class="preview" src="/api/workers/`, "alert(1)"},
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
			b.publishBytes(w, name, []byte(tt.content))
			p := b.get("/workers/" + w.ID + "/preview/" + name)
			p.answers(http.StatusOK).shows(tt.has)
			p.lacks(tt.lacks)
			is.True(p.harmless())
			file := b.get("/api/workers/" + w.ID + "/files/" + name)
			is.Equal(file.body, tt.content)
			is.True(strings.Contains(file.header.Get("Content-Security-Policy"), "default-src 'none'"))
			is.Equal(file.header.Get("X-Content-Type-Options"), "nosniff")
		})
	}
}
