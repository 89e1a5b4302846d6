package office

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
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

// docx returns a document with the given body.
func docx(t testing.TB, body string, more ...string) []byte {
	return pack(t, append([]string{"word/document.xml",
		`<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="w" xmlns:mc="mc"><w:body>` + body + `</w:body></w:document>`,
		"word/styles.xml", `<w:styles xmlns:w="w"><w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>` +
			`<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style></w:styles>`}, more...)...)
}

func para(text string) string { return "<w:p><w:r><w:t>" + text + "</w:t></w:r></w:p>" }

func styled(style, text string) string {
	return `<w:p><w:pPr><w:pStyle w:val="` + style + `"/></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
}

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

func TestDocx(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body, want string
	}{
		"paragraphs": {para("One") + para("") + para("Two &amp; three"), "One\n\nTwo & three\n\n"},
		"headings": {styled("Titel", "Top") + styled("berschrift2", "Part") + `<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Deep</w:t></w:r></w:p>`,
			"# Top\n\n## Part\n\n### Deep\n\n"},
		"lists": {`<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>` +
			`<w:p><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr></w:pPr><w:r><w:t>b</w:t></w:r></w:p>`, "- a\n  - b\n"},
		"breaks": {`<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>`, "a\tb\nc\n\n"},
		"table": {`<w:tbl><w:tr><w:tc>` + para("a") + para("b") + `</w:tc><w:tc>` + para("c|d") + `</w:tc></w:tr><w:tr><w:tc>` + para("") +
			`</w:tc><w:tc><w:tbl><w:tr><w:tc>` + para("in") + `</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>` + para("after"),
			"| a b | c\\|d |\n|  | \\| in \\| |\n\nafter\n\n"},
		"changes":  {`<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>`, "new\n\n"},
		"text box": {`<w:p><w:r><w:t>out</w:t><mc:AlternateContent><mc:Choice>` + para("box") + `</mc:Choice><mc:Fallback>` + para("box") + `</mc:Fallback></mc:AlternateContent></w:r></w:p>`, "out\n\nbox\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Docx(docx(t, tt.body), never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
	is := is.New(t)
	got, err := Docx(docx(t, para("a"), "word/footnotes.xml", `<w:footnotes xmlns:w="w">`+para("note")+`</w:footnotes>`), never)
	is.NoErr(err)
	is.Equal(string(got), "a\n\n[footnotes]\n\nnote\n\n")
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
	got, err := Xlsx(data, never)
	is.NoErr(err)
	is.Equal(string(got), "[sheet \"S&1\"]\n1 | Name | rich text |  | a\\|b c\n"+
		"4 | 2024-01-01 | 2024-01-01 12:00:00 | 0.3 | 06:00:00 | TRUE | #N/A | 7 | =SUM(A1) | [16375 empty cells] | 1E+20\n"+
		"6 | 1 | 2\n\n[sheet \"S&2\"]\n1 | -3\n\n")
}

func TestPptx(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	slide := func(text string) string {
		return `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:sp></p:sld>`
	}
	rel := func(id, kind, target string) string {
		return `<Relationships><Relationship Id="` + id + `" Type="` + relsType + kind + `" Target="` + target + `"/>`
	}
	data := pack(t, "ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="`+relsType[:len(relsType)-1]+`"><p:sldIdLst><p:sldId id="9" r:id="rB"/><p:sldId id="8" r:id="rA"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", rel("rA", "slide", "slides/slide1.xml")+`<Relationship Id="rB" Type="x/slide" Target="/ppt/slides/slide2.xml"/></Relationships>`,
		"ppt/slides/slide1.xml", slide("second"), "ppt/slides/slide2.xml", slide("first"),
		"ppt/slides/_rels/slide1.xml.rels", rel("r1", "notesSlide", "../notesSlides/n.xml")+"</Relationships>", "ppt/notesSlides/n.xml", slide("say this"))
	got, err := Pptx(data, never)
	is.NoErr(err)
	is.Equal(string(got), "[slide 1 of 2]\nfirst\n\n[slide 2 of 2]\nsecond\n[notes]\nsay this\n\n")
}

// readers are the reader functions by name.
var readers = map[string]func([]byte, func() bool) ([]byte, error){"docx": Docx, "xlsx": Xlsx, "pptx": Pptx}

func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	many := func(n int) (files []string) {
		for i := range n {
			files = append(files, fmt.Sprint("f", i), "")
		}
		return files
	}
	nested := strings.Repeat("<w:p>", 5000)
	for name, tt := range map[string]struct {
		reader string
		data   []byte
		says   string
	}{
		"no archive":          {"docx", []byte("hello"), "damaged"},
		"nothing":             {"xlsx", nil, "damaged"},
		"another archive":     {"docx", pack(t, "a.txt", "x"), "damaged"},
		"another kind":        {"xlsx", docx(t, para("x")), "damaged"},
		"password":            {"docx", []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "password"},
		"no text":             {"docx", docx(t, para(" ")), "no text"},
		"no sheets":           {"xlsx", book(t, "", ""), "no text"},
		"broken XML":          {"docx", docx(t, "<w:p><w:t>a"), "damaged"},
		"nested elements":     {"docx", docx(t, nested), "nested"},
		"many files":          {"pptx", pack(t, many(maxEntries+1)...), "more than 20000 files"},
		"entities":            {"docx", pack(t, "word/document.xml", `<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><d><p><t>&b;</t></p></d>`), "damaged"},
		"another encoding":    {"docx", pack(t, "word/document.xml", `<?xml version="1.0" encoding="x-evil"?><d/>`), "damaged"},
		"many sheets":         {"xlsx", book(t, "", "", make([]string, maxSheets+5)...), "no text"},
		"shared strings":      {"xlsx", book(t, strings.Repeat("<si/>", maxStrings+1), "", ""), "too many texts"},
		"place out of bounds": {"xlsx", book(t, "", "", `<row r="99999999999999999999"><c r="ZZZZZZ1"><v/></c><c r="A-1" t="s"><v>-1</v></c></row>`), "no text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readers[tt.reader](tt.data, never)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
}

// long skips a test that takes long, unless the environment has LONG. The section long finds its callers.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("takes long: LONG=1 runs it")
	}
}

// TestZipBomb reads a document whose parts have a too large total size.
func TestZipBomb(t *testing.T) {
	long(t)
	t.Parallel()
	bomb := strings.Repeat(" ", maxUnpacked/2+1)
	_, err := Docx(docx(t, para("x")+bomb, "word/footnotes.xml", "<f>"+bomb+"</f>"), never)
	if !errors.Is(err, errUnpacked) {
		t.Error(err)
	}
}

// TestLongDocuments checks that the beginning of a long document is read.
func TestLongDocuments(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	got, err := Docx(docx(t, strings.Repeat(para(strings.Repeat("x", 1000)), 10_000)), never)
	is.NoErr(err)
	is.True(len(got) > maxText && len(got) < maxText+2000)
	is.True(strings.HasSuffix(string(got), "[the rest of the document is not read]\n"))
	n := 0
	soon := func() bool { n++; return n > 5 }
	got, err = Xlsx(book(t, "", "", strings.Repeat(`<row><c><v>1</v></c></row>`, 9999)), soon)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "1 | 1\n") && strings.HasSuffix(string(got), "is not read]\n"))
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

func FuzzDocx(f *testing.F) { fuzz(f, Docx, docx(f, styled("Titel", "a")+para("b"))) }

func FuzzXlsx(f *testing.F) {
	fuzz(f, Xlsx, book(f, "<si><t>a</t></si>", `<cellXfs><xf numFmtId="14"/></cellXfs>`, `<row r="2"><c r="C2" s="0"><v>1</v></c><c t="s"><v>0</v></c></row>`))
}

// FuzzSheet changes the XML of a sheet directly, because random archives seldom contain valid
// XML.
func FuzzSheet(f *testing.F) {
	f.Add(`<row r="2"><c r="C2" s="0"><v>1</v></c><c t="s"><v>0</v></c></row>`, `<xf numFmtId="14"/>`)
	f.Fuzz(func(t *testing.T, rows, styles string) {
		if _, err := Xlsx(book(t, "<si><t>a</t></si>", "<cellXfs>"+styles+"</cellXfs>", rows), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}

// FuzzFlow changes the XML of a document body directly.
func FuzzFlow(f *testing.F) {
	f.Add(styled("Titel", "a") + `<w:tbl><w:tr><w:tc>` + para("b") + `</w:tc></w:tr></w:tbl></w:tbl>`)
	f.Fuzz(func(t *testing.T, body string) {
		if _, err := Docx(docx(t, body), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}

func FuzzPptx(f *testing.F) {
	fuzz(f, Pptx, pack(f, "ppt/presentation.xml", `<p xmlns:r="`+relsType[:len(relsType)-1]+`"><sldId r:id="a"/></p>`,
		"ppt/_rels/presentation.xml.rels", `<r><Relationship Id="a" Target="s.xml"/></r>`, "ppt/s.xml", "<s><p><t>x</t></p></s>"))
}
