//go:build !race

// The race detector makes every parser slower by another factor.

package pdf

import (
	"fmt"
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// shapes returns the shapes of PDF documents.
func shapes() map[string]growthtest.Shape {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	all := map[string]growthtest.Shape{}
	// What a page draws.
	for name, shape := range map[string]growthtest.Shape{
		"text": times("BT /F1 12 Tf ", "(a) Tj ", "ET"), "long text": times("BT /F1 12 Tf (", "a", ") Tj ET"),
		"operands": times("BT ", "1 ", "Td ET"), "lists": nested("BT ", "[", "1", "] TJ ET"),
		"dictionaries": nested("", "<</a ", "1", ">>"), "open texts": times("BT ", "(", ""),
		"graphics states": times("", "q ", ""), "names": numbered("", "/n%d ", ""),
		"fonts": times("BT ", "/F1 12 Tf ", "ET"), "matrices": times("BT ", "1 0 0 1 0 0 cm ", "ET"),
		"accents": times("BT /F1 12 Tf (", `a\250`, ") Tj ET"),
		"pieces":  times("BT /F1 12 Tf [", "(a) -9000 ", "] TJ ET")} {
		all["page of "+name] = func(n int) string { return pages("", shape(n)) }
	}
	// Pieces of the document.
	for name, shape := range map[string]growthtest.Shape{
		"nested lists": nested("", "[", "1", "]"), "nested dictionaries": nested("", "<</a ", "1", ">>"),
		"many keys": numbered("<<", "/k%d 1 ", ">>"), "long text": times("(", "a", ")"),
		"nested text": nested("(", "(", "", "))"),
		"long name":   times("/", "#41", ""), "comments": times("", "%\n", "1"), "white space": times("", " ", "1")} {
		all[name] = func(n int) string { return pages("/X "+shape(n), line("x")) }
	}
	all["pages"] = func(n int) string { return pages("", make([]string, n/300)...) }
	all["links"] = func(n int) string {
		annotation := "<< /Type /Annot /Subtype /Link /Rect [60 695 300 715] /A << /S /URI /URI (http://a) >> >>"
		return strings.Replace(pages("", line("words")), "/MediaBox", "/Annots ["+strings.Repeat(annotation, n/len(annotation))+"] /MediaBox", 1)
	}
	all["update chain"] = func(n int) string {
		var b strings.Builder
		b.WriteString("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n")
		at := 0
		for b.Len() < n {
			previous := at
			at = b.Len()
			fmt.Fprintf(&b, "xref\n0 1\n0000000000 65535 f \ntrailer\n<< /Size 2 /Root 1 0 R /Prev %d >>\n", previous)
		}
		fmt.Fprintf(&b, "startxref\n%d\n%%%%EOF\n", at)
		return b.String()
	}
	all["many objects"] = func(n int) string {
		return makeDocument(append([]string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>"},
			make([]string, n/40)...)...)
	}
	return all
}

func TestParsersGrowSlowly(t *testing.T) {
	growthtest.Check(t, []growthtest.Parser{{
		Name: "PDF", Fuzz: []string{"FuzzText"}, Most: 128 << 10, Confined: true,
		Read:   func(in []byte) { _, _ = text(t, string(in), "") },
		Shapes: shapes()}})
}
