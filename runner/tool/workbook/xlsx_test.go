package workbook

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// pack returns an archive of files. Its arguments are a name, its contents, the next name, and
// so on.
func pack(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		is.New(t).NoErr(err)
	}
	is.New(t).NoErr(z.Close())
	return b.Bytes()
}

func never() bool { return false }

const relsType = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"

// book returns a workbook whose sheets have the given rows.
func book(t testing.TB, shared, styles string, sheets ...string) []byte {
	list, rels := "", ""
	var files []string
	for i, rows := range sheets {
		list += fmt.Sprintf(`<sheet name="S&amp;%d" sheetId="%d" r:id="r%d"/>`, i+1, i+1, i+1)
		rels += fmt.Sprintf(`<Relationship Id="r%d" Type="%sworksheet" Target="worksheets/s%d.xml"/>`, i+1, relsType, i+1)
		files = append(files, fmt.Sprintf("xl/worksheets/s%d.xml", i+1), `<worksheet><sheetData>`+rows+`</sheetData></worksheet>`)
	}
	return pack(t, append(files, "xl/workbook.xml", `<workbook xmlns:r="`+relsType[:len(relsType)-1]+`"><workbookPr/><sheets>`+list+`</sheets></workbook>`,
		"xl/_rels/workbook.xml.rels", `<Relationships>`+rels+`</Relationships>`, "xl/sharedStrings.xml", `<sst>`+shared+`</sst>`,
		"xl/styles.xml", `<styleSheet>`+styles+`</styleSheet>`)...)
}

// readAll reads a whole workbook.
func readAll(data []byte, expired func() bool) ([]byte, error) {
	return Xlsx(data, Selection{}, expired)
}

func TestXlsx(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	data := book(t, `<si><t>Name</t></si><si><r><t>rich </t></r><r><t>text</t></r><rPh><t>reading</t></rPh></si>`,
		`<numFmts><numFmt numFmtId="170" formatCode="dd\.mm\.yyyy"/><numFmt numFmtId="171" formatCode="0.0 &quot;days&quot;"/></numFmts>`+
			`<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/><xf numFmtId="21"/></cellXfs>`,
		`<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="D1" t="inlineStr"><is><t>a|b
c</t></is></c></row>`+
			`<row r="4"><c r="A4" s="1"><v>45292</v></c><c r="B4" s="2"><v>45292.5</v></c><c r="C4" s="3"><v>0.30000000000000004</v></c><c r="D4" s="4"><v>0.25</v></c>`+
			`<c r="E4" t="b"><v>1</v></c><c r="F4" t="e"><v>#N/A</v></c><c r="G4"><f>A1+1</f><v>7</v></c><c r="H4"><f>SUM(A1)</f></c><c r="XFD4"><v>1E+20</v></c></row>`+
			`<row r="5"><c r="A5"/></row><row><c><v>1</v></c><c><v>2</v></c><c t="s"><v>99</v></c></row>`,
		`<row r="1"><c r="A1"><v>-3</v></c></row>`)
	got, err := readAll(data, never)
	is.NoErr(err)
	is.Equal(string(got), `[workbook with 2 sheets: 1 "S&1" A1:XFD6; 2 "S&2" A1]
[read_file with sheet and range, such as sheet "1" and range "A1:F200", gives a part of it]

[sheet "S&1"]
[A1:XFD6]
row | A | B | C | D | E | F | G | H
1 | Name | rich text |  | a\|b c
4 | 2024-01-01 | 01.01.2024 | 0.3 days | 6:00:00 | TRUE | #N/A | =A1+1 → 7 | =SUM(A1) → (not computed) | [I:XFC empty] | 1E+20
6 | 1 | 2

[sheet "S&2"]
[A1]
row | A
1 | -3

`)
}

// A hidden sheet, and what else a person may look for in a sheet.
const rich = `<cols><col min="2" max="3" hidden="1"/></cols><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c>` +
	`<c r="B1"><f t="shared" ref="B1:B3" si="0">A1*$A$1+SUM(A:A)</f><v>2</v></c></row>` +
	`<row r="2" hidden="1"><c r="B2"><f t="shared" si="0"/><v>3</v></c><c r="C2"><f t="array" ref="C2:C3">A1:A2*2</f><v>4</v></c></row>` +
	`<row r="3"><c r="A3" t="str"><f>IF(A1="","x","")</f><v></v></c><c r="C3"><f>_xlfn._xlws.SORT(A1:A2)</f><v>1</v></c></row></sheetData>` +
	`<mergeCells><mergeCell ref="A1:C1"/><mergeCell ref="D4:E5"/></mergeCells><dataValidations><dataValidation type="list" sqref="A2:A9">` +
	`<formula1>"yes,no"</formula1></dataValidation></dataValidations><hyperlinks><hyperlink ref="A1" r:id="h"/>` +
	`<hyperlink ref="A2" location="Data!A1"/></hyperlinks>`

func richBook(t testing.TB) []byte {
	rel := func(id, kind, target, more string) string {
		return `<Relationship Id="` + id + `" Type="` + relsType + kind + `" Target="` + target + `" ` + more + `/>`
	}
	space := relsType[:len(relsType)-1]
	return pack(t, "_rels/.rels", "<r>"+rel("a", "officeDocument", "xl/workbook.xml", "")+rel("c", "core-properties", "core.xml", "")+"</r>",
		"core.xml", `<c><language>de-DE</language></c>`,
		"xl/workbook.xml", `<workbook xmlns:r="`+space+`"><sheets><sheet name="Data" r:id="s" state="hidden"/><sheet name="Show" r:id="t"/></sheets>`+
			`<definedNames><definedName name="Total">Data!$B$1</definedName><definedName name="_xlnm.Print_Area">x</definedName></definedNames></workbook>`,
		"xl/_rels/workbook.xml.rels", "<r>"+rel("s", "worksheet", "s.xml", "")+rel("t", "worksheet", "t.xml", "")+
			rel("p", "person", "p.xml", "")+rel("v", "vbaProject", "vba.bin", "")+rel("y", "styles", "y.xml", "")+"</r>",
		"xl/vba.bin", "\x00ID=\"{1}\"\r\nModule=Invoices\r\nDocument=Sheet1/&H0\r\n",
		"xl/y.xml", `<s><numFmts><numFmt numFmtId="200" formatCode="#,##0.00\ [$€-407]"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="200"/></cellXfs></s>`,
		"xl/p.xml", `<l><person id="{1}" displayName="Bo"/></l>`,
		"xl/s.xml", `<worksheet xmlns:r="`+space+`">`+rich+`</worksheet>`,
		"xl/_rels/s.xml.rels", "<r>"+rel("h", "hyperlink", "https://example.com/", `TargetMode="External"`)+rel("c", "comments", "c.xml", "")+
			rel("d", "threadedComment", "d.xml", "")+rel("w", "drawing", "w.xml", "")+rel("x", "table", "x.xml", "")+"</r>",
		"xl/c.xml", `<c><authors><author>Ann</author><author>tc={9}</author></authors><commentList><comment ref="A1" authorId="0"><text><r><t>Ann:</t></r><r><t> check
this</t></r></text></comment><comment ref="B2" authorId="1"><text><t>[Threaded comment] copy</t></text></comment></commentList></c>`,
		"xl/d.xml", `<t><threadedComment ref="B2" personId="{1}"><text>really?</text></threadedComment></t>`,
		"xl/x.xml", `<table displayName="Sales" ref="A1:C3"/>`,
		"xl/w.xml", `<d xmlns:r="`+space+`"><twoCellAnchor><from><col>4</col><row>1</row></from><graphicFrame><nvGraphicFramePr><cNvPr name="Chart 1"/></nvGraphicFramePr>`+
			`<chart r:id="c"/></graphicFrame></twoCellAnchor><oneCellAnchor><from><col>0</col><row>8</row></from><pic><cNvPr name="Logo" descr="a ship"/></pic></oneCellAnchor>`+
			`<twoCellAnchor><sp><p><r><t>Note well</t></r></p></sp></twoCellAnchor></d>`,
		"xl/_rels/w.xml.rels", "<r>"+rel("c", "chart", "ch.xml", "")+"</r>",
		"xl/ch.xml", `<c><chart><title><tx><rich><p><r><t>Sales by month</t></r></p></rich></tx></title><plotArea><barChart><barDir val="col"/><ser><tx><strRef><f>Data!$B$1</f>`+
			`<strCache><pt><v>Qty</v></pt></strCache></strRef></tx><cat><strRef><f>Data!$A$2:$A$3</f></strRef></cat><val><numRef><f>Data!$B$2:$B$3</f><numCache><pt><v>9</v></pt>`+
			`</numCache></numRef></val></ser></barChart><valAx><title><t>Euro</t></title></valAx></plotArea></chart></c>`,
		"xl/t.xml", `<worksheet><sheetData><row r="1"><c r="A1" s="1"><v>1200.5</v></c><c r="B1"><v>0.5</v></c></row><row r="3"><c r="C3"><v>7</v></c></row></sheetData></worksheet>`)
}

func TestRichWorkbook(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	got, err := readAll(richBook(t), never)
	is.NoErr(err)
	is.Equal(string(got), `[workbook with 2 sheets: 1 "Data" A1:C3, hidden; 2 "Show" A1:C3]
[read_file with sheet and range, such as sheet "1" and range "A1:F200", gives a part of it]
[name Total = Data!$B$1; macros, which are not run: Invoices, Sheet1]

[sheet "Data"]
[A1:C3; hidden; hidden columns B:C]
row | A | B hidden | C hidden
1 | a | =A1*$A$1+SUM(A:A) → 2
2 hidden |  | =A2*$A$1+SUM(A:A) → 3 | {=A1:A2*2} in C2:C3 → 4
3 | =IF(A1="","x","") → "" |  | =SORT(A1:A2) → 1
[merged cells A1:C1; D4:E5]
[choices A2:A9: yes,no]
[links A1 to https://example.com/; A2 to #Data!A1]
[comment on A1 by Ann: check this; on B2 by Bo: really?]
[picture "Logo" at A9: a ship]
[text box at A1: Note well]
[chart "Sales by month" at E2, column: series "Qty" of Data!$B$2:$B$3 by Data!$A$2:$A$3, axes Euro]
[table "Sales" in A1:C3]

[sheet "Show"]
[A1:C3]
row | A | B | C
1 | 1.200,50 € | 0,5
3 |  |  | 7

`)
}

func TestSelection(t *testing.T) {
	t.Parallel()
	data := richBook(t)
	for name, tt := range map[string]struct {
		s    Selection
		want string // in the text or the error
	}{
		"name":           {Selection{Sheet: "Show"}, "[sheet \"Show\"]\n[A1:C3]\nrow | A"},
		"another case":   {Selection{Sheet: "show "}, "[sheet \"Show\"]"},
		"number":         {Selection{Sheet: "1"}, "[sheet \"Data\"]"},
		"range":          {Selection{Sheet: "1", Range: "B2:C2"}, "row | B hidden | C hidden\n2 hidden | =A2*$A$1+SUM(A:A) → 3 | {="},
		"shown sheet":    {Selection{Range: "A1"}, "[sheet \"Show\"]\n[A1:C3]\nrow | A\n1 | 1.200,50 €\n[exact value 1200.5, format \"#,##0.00\\\\ [$€-407]\"]"},
		"columns":        {Selection{Range: "C:C"}, "row | C\n3 | 7\n"},
		"a column":       {Selection{Range: "c"}, "row | C\n3 | 7\n"},
		"rows":           {Selection{Range: "3:9"}, "row | A | B | C\n3 |  |  | 7\n"},
		"backwards":      {Selection{Range: "C3:B2"}, "row | B | C\n3 |  | 7\n"},
		"dollars":        {Selection{Range: "$C$3"}, "3 | 7\n"},
		"with a sheet":   {Selection{Range: "Data!A1:A1"}, "1 | a\n"},
		"quoted sheet":   {Selection{Range: "='Data'!A1:A1"}, "1 | a\n"},
		"defined name":   {Selection{Range: "total"}, "1 | =A1*$A$1+SUM(A:A) → 2\n"},
		"nothing there":  {Selection{Range: "X9:Z10"}, "[no cell of X9:Z10 has a content]"},
		"no such sheet":  {Selection{Sheet: "Plan"}, `there is no sheet "Plan"; the sheets are 1 "Data" (hidden), 2 "Show"`},
		"no such number": {Selection{Sheet: "3"}, `there is no sheet "3"`},
		"no range":       {Selection{Range: "A1:"}, `range "A1:" is none: it is such as "A1:F20"`},
		"too far":        {Selection{Range: "XFE1"}, `range "XFE1" is none`},
		"half a range":   {Selection{Range: "A1:B"}, `range "A1:B" is none`},
		"a row":          {Selection{Range: "7"}, `range "7" is none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Xlsx(data, tt.s, never)
			if err != nil {
				got = []byte(err.Error())
			}
			if !strings.Contains(string(got), tt.want) {
				t.Errorf("%s\ndoes not hold\n%s", got, tt.want)
			}
		})
	}
}

func TestHostileWorkbooks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"nothing":             {nil, "damaged"},
		"another kind":        {pack(t, "word/document.xml", "<d/>"), "damaged"},
		"password":            {[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "password"},
		"binary":              {pack(t, "xl/workbook.bin", ""), "binary workbook (xlsb)"},
		"no sheets":           {book(t, "", ""), "no text"},
		"many sheets":         {book(t, "", "", make([]string, maxSheets+5)...), "no text"},
		"shared strings":      {book(t, strings.Repeat("<si/>", maxStrings+1), "", ""), "too many texts"},
		"place out of bounds": {book(t, "", "", `<row r="99999999999999999999"><c r="ZZZZZZ1"><v/></c><c r="A-1" t="s"><v>-1</v></c></row>`), "no text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readAll(tt.data, never)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
	is := is.New(t)
	n := 0
	soon := func() bool { n++; return n > 5 }
	got, err := readAll(book(t, "", "", strings.Repeat(`<row><c><v>1</v></c></row>`, 9999)), soon)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "1 | 1\n") && strings.Contains(string(got), "is not read: select a part"))
}

func fuzz(f *testing.F, read func([]byte, func() bool) ([]byte, error), seeds ...[]byte) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		text, err := read(data, func() bool { n++; return n > 10_000 })
		if err == nil && len(text) == 0 || len(text) > 3*maxText {
			t.Errorf("%d bytes of text, error %v", len(text), err)
		}
	})
}

func FuzzXlsx(f *testing.F) {
	fuzz(f, readAll, richBook(f), book(f, "<si><t>a</t></si>", `<cellXfs><xf numFmtId="14"/></cellXfs>`, `<row r="2"><c r="C2" s="0"><v>1</v></c><c t="s"><v>0</v></c></row>`))
}

// FuzzSheet changes the XML of a sheet directly, because random archives seldom contain valid
// XML.
func FuzzSheet(f *testing.F) {
	f.Add(`<row r="2"><c r="C2" s="0"><v>1</v></c><c t="s"><v>0</v></c></row>`, `<xf numFmtId="14"/>`)
	f.Fuzz(func(t *testing.T, rows, styles string) {
		if _, err := readAll(book(t, "<si><t>a</t></si>", "<cellXfs>"+styles+"</cellXfs>", rows), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}
