//go:build !race

// The race detector makes every parser slower by another factor.

package pdfwriter

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/growthtest"
)

// parsers returns the writer of documents, with the text and with a picture as the input.
func parsers(t *testing.T) []growthtest.Parser {
	times, numbered := growthtest.Times, growthtest.Numbered
	write := func(markdown string, picture []byte) {
		input, err := json.Marshal(Input{Markdown: markdown, Pictures: map[string][]byte{"p": picture}})
		is.New(t).NoErr(err)
		_, _ = Write(input)
	}
	return []growthtest.Parser{
		{
			Name: "write pdf", Fuzz: []string{"FuzzWrite"}, Most: 32 << 10, Confined: true,
			Read: func(in []byte) { write(string(in), nil) }, Shapes: map[string]growthtest.Shape{
				"stars":      times("", "*a **b ", ""),
				"brackets":   times("", "[", ""),
				"pictures":   times("", "![a](b)", ""),
				"backquotes": numbered("", "`%d``", ""),
				"quotes":     times("", ">", "x"),
				"quote":      times("", "> x\n>\n", ""),
				"lists":      times("", "- ", "x"),
				"long word":  times("", "a", ""),
				"long cell":  times("|a|\n|-|\n|", "a", "|\n"),
				"words":      times("", "a ", ""),
				"columns": func(n int) string {
					return strings.Repeat("|a", n/6) + "|\n" + strings.Repeat("|-", n/6) + "|\n" + strings.Repeat("|b", n/6) + "|\n"
				},
				"rows":       times("|a|\n|-|\n", "|b|\n", ""),
				"tables":     times("", "|a|\n|-|\n\n", ""),
				"breaks":     times("|a|\n|-|\n|", "<br>", "|\n"),
				"headings":   times("", "# a\n", ""),
				"code":       times("```\n", "\ta\n", "```"),
				"long line":  times("```\n", "a", "\n```"),
				"new pages":  times("", "<i style='page-break-after: always'>\n\n", ""),
				"characters": func(n int) string { return wideText(n) },
				"marks":      times("a", "\u0301", ""),
				"links":      times("", "<http://a.b> ", "")}},
		{
			Name: "picture of a pdf", Fuzz: []string{"FuzzWrite"}, Most: 128 << 10, Confined: true,
			Read: func(in []byte) { write("![a](p)", in) }, Shapes: map[string]growthtest.Shape{
				"segments": times("\xff\xd8", "\xff\xe0\x00\x02", ""),
				"png":      times("\x89PNG\r\n\x1a\n", "\x00\x00\x00\x00tEXtAAAA", ""),
				"exif":     times("\xff\xd8\xff\xe1\xff\xffExif\x00\x00MM\x00\x2a\x00\x00\x00\x08\xff\xff", "\x00", "")}},
	}
}

// wideText returns a text of many different characters.
func wideText(n int) string {
	var b strings.Builder
	for r := rune(0x100); b.Len() < n; r++ {
		b.WriteRune(0x100 + r%0xd000)
	}
	return b.String()
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
