//go:build !race

// The race detector makes every parser slower by another factor.

package rtf

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	growthtest.Check(t, []growthtest.Parser{{
		Name: "RTF", Fuzz: []string{"FuzzText"},
		Read: func(in []byte) { _, _ = Text(in, never) },
		Shapes: growthtest.Within(string(example("")[:len(example(""))-1]), "}", map[string]growthtest.Shape{
			"text":       times("", "a", ""),
			"paragraphs": times("", `a\par `, ""),
			"characters": times("", `\'e9`, ""),
			"wide":       times(`\f3 `, `\'93\'fa`, ""),
			"unicode":    times("", `\u8364 ?`, ""),
			"groups":     times("", "{a}", ""),
			"deep":       times(strings.Repeat("{", 900), "a", strings.Repeat("}", 900)),
			"words":      times("", `\pard\plain\intbl`, ""),
			"cells":      times(`\trowd`, `a\cell `, `\row`),
			"cell":       times(`\trowd\pard\intbl `, `a\par `, `\cell\row`),
			"rows":       times("", `\trowd\cellx1\cell\row`, ""),
			"inner rows": times("", `\pard\itap2 a\nestcell\nestrow`, `\cell\row`),
			"bars":       times(`\pard\itap2 `, "|", `\nestcell\nestrow\cell\row`),
			"notes":      times("", `{\footnote a}`, ""),
			"comments":   numbered("", `{\*\atrfstart %[1]d}a{\*\annotation{\*\atnref %[1]d}b}`, ""),
			"ranges":     numbered("", `{\*\atrfstart %[1]d}{\*\atrfend %[1]d}`, ""),
			"headers":    numbered("", `{\header %d}`, ""),
			"fonts":      numbered(`{\fonttbl`, `{\f%d a;}`, `}`),
			"styles":     numbered(`{\stylesheet`, `{\s%d heading 1;}`, `}`),
			"authors":    times(`{\*\revtbl`, `{a;}`, `}`),
			"changes":    times("", `{\revised a}b`, ""),
			"fields":     times("", `{\field{\*\fldinst HYPERLINK "a"}{\fldrslt b}}`, ""),
			"marks":      times("", `{\listtext a}b\par `, ""),
			"code":       times(`{\field{\*\fldinst `, "a", `}}`),
			"bin":        times("", `\bin1 a`, ""),
			"boxes":      times("", `{\shp{\*\shpinst{\shptxt a}}}`, ""),
			"pictures":   times("", `{\pict 00}`, ""),
			"hex":        times(`{\pict `, "00", `}`),
			"skipped":    times(`{\*\unknown `, `{\a b}`, `}`)})}})
}
