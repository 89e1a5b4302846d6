package tool

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
	"golang.org/x/text/unicode/norm"
)

// Limits of a document. A longer one is read as far as the time allows.
const (
	maxPages = 2000
	maxPDF   = 8 << 20 // bytes of text

	maxPageNodes = 3 * maxPages // nodes of the tree of pages
	maxPageDepth = 50           // levels of this tree
)

// pdfText returns the text of a PDF document. Before every page except the first, it adds a
// line with the page number. It stops before a page when expired reports true. It may panic or never
// return for a hostile document.
func pdfText(document []byte, expired func() bool) ([]byte, error) {
	r, err := pdf.NewReader(bytes.NewReader(document), int64(len(document)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return nil, errors.New("a password protects it")
	}
	if err != nil {
		return nil, errors.New("it is damaged")
	}
	var b strings.Builder
	all := pageTree{left: maxPageNodes}
	all.add(r.Trailer().Key("Root").Key("Pages"), 0)
	found, pages, read := false, max(r.NumPage(), 0, len(all.pages)), 0
	for i := 1; i <= len(all.pages) && b.Len() < maxPDF && !expired(); i++ {
		read = i
		// One damaged page must not prevent reading the others.
		text, err := all.pages[i-1].GetPlainText(nil)
		if err != nil {
			text = "(This page cannot be read.)"
		}
		text = tidyPage(text)
		// Page numbers and error notes do not count as text. Without other text, the model must
		// get an error.
		found = found || text != "" && err == nil
		if i > 1 {
			fmt.Fprintf(&b, "[page %d of %d]\n\n", i, pages)
		}
		b.WriteString(text + "\n\n")
	}
	if !found {
		return nil, errors.New("it holds pictures of pages, or nothing")
	}
	if pages > read {
		fmt.Fprintf(&b, "[%d more pages are not read]\n", pages-read)
	}
	return []byte(b.String()), nil
}

// A pageTree collects the pages of a document. The library would search the whole tree for each page.
type pageTree struct {
	pages []pdf.Page
	left  int // nodes that may still be read
}

// add adds the pages below a node of the tree, which is depth nodes deep. A hostile tree can contain itself.
func (t *pageTree) add(node pdf.Value, depth int) {
	if t.left--; t.left < 0 || depth > maxPageDepth || len(t.pages) == maxPages {
		return
	}
	switch node.Key("Type").Name() {
	case "Page":
		t.pages = append(t.pages, pdf.Page{V: node})
	case "Pages":
		kids := node.Key("Kids")
		for i := 0; i < kids.Len() && t.left > 0; i++ {
			t.add(kids.Index(i), depth+1)
		}
	}
}

// tidyPage joins lines that a change of typeface has split, and replaces ligatures by letters.
// A line continues the previous one if it begins with a space, or if the previous one does.
func tidyPage(text string) string {
	var b strings.Builder
	for line := range strings.Lines(printable(norm.NFKC.String(text))) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasPrefix(line, " ") && !strings.HasSuffix(b.String(), " ") {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}
