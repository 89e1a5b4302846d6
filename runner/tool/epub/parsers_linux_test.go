//go:build !race

// The race detector makes every parser slower by another factor.

package epub

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	numbered, times := growthtest.Numbered, growthtest.Times
	shapes := map[string]growthtest.Shape{}
	for name, shape := range map[string]growthtest.Shape{
		"pages":          numbered(contents, `<item id="%[1]d" href="%[1]d"/>`, "</manifest></package>"),
		"chapters":       times(contents+`<item id="a" href="../a.xhtml"/></manifest><spine>`, `<itemref idref="a"/>`, "</spine></package>"),
		"facts":          times("<package>", "<title>a</title>", "</package>"),
		"a long fact":    times("<package><title>", "a", "</title></package>"),
		"missing pages":  numbered("<package>", `<itemref idref="%d"/>`, "</package>"),
		"a page of text": times("<package>", " ", "</package>"),
	} {
		shapes[name] = func(n int) string {
			return string(pack(t, "META-INF/container.xml", rootFile, "OPS/book.opf", shape(n), "a.xhtml", strings.Repeat("x", 1000)))
		}
	}
	read := Text(func(page []byte) string { return string(page) })
	growthtest.Check(t, []growthtest.Parser{{
		Name: "book", Fuzz: []string{"FuzzText"}, Most: 1 << 20,
		Read: func(in []byte) { _, _ = read(in, never) }, Shapes: shapes}})
}
