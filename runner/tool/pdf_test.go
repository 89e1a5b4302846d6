package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

// TestMain makes the test program also run as the process of a filter.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, Filters())
	if sandbox.IsChild(os.Args) {
		sandbox.Child()
	}
	os.Exit(m.Run())
}

// testDocuments converts the documents of the tests.
var testDocuments = NewDocuments(sandbox.NewFilterPool())

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
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "report.pdf", makePDF("Quarterly report\nRevenue grew by 14% (net).", "The board meets on Tuesday."))
	h.put(t, "named-otherwise", makePDF("Found by its first bytes"))
	h.put(t, "damaged.pdf", "%PDF-1.4\nand nothing of it")
	h.put(t, "empty.pdf", makePDF(""))
	h.put(t, "cut.pdf", makePDF("Quarterly report")[:400])
	for path, says := range map[string]string{
		"report.pdf":      `"Quarterly report\nRevenue grew by 14% (net).\n\n[page 2 of 2]\n\nThe board meets on Tuesday.\n\n"`,
		"named-otherwise": "Found by its first bytes",
	} {
		out, err := readFile{testDocuments}.Run(t.Context(), h, []byte(`{"path":"`+path+`"}`))
		if err != nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %s %v", path, out, err)
		}
	}
	for path, says := range map[string]string{"damaged.pdf": "damaged", "empty.pdf": "pictures", "cut.pdf": "damaged"} {
		_, err := readFile{testDocuments}.Run(t.Context(), h, []byte(`{"path":"`+path+`"}`))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", path, err, says)
		}
	}
	is := is.New(t)
	out, err := readFile{testDocuments}.Run(t.Context(), h, []byte(`{"path":"report.pdf","offset":6,"limit":1}`))
	is.NoErr(err)
	is.True(strings.Contains(string(out), `The board meets on Tuesday.\n`)) // with lines, like other text
}

// TestPagesInPages reads a document whose tree of pages has several levels, and one that contains itself.
func TestPagesInPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	never := func() bool { return false }
	flat := makePDF("first", "second")
	nested := strings.Replace(flat, "/Kids [4 0 R 6 0 R ]", "/Kids [4 0 R <</Type/Pages /Count 1 /Kids [6 0 R]>>]", 1)
	is.True(nested != flat)
	// The offsets of the objects behind the tree have moved.
	moved := len(nested) - len(flat)
	nested = regexp.MustCompile(`(?m)^(\d{10}) 00000 n $`).ReplaceAllStringFunc(nested, func(line string) string {
		at, err := strconv.Atoi(line[:10])
		is.NoErr(err)
		if at > strings.Index(flat, "/Kids") {
			at += moved
		}
		return fmt.Sprintf("%010d", at) + line[10:]
	})
	start := strings.LastIndex(nested, "xref\n0")
	nested = nested[:strings.LastIndex(nested, "startxref")] + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", start)
	text, err := pdfText([]byte(nested), never)
	is.NoErr(err)
	is.True(strings.Contains(string(text), "first") && strings.Contains(string(text), "second"))
	cyclic := strings.Replace(flat, "[4 0 R 6 0 R ]", "[2 0 R 6 0 R ]", 1)
	text, err = pdfText([]byte(cyclic), never)
	is.NoErr(err)
	is.True(strings.Contains(string(text), "second"))
}

func TestTidyPage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"The board meets on \nTuesday\n at ten.\nNext": "The board meets on Tuesday at ten.\nNext",
		"the o\ufb03ce":              "the office",
		"\n\n a \n\n":                "a",
		"Item\nAmount\nChairs":       "Item\nAmount\nChairs",
		"nul\x00 and escape\x1b[31m": "nul\ufffd and escape\ufffd[31m",
	} {
		is.New(t).Equal(tidyPage(in), want)
	}
}

// FuzzPDF reads random documents in a confined process. The result must be text or an *Error.
func FuzzPDF(f *testing.F) {
	f.Add([]byte(makePDF("one", "two")))
	f.Fuzz(func(t *testing.T, document []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		text, err := testDocuments.document(ctx, documentKindOf(pdfType), selection{}, document)
		var told *Error
		switch {
		case err == nil && strings.ContainsAny(text, "\x00\x1b"):
			t.Errorf("%q is no text", text)
		case err != nil && ctx.Err() == nil && !errors.As(err, &told):
			t.Error(err)
		}
	})
}
