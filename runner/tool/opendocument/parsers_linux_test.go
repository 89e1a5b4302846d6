//go:build !race

// The race detector makes every parser slower by another factor.

package opendocument

import (
	"fmt"
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	shapes := map[string]growthtest.Shape{
		"paragraphs":  times("", para("a"), ""),
		"spans":       times("<text:p>", `<text:span text:style-name="Loop">a </text:span>`, "</text:p>"),
		"spaces":      times("<text:p>", `<text:s text:c="63"/>`, "</text:p>"),
		"headings":    times("", `<text:h text:outline-level="10">a</text:h>`, ""),
		"lists":       numbered("", `<text:list xml:id="l%d" text:style-name="N">`+items(para("a"))+`</text:list>`, ""),
		"deep list":   times(strings.Repeat(`<text:list><text:list-item>`, 90), para("a"), strings.Repeat(`</text:list-item></text:list>`, 90)),
		"cells":       times("<table:table><table:table-row>", `<table:table-cell table:number-columns-repeated="63" table:number-columns-spanned="63"/>`, "</table:table-row></table:table>"),
		"rows":        times("<table:table>", `<table:table-row><table:covered-table-cell/></table:table-row>`, "</table:table>"),
		"wide cell":   times(`<table:table><table:table-row><table:table-cell table:number-columns-repeated="63"><text:p>`, "a", "</text:p></table:table-cell></table:table-row></table:table>"),
		"deep tables": times(strings.Repeat("<table:table><table:table-row><table:table-cell/><table:table-cell>", 60)+"<text:p>", "|", "</text:p>"+strings.Repeat("</table:table-cell></table:table-row></table:table>", 60)),
		"notes":       times("<text:p>", `<text:note><text:note-citation>1</text:note-citation><text:note-body>`+para("a")+`</text:note-body></text:note>`, "</text:p>"),
		"comments":    numbered("<text:p>", `<office:annotation office:name="n%d">`+para("a")+`</office:annotation>`, "</text:p>"),
		"insertions":  numbered("<text:p>", `<text:change-start text:change-id="c%d"/>a`, "</text:p>"),
		"regions":     numbered("<text:tracked-changes>", `<text:changed-region text:id="c%d"><text:deletion>`+para("a")+`</text:deletion></text:changed-region>`, "</text:tracked-changes>"),
		"links":       times("<text:p>", `<text:a xlink:href="http://x">a</text:a>`, "</text:p>"),
		"boxes":       times("<text:p>", `<draw:frame><draw:text-box>`+para("a")+`</draw:text-box></draw:frame>`, "</text:p>"),
		"objects":     times("<text:p>", `<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>`, "</text:p>"),
		"own objects": times("<text:p>", `<draw:frame><draw:object xlink:href="."/></draw:frame>`, "</text:p>")}
	for name, shape := range shapes {
		shapes[name] = func(n int) string {
			return string(pack(t, exampleStyles, "<office:text>"+shape(n)+"</office:text>", "Object 1/content.xml", "<math><annotation>a</annotation></math>"))
		}
	}
	slide := func(shape growthtest.Shape) growthtest.Shape {
		return func(n int) string {
			return string(pack(t, exampleStyles, "<office:presentation>"+shape(n)+"</office:presentation>"))
		}
	}
	shapes["slides"] = slide(times("", "<draw:page><draw:rect>"+para("a")+"</draw:rect></draw:page>", ""))
	shapes["shapes"] = slide(numbered("<draw:page>", `<draw:rect svg:x="%[1]dpt" svg:y="%[1]dpt" svg:width="9pt" svg:height="9pt">`+para("a")+"</draw:rect>", "</draw:page>"))
	shapes["few shapes"] = slide(times("<draw:page>"+strings.Repeat(`<draw:rect svg:x="1pt" svg:y="1pt" svg:width="9pt" svg:height="9pt">`+para("a")+"</draw:rect>", 290)+"<draw:rect><text:p>", "a", "</text:p></draw:rect></draw:page>"))
	shapes["styles"] = func(n int) string {
		return string(pack(t, numbered("", `<style:style style:name="s%[1]d" style:parent-style-name="s%[1]d" style:master-page-name="m%[1]d"/><style:master-page style:name="m%[1]d" style:next-style-name="m%[1]d"/>`, "")(n), "<office:text>"+para("a")+"</office:text>"))
	}
	shapes["headers"] = func(n int) string {
		return string(pack(t, "<office:master-styles>"+numbered("", `<style:master-page style:name="m%d"><style:header><text:p>a</text:p></style:header></style:master-page>`, "")(n)+"</office:master-styles>", "<office:text>"+para("a")+"</office:text>"))
	}
	shapes["one file"] = func(n int) string {
		return fmt.Sprintf("<o%s><office:body><office:text>%s</office:text></office:body></o>", spaces, strings.Repeat(para("a"), n/20))
	}
	growthtest.Check(t, []growthtest.Parser{{
		Name: "OpenDocument", Fuzz: []string{"FuzzText"}, Most: 512 << 10,
		Read: func(in []byte) { _, _ = Text(in, never) }, Shapes: shapes}})
}
