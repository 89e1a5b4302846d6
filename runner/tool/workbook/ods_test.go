package workbook

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// odsBook returns an OpenDocument workbook with some styles and sheets.
func odsBook(t testing.TB, styles, sheets string, more ...string) []byte {
	t.Helper()
	spaces := ""
	for _, name := range []string{"office", "table", "text", "style", "chart"} {
		spaces += ` xmlns:` + name + `="urn:oasis:names:tc:opendocument:xmlns:` + name + `:1.0"`
	}
	spaces += ` xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"`
	return pack(t, append([]string{"content.xml", `<office:document-content` + spaces + `><office:automatic-styles>` + styles +
		`</office:automatic-styles><office:body><office:spreadsheet>` + sheets + `</office:spreadsheet></office:body></office:document-content>`,
		"Object 1/content.xml", `<office:x` + spaces + `><chart:chart chart:class="chart:line"><chart:title><text:p>Trend</text:p></chart:title>` +
			`<chart:series chart:values-cell-range-address="Data.B2:Data.B3"/></chart:chart></office:x>`}, more...)...)
}

const odsSheets = `<table:content-validations><table:content-validation table:name="v" table:condition="of:cell-content-is-in-list(&quot;a&quot;;&quot;b&quot;)"/></table:content-validations>` +
	`<table:table table:name="Data" table:style-name="h"><table:table-column/><table:table-column table:visibility="collapse" table:number-columns-repeated="2"/>` +
	`<table:table-row><table:table-cell office:value-type="percentage" office:value="0.25" table:formula="of:=SUM([.B2:.$B$9];[$Other.A1];&quot;a;b&quot;)"><text:p>25,00 %</text:p></table:table-cell>` +
	`<table:table-cell table:number-columns-repeated="3"><text:p>x<text:s text:c="2"/>y</text:p><text:p>z</text:p></table:table-cell></table:table-row>` +
	`<table:table-row table:number-rows-repeated="2" table:visibility="filter"><table:table-cell table:number-columns-spanned="2" table:content-validation-name="v" office:value="7">` +
	`<office:annotation><dc:creator>Ann</dc:creator><text:p>why?</text:p></office:annotation></table:table-cell><table:covered-table-cell/></table:table-row>` +
	`<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>` +
	`<table:table-row><table:table-cell><text:p><text:a xlink:href="https://example.com/">site</text:a></text:p><draw:frame draw:name="C"><draw:object xlink:href="./Object 1"/>` +
	`<draw:image xlink:href="x"/></draw:frame><draw:frame draw:name="Logo"><draw:image xlink:href="x"/></draw:frame><draw:frame><draw:text-box><text:p>Note well</text:p></draw:text-box></draw:frame>` +
	`</table:table-cell></table:table-row></table:table><table:table table:name="Other"><table:table-row><table:table-cell><text:p>1</text:p></table:table-cell></table:table-row></table:table>` +
	`<table:named-expressions><table:named-range table:name="Rate" table:cell-range-address="$Data.$A$1"/></table:named-expressions>`

func TestOds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	data := odsBook(t, `<style:style style:name="h"><style:table-properties table:display="false"/></style:style>`, odsSheets)
	got, err := Ods(data, Selection{}, never)
	is.NoErr(err)
	is.Equal(string(got), `[workbook with 2 sheets: 1 "Data" A1:D1048004, hidden; 2 "Other" A1]
[read_file with sheet and range, such as sheet "1" and range "A1:F200", gives a part of it]
[name Rate = Data!$A$1]

[sheet "Data"]
[A1:D1048004; hidden; hidden columns B:C]
row | A | B hidden | C hidden | D
1 | =SUM(B2:$B$9,Other!A1,"a;b") → 25,00 % | x  y z | x  y z | x  y z
2 hidden | 7
3 hidden | 7
1048004 | site
[comment on A2 by Ann: why?]
[merged cells A2:B2]
[chart "Trend" at A1048004, line of Data!B2:B3]
[picture "Logo" at A1048004]
[text box at A1048004: Note well]
[links A1048004 to https://example.com/]
[choices A2:A3: a,b]

[sheet "Other"]
[A1]
row | A
1 | 1

`)
	for _, tt := range []struct {
		s    Selection
		want string
	}{
		{Selection{Sheet: "other"}, "[sheet \"Other\"]\n[A1]\nrow | A\n1 | 1\n"}, {Selection{Sheet: "2"}, "[sheet \"Other\"]"},
		{Selection{Sheet: "x"}, `there is no sheet "x"; the sheets are 1 "Data", 2 "Other"`}, {Selection{Range: "C1:C3"}, "row | C hidden\n1 | x  y z\n"},
		{Selection{Range: "Other!A1"}, "row | A\n1 | 1"}, {Selection{Range: "A2"}, "2 hidden | 7\n[comment"}, {Selection{Range: "Z"}, "no cell of Z1:Z1048576"},
	} {
		got, err := Ods(data, tt.s, never)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), tt.want) {
			t.Errorf("%v: %q is not in\n%s", tt.s, tt.want, got)
		}
	}
}

// TestFlatOds reads a workbook that is a single XML file. The values of a chart, a table inside a cell, stay out of it.
func TestFlatOds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	spaces := ` xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"`
	for _, name := range []string{"office", "table", "text"} {
		spaces += ` xmlns:` + name + `="urn:oasis:names:tc:opendocument:xmlns:` + name + `:1.0"`
	}
	cell := func(text string) string { return `<table:table-cell><text:p>` + text + `</text:p></table:table-cell>` }
	chart := `<table:table-cell><draw:frame draw:name="C"><draw:object><office:document><office:body><office:chart><table:table table:name="local">` +
		`<table:table-row>` + cell("inner") + `</table:table-row></table:table></office:chart></office:body></office:document></draw:object></draw:frame></table:table-cell>`
	book := `<?xml version="1.0"?><office:document` + spaces + `><office:body><office:spreadsheet><table:table table:name="Data"><table:table-row>` +
		cell("Äpfel") + cell("1.200,50 €") + chart + `</table:table-row></table:table><table:table table:name="Other"><table:table-row>` +
		cell("b") + `</table:table-row></table:table></office:spreadsheet></office:body></office:document>`
	got, err := Ods([]byte(book), Selection{}, never)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "1 | Äpfel | 1.200,50 €"))
	is.True(strings.Contains(string(got), `[chart "C" at C1]`))
	is.True(!strings.Contains(string(got), "inner"))
	got, err = Ods([]byte(book), Selection{Sheet: "Other"}, never)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "1 | b") && !strings.Contains(string(got), "Äpfel"))
}

func TestHostileOds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	// Billions of cells with a content are read up to the limit of the text.
	row := `<table:table-row table:number-rows-repeated="99999999999999999999"><table:table-cell table:number-columns-repeated="2147483647"><text:p>x</text:p></table:table-cell></table:table-row>`
	data := odsBook(t, "", `<table:table table:name="A">`+strings.Repeat(row, 100)+`</table:table>`)
	got, err := Ods(data, Selection{}, never)
	is.NoErr(err)
	ordertest.Above(is, len(got), maxText)
	ordertest.Below(is, len(got), 2*maxText)
	is.True(strings.Contains(string(got), "is not read"))
	got, err = Ods(data, Selection{Range: "XFD1048576"}, never)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "1048576 | x"))
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"another kind": {pack(t, "x", "y"), "damaged"}, "broken": {pack(t, "content.xml", "<a"), "damaged"}, "empty": {odsBook(t, "", ""), "no text"},
		"password": {odsBook(t, "", "", "META-INF/manifest.xml", "<m><file-entry><encryption-data/></file-entry></m>"), "a password protects it"},
	} {
		if _, err := Ods(tt.data, Selection{}, never); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzOds(f *testing.F) {
	f.Add(`<style:style style:name="h"><style:table-properties table:display="false"/></style:style>`, odsSheets)
	f.Fuzz(func(t *testing.T, styles, sheets string) {
		n := 0
		soon := func() bool { n++; return n > 10_000 }
		if got, err := Ods(odsBook(t, styles, sheets), Selection{}, soon); err == nil && len(got) == 0 || len(got) > 3*maxText {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
