package pdf

import (
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg" // for the pictures of pages
	_ "image/png"  // for the pictures of pages
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
)

// testCache keeps the compiled PDFium for all runs of the tests.
var testCache = filepath.Join(os.TempDir(), "journeyman-test-cache")

// opened is the reader of all tests. A test holds the lock while it uses it.
var (
	opening sync.Mutex
	opened  *Reader
)

// read calls use with a reader that nothing has used.
func read(t testing.TB, use func(*Reader)) {
	t.Helper()
	is := is.New(t)
	opening.Lock()
	defer opening.Unlock()
	if opened == nil {
		is.NoErr(os.MkdirAll(testCache, 0o700))
		is.NoErr(Compile(testCache))
		r, err := Open(testCache)
		is.NoErr(err)
		opened = r
	} else {
		_ = opened.pdfium.Close() // fails after an error of PDFium, but frees its place
		var err error
		opened.pdfium, err = opened.pool.GetInstance(time.Minute)
		is.NoErr(err)
	}
	use(opened)
}

// text returns the text of pages of a document.
func text(t testing.TB, document, pages string) (out string, err error) {
	t.Helper()
	read(t, func(r *Reader) {
		var b []byte
		b, err = r.Text([]byte(document), pages, func() bool { return false })
		out = string(b)
	})
	return out, err
}

// makeDocument returns a document of objects. The first one is the catalog.
func makeDocument(objects ...string) string {
	var b, table strings.Builder
	b.WriteString("%PDF-1.7\n")
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n",
		len(objects)+1, table.String(), len(objects)+1, start)
	return b.String()
}

// stream returns a stream object.
func stream(dictionary, content string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), dictionary, content)
}

// helvetica is the object of a font, which must be object 3.
const helvetica = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"

// pages returns a document whose pages draw contents. more is added to the catalog.
func pages(more string, contents ...string) string {
	objects := []string{"", "", helvetica}
	var kids strings.Builder
	for _, c := range contents {
		n := len(objects) + 1
		fmt.Fprintf(&kids, "%d 0 R ", n)
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R "+
			"/Resources << /Font << /F1 3 0 R >> >> >>", n+1), stream("", c))
	}
	objects[0] = "<< /Type /Catalog /Pages 2 0 R " + more + " >>"
	objects[1] = fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), len(contents))
	return makeDocument(objects...)
}

// line returns the content of a page with one line of text.
func line(words string) string { return "BT /F1 12 Tf 72 700 Td (" + words + ") Tj ET" }

func TestPages(t *testing.T) {
	t.Parallel()
	labels := "/PageLabels << /Nums [0 << /S /r >> 3 << /S /D >> 5 << /P (A-) /S /D >>] >>"
	six := pages(labels, line("one"), line("two"), line("three"), line("four"), line("five"), line("six"))
	for selection, want := range map[string]string{
		"":       "one two three four five six",
		"2":      "two",
		"2-3":    "two three",
		"6, 1-2": "six one two",
		"iii":    "three",
		"ii-iii": "two three",
		"A-1":    "six",
		"iii-5":  "three four five",
		"4":      "four", // numbers are those of pages, not labels
	} {
		out, err := text(t, six, selection)
		is := is.New(t)
		is.NoErr(err)
		var words []string
		for line := range strings.Lines(out) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '[' {
				words = append(words, line)
			}
		}
		is.Equal(strings.Join(words, " "), want)
	}
	for _, selection := range []string{"0", "7", "2-9", "3-2", "-", "", "iv", "x", ",", "1,,2", "1-", "99999999999999999999"} {
		out, err := text(t, six, selection+" ")
		if err == nil || !strings.Contains(err.Error(), "it has 6") {
			t.Errorf("%q: %q %v", selection, out, err)
		}
	}
	is := is.New(t)
	out, err := text(t, six, "2,4,6")
	is.NoErr(err)
	is.Equal(out, "[page 2 of 6, labelled \"ii\"]\n\ntwo\n\n[page 4 of 6, labelled \"1\"]\n\nfour\n\n"+
		"[page 6 of 6, labelled \"A-1\"]\n\nsix\n\n")
}

// TestTextAsSeen reads what a page shows: operators that only move, forms, tables, links, fields and comments.
func TestTextAsSeen(t *testing.T) {
	t.Parallel()
	annotated := func(annotations, form string) string {
		return makeDocument("<< /Type /Catalog /Pages 2 0 R "+form+" >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>", helvetica,
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> /Annots ["+
				annotations+"] >>", stream("", line("See our page today")))
	}
	const place = "/Rect [90 695 144 715] "
	for name, tt := range map[string]struct{ document, want string }{
		"moves": {pages("", "BT /F1 12 Tf 72 700 Td (Simple) Tj 42 0 Td (parsing) Tj 1 0 0 1 72 680 Tm [(For) -300 (types)] TJ ET"),
			"Simple parsing\nFor types"},
		"table": {pages("", "BT /F1 12 Tf 72 700 Td (Apples) Tj 100 0 Td (3) Tj 100 0 Td (1.20) Tj -200 -20 Td (Pears) Tj 200 0 Td (2.50) Tj ET"),
			"Apples          3               1.20\nPears                            2.50"},
		"link": {annotated("<< /Type /Annot /Subtype /Link "+place+"/A << /S /URI /URI (https://example.com/a) >> >>", ""),
			"See our page <https://example.com/a> today"},
		"link that is shown": {strings.Replace(annotated("<< /Type /Annot /Subtype /Link /Rect [60 695 300 715] /A << /S /URI /URI (https://our.page/) >> >>", ""),
			"See our page today", "See our.page/ today", 1), "See our.page/ today"},
		"comment": {annotated("<< /Type /Annot /Subtype /Text "+place+"/T (Ann) /Contents (Is this\\nright?) >>", ""),
			"See our page today\n[comment of Ann: \"Is this right?\"]"},
		"hidden comment": {annotated("<< /Type /Annot /Subtype /Text /F 2 "+place+"/T (Ann) /Contents (no) >>", ""), "See our page today"},
		"field": {makeDocument("<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R] >> >>",
			"<< /Type /Pages /Kids [4 0 R] /Count 1 >>", helvetica,
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> /Annots [6 0 R 7 0 R] >>",
			stream("", line("Form")),
			"<< /Type /Annot /Subtype /Widget /FT /Tx /T (f1) /TU (Surname) /V (Lovelace) "+place+">>",
			"<< /Type /Annot /Subtype /Widget /FT /Btn /T (Member) /V /Yes /AS /Yes "+place+">>"),
			"Form\n[field \"Surname\": \"Lovelace\"]\n[field \"Member\": checked]"},
		"form of a stamp": {makeDocument("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>", helvetica,
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> >>",
			stream("", "/X Do"), stream("/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >>", line("Paid"))), "Paid"},
		"invisible": {pages("", "BT 3 Tr /F1 12 Tf 72 700 Td (recognized) Tj ET"), "recognized"},
		"empty":     {pages("", ""), "(This page is empty.)"},
		"controls":  {pages("", line(`a\000\033b`)), "a\ufffdb"},
	} {
		out, err := text(t, tt.document, "")
		if got := strings.TrimSpace(out); err != nil || got != tt.want {
			t.Errorf("%s: %q %v, not %q", name, got, err, tt.want)
		}
	}
}

// square draws a picture of one pixel.
const square = "q 200 0 0 200 100 100 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x80 EI Q"

func TestScan(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	out, err := text(t, pages("", square, square), "")
	is.NoErr(err)
	is.True(strings.HasPrefix(out, "[No page of this document has text: they are pictures"))
	is.True(strings.Contains(out, "[page 2 of 2]\n\n(This page has no text, only a picture: view_image with page 2 shows it.)"))
	out, err = text(t, pages("", line("cover"), square), "")
	is.NoErr(err)
	is.True(strings.HasPrefix(out, "[page 1 of 2]\n\ncover\n\n[page 2 of 2]\n\n(This page has no text, only a picture"))
}

func TestPicture(t *testing.T) {
	t.Parallel()
	boxed := func(page string) string {
		return strings.Replace(pages("", line("Hello")), "/MediaBox [0 0 600 800]", page, 1)
	}
	for name, tt := range map[string]struct {
		document      string
		width, height int
	}{
		"upright":    {boxed("/MediaBox [0 0 600 800]"), 750, 1000},
		"rotated":    {boxed("/MediaBox [0 0 600 800] /Rotate 90"), 1000, 750},
		"huge":       {boxed("/MediaBox [0 0 1000000 2000000]"), 500, 1000},
		"small":      {boxed("/MediaBox [0 0 24 12]"), 96, 48},
		"thin":       {boxed("/MediaBox [0 0 14400 1]"), 1000, 1},
		"moved":      {boxed("/MediaBox [-300 -400 300 400]"), 750, 1000},
		"upside":     {boxed("/MediaBox [600 800 0 0]"), 750, 1000},
		"cropped":    {boxed("/MediaBox [0 0 600 800] /CropBox [0 0 300 300]"), 1000, 1000},
		"no size":    {boxed("/MediaBox [0 0 0 0]"), 772, 999}, // PDFium takes that of Letter
		"infinite":   {boxed("/MediaBox [0 0 1e39 1e39]"), 772, 999},
		"user units": {boxed("/MediaBox [0 0 600 800] /UserUnit 75000"), 750, 1000},
	} {
		read(t, func(r *Reader) {
			out, err := r.Picture([]byte(tt.document), 1, 1000, 1<<20)
			config, format, failed := image.DecodeConfig(bytes.NewReader(out))
			if err != nil || failed != nil || format != "png" || config.Width != tt.width || config.Height != tt.height {
				t.Errorf("%s: %v %v, %s of %d x %d", name, err, failed, format, config.Width, config.Height)
			}
		})
	}
	is := is.New(t)
	read(t, func(r *Reader) {
		_, err := r.Picture([]byte(pages("", line("Hello"))), 2, 1000, 1<<20)
		is.True(err != nil && err.Error() == "it has 1 pages, so there is no page 2")
	})
	read(t, func(r *Reader) {
		out, err := r.Picture([]byte(pages("", line("Hello"))), 1, 1000, 100)
		is.NoErr(err)
		_, format, err := image.DecodeConfig(bytes.NewReader(out))
		is.NoErr(err)
		is.Equal(format, "jpeg") // PNG would be too large
	})
}

// TestVersion compares the name of the compiled form with the modules in go.mod.
func TestVersion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	mod, err := os.ReadFile("../../../go.mod")
	is.NoErr(err)
	for module := range strings.SplitSeq(version, ", ") {
		is.True(bytes.Contains(mod, []byte("/"+module+"\n"))) // change the constant with the module
	}
}
