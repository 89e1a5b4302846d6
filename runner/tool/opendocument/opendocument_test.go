package opendocument

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/tool/office/archive"
	"journeyman/store/ordertest"
)

func never() bool { return false }

const spaces = ` xmlns:office="office" xmlns:text="text" xmlns:style="style" xmlns:table="table" xmlns:draw="draw" xmlns:presentation="p"` +
	` xmlns:xlink="xlink" xmlns:chart="chart" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:fo="fo"`

// pack returns a document with styles, a body and further files.
func pack(t testing.TB, styles, body string, more ...string) []byte {
	t.Helper()
	data, err := archive.Pack(append([]string{
		"styles.xml", "<office:document-styles" + spaces + ">" + styles + "</office:document-styles>",
		"content.xml", "<office:document-content" + spaces + "><office:body>" + body + "</office:body></office:document-content>"}, more...)...)
	is.New(t).NoErr(err)
	return data
}

func para(text string) string { return "<text:p>" + text + "</text:p>" }

func items(texts ...string) (all string) {
	for _, text := range texts {
		all += "<text:list-item>" + text + "</text:list-item>"
	}
	return all
}

// styles has a style of each kind.
const exampleStyles = `<office:styles><style:style style:name="Secret" style:family="text"><style:text-properties text:display="none"/></style:style>` +
	`<style:style style:name="Signs" style:family="text"><style:text-properties style:font-name="Wingdings"/></style:style>` +
	`<style:style style:name="Sub" style:family="paragraph" style:parent-style-name="Title"/><style:style style:name="Loop" style:family="text" style:parent-style-name="Loop"/>` +
	`<style:style style:name="Gone" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>` +
	`<text:outline-style><text:outline-level-style text:level="1" style:num-format="I" style:num-suffix="."/><text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/></text:outline-style>` +
	`<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1" style:num-prefix="(" style:num-suffix=")" text:start-value="3"/>` +
	`<text:list-level-style-bullet text:level="2" text:bullet-char="☐"/></text:list-style></office:styles>` +
	`<office:master-styles><style:master-page style:name="Standard"><style:header><text:p>Top</text:p></style:header><style:footer style:display="false"><text:p>no</text:p></style:footer></style:master-page>` +
	`<style:master-page style:name="Unused"><style:header><text:p>unused</text:p></style:header></style:master-page></office:master-styles>`

func TestText(t *testing.T) {
	t.Parallel()
	cell := func(attributes, content string) string {
		return "<table:table-cell" + attributes + ">" + content + "</table:table-cell>"
	}
	covered := "<table:covered-table-cell/>"
	row := func(cells ...string) string {
		return "<table:table-row>" + strings.Join(cells, "") + "</table:table-row>"
	}
	for name, tt := range map[string]struct{ body, want string }{
		"spaces":   {para("\n  a   b<text:s text:c=\"2\"/>c\n<text:span> d</text:span> <text:span>e </text:span> f<text:tab/>g<text:line-break/>h\u00adi"), "a b  c d e f\tg\nhi\n\n"},
		"headings": {`<text:h text:outline-level="1">a</text:h><text:h text:outline-level="2">b</text:h><text:h text:outline-level="1">c</text:h><text:h text:outline-level="2">d</text:h><text:p text:style-name="Sub">t</text:p>`, "# I. a\n\n## I.1 b\n\n# II. c\n\n## II.1 d\n\n# t\n\n"},
		"lists": {`<text:list text:style-name="N" xml:id="x">` + items(para("a")+para("more"), para("b")+`<text:list>`+items(para("in"))+`</text:list>`) + `</text:list>` + para("between") +
			`<text:list text:style-name="N" text:continue-numbering="true">` + items(para("c")) + `</text:list><text:list text:style-name="N">` + items(para("d")) + `</text:list>`,
			"(3) a\nmore\n(4) b\n  ☐ in\n\nbetween\n\n(5) c\n(3) d\n\n"},
		"start": {`<text:list text:style-name="N"><text:list-item text:start-value="9">` + para("a") + `</text:list-item></text:list>`, "(9) a\n\n"},
		"table": {"<table:table>" + row(cell(` table:number-columns-spanned="2"`, para("wide")), covered, cell(` table:number-rows-spanned="2"`, para("tall"))) +
			row(cell(` table:number-columns-repeated="2"`, para("x|y")), covered) + "</table:table>" + para("after"), "| wide |  | tall |\n| x\\|y | x\\|y | ↑ |\n\nafter\n\n"},
		"table in a table": {"<table:table>" + row(cell("", "<table:table>"+row(cell("", para("a")), cell("", para("b")))+"</table:table>"), cell("", para("c"))) + "</table:table>", "| \\| a \\| b \\| | c |\n\n"},
		"hidden":           {para(`a<text:span text:style-name="Secret">no</text:span>`) + `<text:section text:display="none">` + para("no") + `</text:section>`, "a\n\n"},
		"signs":            {para(`<text:span text:style-name="Signs">` + "\uf0fc" + `</text:span> ok<text:span text:style-name="Loop">!</text:span>`), "✓ ok!\n\n"},
		"link":             {para(`<text:a xlink:href="https://x.example">here</text:a> <text:a xlink:href="#top">there</text:a>`), "[here](https://x.example) there\n\n"},
		"notes":            {para(`a<text:note text:note-class="footnote"><text:note-citation>*</text:note-citation><text:note-body>` + para("star") + `</text:note-body></text:note>b`), "a[^*]b\n\n[footnotes]\n\n[^*]: star\n\n"},
		"comment":          {para(`a <office:annotation office:name="n"><dc:creator>Ann</dc:creator><dc:date>2026</dc:date>` + para("why?") + `</office:annotation>b<office:annotation-end office:name="n"/> c`), "a b[comment 1] c\n\n[comments]\n\n[comment 1] Ann on \"b\": why?\n\n"},
		"changes": {`<text:tracked-changes><text:changed-region text:id="1"><text:deletion><office:change-info><dc:creator>Ann</dc:creator><dc:date>2026</dc:date></office:change-info>` + para("old") +
			`</text:deletion></text:changed-region><text:changed-region text:id="2"><text:insertion><office:change-info/></text:insertion></text:changed-region></text:tracked-changes>` +
			para(`a<text:change text:change-id="1"/><text:change-start text:change-id="2"/>new<text:change-end text:change-id="2"/>`),
			"anew\n\n[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n- Ann deleted \"old\"\n- somebody inserted \"new\"\n\n"},
		"picture":  {para(`a <draw:frame><draw:image xlink:href="Pictures/p.png"/><draw:image xlink:href="Pictures/q.png"/><svg:title>A cat</svg:title></draw:frame>`), "a [image Pictures/p.png: A cat]\n\n"},
		"text box": {para(`a <draw:frame><draw:text-box>`+para("box")+`</draw:text-box></draw:frame>b<draw:g><draw:rect>`+para("shape")+`</draw:rect></draw:g>`) + para("c"), "a b\n\nbox\n\nshape\n\nc\n\n"},
		"chart":    {para(`<draw:frame><draw:object xlink:href="./Object 1"/><draw:image xlink:href="x"/></draw:frame>`), "[chart, bar]\nSales\n\n| Q1 | 5 |\n\n"},
		"formula":  {para(`<draw:frame><draw:object xlink:href="./Object 2"/></draw:frame>`), "[formula: a over b]\n\n"},
		"embedded": {para(`<draw:frame><draw:object-ole xlink:href="./Object 9"/></draw:frame>`), "[embedded file Object 9]\n\n"},
		"contents": {`<text:table-of-content><text:table-of-content-source><text:index-title-template>no</text:index-title-template></text:table-of-content-source><text:index-body>` + para("a 1") + `</text:index-body></text:table-of-content>`, "a 1\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Text(pack(t, exampleStyles, "<office:text>"+tt.body+"</office:text>",
				"Object 1/content.xml", "<o"+spaces+"><office:body><chart:chart chart:class=\"chart:bar\"><chart:title>"+para("Sales")+"</chart:title><table:table>"+row(cell("", para("Q1")), cell("", para("5")))+"</table:table></chart:chart></office:body></o>",
				"Object 2/content.xml", `<math><semantics><mi>a</mi><annotation encoding="StarMath 5.0">a over b</annotation></semantics></math>`), never)
			is.NoErr(err)
			is.Equal(string(got), "[header]\nTop\n\n"+tt.want)
		})
	}
}

func TestSlides(t *testing.T) {
	t.Parallel()
	frame := func(attributes, text string) string {
		return "<draw:frame " + attributes + "><draw:text-box>" + para(text) + "</draw:text-box></draw:frame>"
	}
	at := func(x, y string) string {
		return `svg:x="` + x + `" svg:y="` + y + `" svg:width="2cm" svg:height="10mm"`
	}
	is := is.New(t)
	got, err := Text(pack(t, exampleStyles, `<office:presentation><draw:page>`+frame(at("1cm", "5cm"), "below")+frame(at("1cm", "1cm"), "above")+
		frame(`presentation:class="title"`, "The title")+frame(`presentation:placeholder="true"`, "click here")+
		`<presentation:notes>`+frame("", "say it")+`</presentation:notes><office:annotation><dc:creator>Ann</dc:creator>`+para("why?")+`</office:annotation></draw:page><draw:page draw:style-name="Gone"/></office:presentation>`), never)
	is.NoErr(err)
	is.Equal(string(got), "[slide 1 of 2]\n# The title\n\nabove\n\nbelow\n\n[notes]\nsay it\n\n[slide 2 of 2, hidden]\n\n[comments]\n\n[comment 1] Ann: why?\n\n")
	got, err = Text([]byte("<office:document"+spaces+">"+exampleStyles+"<office:body><office:drawing><draw:page><draw:rect>"+para("a")+"</draw:rect></draw:page></office:drawing></office:body></office:document>"), never)
	is.NoErr(err)
	is.Equal(string(got), "[page 1 of 1]\na\n\n")
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"nothing": {nil, "damaged"}, "no XML": {[]byte("hello"), "damaged"}, "half XML": {[]byte("<a><b>"), "damaged"},
		"another kind": {[]byte("<html/>"), "no text"}, "no text": {pack(t, "", ""), "no text"},
		"password": {pack(t, "", "", "META-INF/manifest.xml", "<m><encryption-data/></m>"), "a password protects it"},
		"nested":   {pack(t, "", strings.Repeat("<a>", 300)+strings.Repeat("</a>", 300)), "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Text(tt.data, never)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
	is := is.New(t)
	got, err := Text(pack(t, "", "<office:text>"+strings.Repeat(para(strings.Repeat("x", 1000)), 9000)+"</office:text>"), never)
	is.NoErr(err)
	ordertest.Above(is, len(got), maxText)
	ordertest.Below(is, len(got), maxText+30_000)
	is.True(strings.HasSuffix(string(got), "[the rest of the document is not read]\n"))
}

func FuzzText(f *testing.F) {
	f.Add(exampleStyles, `<office:text><text:h text:outline-level="1">a</text:h><text:list text:style-name="N">`+items(para("b"))+`</text:list><table:table><table:table-row><table:covered-table-cell/></table:table-row></table:table></office:text>`)
	f.Add(exampleStyles, `<office:presentation><draw:page><draw:frame svg:x="1cm"><draw:text-box>`+para("a")+`</draw:text-box></draw:frame><presentation:notes/></draw:page></office:presentation>`)
	f.Fuzz(func(t *testing.T, styles, body string) {
		data, err := archive.Pack("styles.xml", "<office:document-styles"+spaces+">"+styles+"</office:document-styles>",
			"content.xml", "<office:document-content"+spaces+"><office:body>"+body+"</office:body></office:document-content>")
		is.New(t).NoErr(err)
		text, err := Text(data, never)
		if err == nil && len(text) == 0 || err != nil && err.Error() == "" {
			t.Errorf("%d bytes of text, error %v", len(text), err)
		}
	})
}
