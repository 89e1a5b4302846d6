package pdf

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// made returns the path of a document that another program has made.
func made(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	if folder == "" {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	return filepath.Join(folder, name)
}

// madeText returns the text of such a document.
func madeText(t *testing.T, name string) string {
	t.Helper()
	is := is.New(t)
	b, err := os.ReadFile(made(t, name))
	is.NoErr(err)
	out, err := text(t, string(b), "")
	is.NoErr(err)
	return out
}

// addressMark matches the address of a link, which a page does not show.
var addressMark = regexp.MustCompile(` <\w+:[^>]*>`)

// inOrder returns how many of the words stand in a text in this order.
func inOrder(words, text []string) int {
	// The length of the longest common subsequence, row by row.
	row := make([]int, len(text)+1)
	for _, w := range words {
		before := 0 // of the previous row, one column to the left
		for i, x := range text {
			above := row[i+1]
			if w == x {
				row[i+1] = before + 1
			} else {
				row[i+1] = max(above, row[i])
			}
			before = above
		}
	}
	return row[len(text)]
}

// TestWordsOfOtherPrograms compares the text of documents with the words that a person sees.
func TestWordsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pdftex-article", "groff-manual", "weasyprint-invoice", "chromium-report", "libreoffice-writer",
		"libreoffice-calc", "libreoffice-impress", "gs-recognized", "gs-encrypted"} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			out := madeText(t, name+".pdf")
			b, err := os.ReadFile(made(t, name+".words"))
			is.NoErr(err)
			words := strings.Fields(string(b))
			ordertest.Above(is, len(words), 10)
			out = addressMark.ReplaceAllString(out, "")
			if found := inOrder(words, strings.Fields(out)); found*100 < len(words)*99 {
				t.Errorf("%d of %d words:\n%s\n%s", found, len(words), out, words)
			}
		})
	}
}

// TestTablesOfOtherPrograms checks that a row of a table is a line, and that an empty cell leaves a gap.
func TestTablesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][]string{
		"pdftex-article":     {"Name Qty Price", "Apples 3 1.20", "Pears 2.50"},
		"weasyprint-invoice": {"Artikel Menge Preis", "Äpfel, süß 3 1.200,50 €", "Birnen 2,50 €"},
		"chromium-report":    {"Artikel Menge Preis", "Äpfel, süß 3 1.200,50 €", "Birnen 2,50 €"},
		"libreoffice-writer": {"Artikel Menge Preis", "Äpfel, süß 3 1.200,50 €", "Birnen 2,50 €"},
		"libreoffice-calc":   {"Region Units Revenue Note", "North 120 2400.5 first", "South 310 second", "Total 120 2710.5"},
	} {
		is := is.New(t)
		var lines []string
		for line := range strings.Lines(madeText(t, name+".pdf")) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
			for _, empty := range []string{"Pears", "Birnen", "South"} {
				is.True(!strings.HasPrefix(line, empty) || strings.Contains(line, strings.Repeat(" ", 8)))
			}
		}
		for _, row := range rows {
			is.True(slices.Contains(lines, row)) // row
		}
	}
}

// TestMarksOfOtherPrograms checks fields, comments, links and labels.
func TestMarksOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"pdftex-form": {`[field "surname": "Lovelace"]`, `[field "remark": empty]`, `[field "member": checked]`,
			`[field "news": not checked]`, `[field "colour": "green"]`, `[comment of Ann: "Please check the second line."]`,
			`[text on the page: "Paid on 3 May"]`},
		"pdftex-article":     {`[page 1 of 2, labelled "i"]`, "the home page <https://example.com/flow> for more"},
		"weasyprint-invoice": {"our help pages <https://example.com/help>."},
		"chromium-report":    {"our help pages <https://example.com/help>"},
		"libreoffice-writer": {"our help pages <https://example.com/help>."},
		"gs-scan":            {"No page of this document has text"},
	} {
		out := strings.Join(strings.Fields(madeText(t, name+".pdf")), " ")
		for _, mark := range want {
			if !strings.Contains(out, mark) {
				t.Errorf("%s lacks %q:\n%s", name, mark, out)
			}
		}
	}
}

// TestScanOfOtherPrograms renders a scan, and refuses a document with a password.
func TestScanOfOtherPrograms(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	scan, err := os.ReadFile(made(t, "gs-scan.pdf"))
	is.NoErr(err)
	read(t, func(r *Reader) {
		out, err := r.Picture(scan, 1, 1568, 1<<20)
		is.NoErr(err)
		config, _, err := image.DecodeConfig(bytes.NewReader(out))
		is.NoErr(err)
		is.Equal(config.Height, 1568)
	})
	secret, err := os.ReadFile(made(t, "gs-encrypted-secret.pdf"))
	is.NoErr(err)
	_, err = text(t, string(secret), "")
	is.True(err != nil && strings.HasPrefix(err.Error(), "a password protects it"))
}
