package office

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// onSlide returns a presentation with one slide, which also has the relations of self.
func onSlide(t testing.TB, shapes string, more ...string) []byte {
	t.Helper()
	files := append([]string{"ppt/presentation.xml", `<p xmlns:r="` + relsType[:len(relsType)-1] + `"><sldId r:id="s"/></p>`,
		"ppt/_rels/presentation.xml.rels", `<r>` + rel("s", "slide", "slides/s.xml") + rel("a", "commentAuthors", "authors.xml") + `</r>`,
		"ppt/authors.xml", `<a><cmAuthor id="3" name="Ann"/></a>`,
		"ppt/slides/s.xml", `<p:sld xmlns:p="p" xmlns:a="a" xmlns:c="c" xmlns:r="` + relsType[:len(relsType)-1] + `">` + shapes + `</p:sld>`,
		"ppt/slides/_rels/s.xml.rels", `<r>` + rel("self", "slideLayout", "s.xml") + rel("link", "hyperlink", "https://x.example") +
			rel("pic", "image", "../media/i.png") + rel("chart", "chart", "../charts/c.xml") + rel("diagram", "diagramData", "../diagrams/d.xml") +
			rel("notes", "notesSlide", "../notes.xml") + rel("comments", "comments", "../comments.xml") + `</r>`}, more...)
	return pack(t, files...)
}

// box returns a text box at a place.
func box(place, text string) string {
	return `<p:sp><p:spPr><a:xfrm>` + place + `</a:xfrm></p:spPr><p:txBody><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp>`
}

func TestSlides(t *testing.T) {
	t.Parallel()
	paragraph := func(properties, text string) string {
		return `<a:p><a:pPr>` + properties + `</a:pPr><a:r><a:t>` + text + `</a:t></a:r></a:p>`
	}
	number := `<a:buAutoNum type="arabicPeriod"/>`
	for name, tt := range map[string]struct {
		shapes string
		want   string
		more   []string
	}{
		"title first": {box("", "text") + `<p:sp><p:nvPr><p:ph type="ctrTitle"/></p:nvPr>` + paragraph("", "The title") + `</p:sp><p:sp><p:ph type="sldNum"/>` + paragraph("", "7") + `</p:sp>`,
			"# The title\n\ntext\n\n", nil},
		"by place": {box(`<a:off x="0" y="500"/><a:ext cx="400" cy="100"/>`, "below") + box(`<a:off x="600" y="0"/><a:ext cx="300" cy="100"/>`, "right") +
			box(`<a:off x="0" y="0"/><a:ext cx="400" cy="100"/>`, "left"), "left\n\nbelow\n\nright\n\n", nil},
		"in a group": {box(`<a:off x="0" y="500"/><a:ext cx="100" cy="100"/>`, "below") + `<p:grpSp><p:grpSpPr><a:off x="0" y="0"/><a:ext cx="100" cy="100"/><a:chOff x="0" y="10000"/><a:chExt cx="1000" cy="1000"/></p:grpSpPr>` +
			box(`<a:off x="0" y="10000"/><a:ext cx="900" cy="900"/>`, "grouped") + `</p:grpSp>`, "grouped\n\nbelow\n\n", nil},
		"lists": {`<p:sp><p:ph idx="1"/>` + paragraph("", "a") + strings.Replace(paragraph(number, "b"), "<a:pPr>", `<a:pPr lvl="1">`, 1) + strings.Replace(paragraph(number, "c"), "<a:pPr>", `<a:pPr lvl="1">`, 1) +
			paragraph("<a:buNone/>", "d") + paragraph(`<a:buFont typeface="Wingdings"/><a:buChar char="þ"/>`, "e") + `</p:sp>`, "- a\n  1. b\n  2. c\nd\n☑ e\n\n", nil},
		"table": {`<p:graphicFrame><a:tbl><a:tr><a:tc gridSpan="2">` + paragraph("", "a") + `</a:tc><a:tc hMerge="1"/></a:tr><a:tr><a:tc vMerge="1"/><a:tc>` + paragraph("", "b|c") + `</a:tc></a:tr></a:tbl></p:graphicFrame>`,
			"| a |  |\n| ↑ | b\\|c |\n\n", nil},
		"picture": {`<p:pic><p:cNvPr descr="A map"/><a:blip r:embed="pic"/></p:pic>`, "[image ppt/media/i.png: A map]\n\n", nil},
		"link":    {`<p:sp><a:p><a:r><a:rPr><a:hlinkClick r:id="link"/></a:rPr><a:t>here</a:t></a:r></a:p></p:sp>`, "[here](https://x.example)\n\n", nil},
		"hidden":  {`<p:sp><p:cNvPr hidden="1"/>` + paragraph("", "a") + `</p:sp>` + box("", "b"), "b\n\n", nil},
		"chart": {`<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>`, "[chart, bar: Sales]\n[axis: Euro]\n|  | North | South |\n| Q1 | 5 | 7 |\n| Q2 |  | 8 |\n\n",
			[]string{"ppt/charts/c.xml", `<c><chart><title><t>Sales</t></title><plotArea><barChart><ser><tx><v>North</v></tx><cat><pt idx="0"><v>Q1</v></pt><pt idx="1"><v>Q2</v></pt></cat><val><pt idx="0"><v>5</v></pt></val></ser>` +
				`<ser><tx><v>South</v></tx><val><pt idx="0"><v>7</v></pt><pt idx="1"><v>8</v></pt></val></ser></barChart><valAx><title><t>Euro</t></title></valAx></plotArea></chart></c>`}},
		"chart without values": {`<p:graphicFrame><c:chart r:id="chart"/></p:graphicFrame>`, "[chart, pie]\n[the file has no values of this chart]\n\n",
			[]string{"ppt/charts/c.xml", `<c><pie3DChart/></c>`}},
		"diagram": {`<p:graphicFrame><c:relIds r:dm="diagram"/></p:graphicFrame>`, "[diagram]\n- Boss\n  - Ann\n  - Bob\n\n",
			[]string{"ppt/diagrams/d.xml", `<d><pt modelId="0" type="doc"/><pt modelId="1"><t><p><r><t>Boss</t></r></p></t></pt><pt modelId="2"><t><p><r><t>Bob</t></r></p></t></pt><pt modelId="3"><t><p><r><t>Ann</t></r></p></t></pt>` +
				`<cxn srcId="0" destId="1" srcOrd="0"/><cxn srcId="1" destId="2" srcOrd="1"/><cxn srcId="1" destId="3" srcOrd="0"/><cxn srcId="3" destId="0"/></d>`}},
		"notes and comments": {box("", "a"), "a\n\n[notes]\nSay it\n\n[comment] Ann: Why?\n\n",
			[]string{"ppt/notes.xml", `<n><sp><ph type="sldImg"/></sp><sp><ph type="body" idx="1"/><p><r><t>Say it</t></r></p></sp><sp><ph type="sldNum"/><p><fld><t>1</t></fld></p></sp></n>`,
				"ppt/comments.xml", `<cmLst><cm authorId="3"><text>Why?</text></cm></cmLst>`}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Pptx(onSlide(t, tt.shapes, tt.more...), never)
			is.NoErr(err)
			is.Equal(string(got), "[slide 1 of 1]\n"+tt.want)
		})
	}
	is := is.New(t)
	got, err := Pptx(pack(t, "ppt/presentation.xml", `<p xmlns:r="`+relsType[:len(relsType)-1]+`"><sldId r:id="s"/><sldId r:id="s"/></p>`,
		"ppt/_rels/presentation.xml.rels", `<r>`+rel("s", "slide", "s.xml")+`</r>`, "ppt/s.xml", `<sld show="0"/>`,
		"ppt/_rels/s.xml.rels", `<r>`+rel("n", "notesSlide", "n.xml")+`</r>`, "ppt/n.xml", "<n><sp><p><r><t>why</t></r></p></sp></n>"), never)
	is.NoErr(err)
	is.Equal(string(got), "[slide 1 of 2, hidden]\n[notes]\nwhy\n\n[slide 2 of 2: the same as slide 1]\n\n")
}
