package tool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

func TestSearchDocuments(t *testing.T) {
	t.Parallel()
	letter := packDocx(t, "<w:p><w:t>Dear Ann</w:t></w:p><w:p><w:t>Yours</w:t></w:p>")
	for name, tt := range map[string]struct {
		path, data string
		args       object
		want       string
	}{
		"pages": {"r.pdf", makePDF("one", "two needle", "three", "four needle"), object{"pattern": "needle"},
			"r.pdf\n[page 2 of 4]\n7:two needle\n[page 4 of 4]\n15:four needle\n[2 matches in 1 of 1 text files and documents]\n"},
		"context stays in its page": {"r.pdf", makePDF("one", "two needle"), object{"pattern": "needle", "context": 2},
			"r.pdf\n[page 2 of 2]\n6-\n7:two needle\n8-\n[1 matches in 1 of 1 text files and documents]\n"},
		"Word": {"l.docx", letter, object{"pattern": "Yours"}, "l.docx\n3:Yours\n[1 matches in 1 of 1 text files and documents]\n"},
		"archive": {"b.zip", zipped(t, "a/x.txt", "one\nneedle\n", "l.docx", letter, "in.zip", zipped(t, "y.txt", "needle"), "p.png", "\x89PNG\r\n\x1a\n\x00\x00"),
			object{"pattern": "needle|Ann"}, "b.zip/a/x.txt\n2:needle\nb.zip/l.docx\n1:Dear Ann\nb.zip/in.zip/y.txt\n1:needle\n" +
				"[3 matches in 3 of 3 text files and documents]\n[1 files in archives are not text, or too large, and were not searched]\n"},
		"folder in an archive": {"b.tgz", tarred(t, "a/x.txt", "needle", "b/x.txt", "needle"), object{"pattern": "needle", "path": "b.tgz/b"},
			"b.tgz/b/x.txt\n1:needle\n[1 matches in 1 of 1 text files and documents]\n"},
		"file in an archive": {"b.zip", zipped(t, "a/x.txt", "needle", "b/x.txt", "needle"), object{"pattern": "needle", "path": "b.zip/a/x.txt"},
			"b.zip/a/x.txt\n1:needle\n[1 matches in 1 of 1 text files and documents]\n"},
		"glob in an archive": {"b.zip", zipped(t, "a.txt", "needle", "b.md", "needle"), object{"pattern": "needle", "glob": "*.md", "path": "b.zip"},
			"[0 matches in 0 of 0 text files]\n"}, // the glob is for files of the workspace
		"glob of a folder": {"docs/b.zip", zipped(t, "a/x.txt", "needle"), object{"pattern": "needle", "glob": "docs/*.zip"},
			"docs/b.zip/a/x.txt\n1:needle\n[1 matches in 1 of 1 text files and documents]\n"},
		"long text in an archive": {"b.zip", zipped(t, "a.log", strings.Repeat("line\n", 1<<18)+"needle\n"), object{"pattern": "needle"},
			"b.zip/a.log\n262145:needle\n[1 matches in 1 of 1 text files and documents]\n"},
		"compressed file": {"l.gz", gzipped(t, "one\nneedle\n"), object{"pattern": "needle"},
			"l.gz/l\n2:needle\n[1 matches in 1 of 1 text files and documents]\n"},
		"source of a page": {"p.html", "<p>\n<b>needle</b>", object{"pattern": "needle"}, "p.html\n2:<b>needle</b>\n[1 matches in 1 of 1 text files]\n"},
		"text of a page": {"p.html", "<p>a ne<b>e</b>dle &amp; more", object{"pattern": "& more"},
			"p.html\n1:a ne**e**dle & more\n[1 matches in 1 of 1 text files and documents]\n"},
		"calendar": {"c.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:A lo\n ng word\nEND:VEVENT\nEND:VCALENDAR", object{"pattern": "long"},
			"c.ics\n2:## Event: A long word\n[1 matches in 1 of 1 text files and documents]\n"},
		"Shift_JIS": {"s.csv", "a;\x8c\xa9\x90\xcf\x8f\x91\x82\xcc\x8e\x91\x97\xbf\n", object{"pattern": "見積書"}, "s.csv\n1:a;見積書の資料\n[1 matches in 1 of 1 text files]\n"},
		"damaged": {"d.docx", "PK\x03\x04", object{"pattern": "x"}, "[0 matches in 0 of 0 text files and documents]\n" +
			"[1 documents have no text that can be searched: d.docx: it is damaged]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			h.put(t, tt.path, tt.data)
			is.Equal(h.text(t, "search_files", tt.args), tt.want)
		})
	}
}

func TestSearchNoMember(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	h.put(t, "b.zip", zipped(t, "a.txt", "needle"))
	h.put(t, "f.txt", "needle")
	h.refuses(t, "search_files", object{"pattern": "x", "path": "b.zip/none"}, `"b.zip" has no text below "none"`)
	h.refuses(t, "search_files", object{"pattern": "x", "path": "f.txt/none"}, "no files in it that can be searched")
}

func TestDocumentBudget(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var b documentBudget
	for range maxSearched {
		is.True(b.take(1))
	}
	is.True(!b.take(1))
	is.True(strings.Contains(b.notes(), "[1 documents were not searched: a call searches up to 200 of them, 256 MiB and 45 seconds; narrow"))
	large := documentBudget{}
	is.True(large.take(maxSearchedBytes))
	is.True(!large.take(1))
	late := documentBudget{begun: time.Now().Add(-maxSearchedTime - time.Second)}
	is.True(!late.take(1))
	late.fail("a", errors.New("first"))
	late.fail("b", errors.New("second"))
	is.True(strings.Contains(late.notes(), "[2 documents have no text that can be searched: a: first]"))
}

func TestTextCache(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var c textCache
	entry := func(n byte, size int) cachedTexts {
		return cachedTexts{key: [32]byte{n}, sections: []section{{text: strings.Repeat("x", size)}}}
	}
	has := func(n byte) bool { _, ok := c.get([32]byte{n}); return ok }
	c.add(entry(1, maxRemembered)) // too large
	is.True(!has(1))
	for n := range byte(5) {
		c.add(entry(n, maxRemembered/5))
		is.True(has(0)) // the newest is kept
	}
	is.True(has(0) && !has(1) && has(2) && has(4))
	ordertest.AtMost(is, c.bytes, maxRemembered)
}
