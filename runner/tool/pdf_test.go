package tool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

// TestMain makes the test program also run as the process of a filter.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, Filters())
	if sandbox.IsChild(os.Args) {
		sandbox.Child()
	}
	os.Exit(m.Run())
}

// testDocuments converts the documents of the tests. All runs of the tests share the compiled reader of PDF documents.
var testDocuments = NewDocuments(sandbox.NewFilterPoolWithin(8<<30, filepath.Join(os.TempDir(), "journeyman-test-cache")))

// makePDF returns a document with the lines of each page in Helvetica.
func makePDF(pages ...string) string {
	var b bytes.Buffer
	var offsets []int
	object := func(format string, args ...any) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(offsets)}, args...)...)
	}
	b.WriteString("%PDF-1.4\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
	}
	object("<< /Type /Pages /Kids [%s] /Count %d >>", kids.String(), len(pages))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, page := range pages {
		object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 5+2*i)
		var content strings.Builder
		content.WriteString("BT /F1 12 Tf 72 720 Td 14 TL\n")
		for line := range strings.SplitSeq(page, "\n") {
			fmt.Fprintf(&content, "(%s) Tj T*\n", strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line))
		}
		content.WriteString("ET")
		object("<< /Length %d >>\nstream\n%s\nendstream", content.Len(), content.String())
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.String()
}

func TestReadPDF(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	h.put(t, "report.pdf", makePDF("Quarterly report\nRevenue grew by 14% (net).", "The board meets on Tuesday.", "End"))
	h.put(t, "named-otherwise", makePDF("Found by its first bytes"))
	h.put(t, "damaged.pdf", "%PDF-1.4\nand nothing of it")
	h.put(t, "empty.pdf", makePDF(""))
	h.put(t, "cut.pdf", makePDF("Quarterly report")[:400])
	h.put(t, "notes.txt", "plain")
	for call, says := range map[string]string{
		`{"path":"report.pdf"}`: `"[page 1 of 3]\n\nQuarterly report\nRevenue grew by 14% (net).\n\n[page 2 of 3]\n\n` +
			`The board meets on Tuesday.\n\n[page 3 of 3]\n\nEnd\n\n"`,
		`{"path":"report.pdf","pages":"2"}`:          `"[page 2 of 3]\n\nThe board meets on Tuesday.\n\n"`,
		`{"path":"report.pdf","pages":"3,1"}`:        `"[page 3 of 3]\n\nEnd\n\n[page 1 of 3]\n\nQuarterly report\n`,
		`{"path":"report.pdf","offset":8,"limit":1}`: `The board meets on Tuesday.\n`, // with lines, like other text
		`{"path":"named-otherwise"}`:                 "Found by its first bytes",
		`{"path":"empty.pdf"}`:                       "(This page is empty.)",
	} {
		out, err := readFile{testDocuments}.Run(t.Context(), h, []byte(call))
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %s %v", call, out, err)
		}
	}
	for call, says := range map[string]string{
		`{"path":"damaged.pdf"}`:                "the PDF document has no text that can be read: it is damaged",
		`{"path":"cut.pdf"}`:                    "damaged",
		`{"path":"report.pdf","pages":"2-4"}`:   `this part of the PDF document cannot be read: pages "2-4" names no pages of it: it has 3`,
		`{"path":"report.pdf","pages":"cover"}`: "it has 3",
		`{"path":"notes.txt","pages":"1"}`:      "pages does not apply",
	} {
		_, err := readFile{testDocuments}.Run(t.Context(), h, []byte(call))
		var told *Error
		if !errors.As(err, &told) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", call, err, says)
		}
	}
}

// TestViewPage shows pages of a document as pictures.
func TestViewPage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "report.pdf", makePDF("one", "two"))
	h.put(t, "notes.txt", "plain")
	for call, page := range map[string]string{`{"path":"report.pdf","page":2}`: "2", `{"path":"report.pdf"}`: "1"} {
		h.images = nil
		out, err := viewImage{testDocuments}.Run(t.Context(), h, []byte(call))
		is.NoErr(err)
		is.True(strings.Contains(string(out), "Page "+page+" of report.pdf: PNG, 1212 x 1568 pixels."))
		is.Equal(h.images, []string{"report.pdf#page=" + page + " image/png"})
	}
	for call, says := range map[string]string{
		`{"path":"report.pdf","page":3}`: "page 3 of the PDF document cannot be shown: it has 2 pages, so there is no page 3",
		`{"path":"notes.txt","page":1}`:  `page is for PDF documents, and "notes.txt" is none`,
		`{"path":"report.pdf","page":0}`: "page must be at least 1",
	} {
		_, err := viewImage{testDocuments}.Run(t.Context(), h, []byte(call))
		is.True(err != nil && strings.Contains(err.Error(), says))
	}
}
