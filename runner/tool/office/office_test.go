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

	"journeyman/store/ordertest"
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
		"changes": {`<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>`,
			"new\n\n[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n- somebody deleted \"old\"\n- somebody inserted \"new\"\n\n"},
		"text box": {`<w:p><w:r><w:t>out</w:t><mc:AlternateContent><mc:Choice>` + para("box") + `</mc:Choice><mc:Fallback>` + para("box") + `</mc:Fallback></mc:AlternateContent></w:r></w:p>`, "out\n\nbox\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Docx(docx(t, tt.body), never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
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
	is.Equal(string(got), "[slide 1 of 2]\nfirst\n\n[slide 2 of 2]\nsecond\n\n[notes]\nsay this\n\n")
}

// readers are the reader functions by name.
var readers = map[string]func([]byte, func() bool) ([]byte, error){"docx": Docx, "pptx": Pptx}

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
		"no archive":       {"docx", []byte("hello"), "damaged"},
		"nothing":          {"docx", nil, "damaged"},
		"another archive":  {"docx", pack(t, "a.txt", "x"), "damaged"},
		"another kind":     {"pptx", docx(t, para("x")), "damaged"},
		"password":         {"docx", []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "password"},
		"no text":          {"docx", docx(t, para(" ")), "no text"},
		"broken XML":       {"docx", docx(t, "<w:p><w:t>a"), "damaged"},
		"nested elements":  {"docx", docx(t, nested), "nested"},
		"many files":       {"pptx", pack(t, many(maxEntries+1)...), "more than 20000 files"},
		"entities":         {"docx", pack(t, "word/document.xml", `<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><d><p><t>&b;</t></p></d>`), "damaged"},
		"another encoding": {"docx", pack(t, "word/document.xml", `<?xml version="1.0" encoding="x-evil"?><d/>`), "damaged"},
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
	ordertest.Above(is, len(got), maxText)
	ordertest.Below(is, len(got), maxText+20_000)
	is.True(strings.HasSuffix(string(got), "[the rest of the document is not read]\n"))
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

// FuzzFlow changes the XML of a document body directly.
func FuzzFlow(f *testing.F) {
	f.Add(styled("Titel", "a") + `<w:tbl><w:tr><w:tc>` + para("b") + `</w:tc></w:tr></w:tbl></w:tbl>`)
	f.Fuzz(func(t *testing.T, body string) {
		if _, err := Docx(docx(t, body), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}

// FuzzWordParts changes the XML of the parts on which a body depends.
func FuzzWordParts(f *testing.F) {
	f.Add(listed(1, 0, "a")+`<w:p><m:oMath><m:f><m:num><m:t>a</m:t></m:num></m:f></m:oMath><c:chart r:id="x"/></w:p>`,
		lvl(0, "decimal", "%1.%2", `<w:isLgl/>`), `<c:ser><c:tx><c:v>a</c:v></c:tx><c:val><c:pt idx="1"><c:v>1</c:v></c:pt></c:val></c:ser>`)
	f.Fuzz(func(t *testing.T, body, levels, other string) {
		numbering := `<w:n xmlns:w="w"><w:abstractNum w:abstractNumId="0">` + levels + `</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:n>`
		relations := rel("n", "numbering", "n.xml") + rel("x", "chart", "x.xml") + rel("s", "styles", "x.xml") + rel("f", "footnotes", "x.xml")
		if _, err := Docx(wordParts(t, body, relations, "word/n.xml", numbering, "word/x.xml", "<x>"+other+"</x>"), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}

// FuzzSlide changes the XML of a slide, which is its own layout, chart and diagram.
func FuzzSlide(f *testing.F) {
	f.Add(`<p:sp><p:ph type="title"/><a:off x="1" y="2"/><a:p><a:pPr lvl="1"><a:buAutoNum type="alphaLcParenR"/></a:pPr><a:r><a:t>a</a:t></a:r></a:p></p:sp><p:graphicFrame><a:tbl><a:tr><a:tc/></a:tr></a:tbl><c:chart r:id="self"/></p:graphicFrame>`)
	f.Fuzz(func(t *testing.T, slide string) {
		if _, err := Pptx(onSlide(t, slide), never); err != nil && err.Error() == "" {
			t.Error("an error without a reason")
		}
	})
}

func FuzzPptx(f *testing.F) {
	fuzz(f, Pptx, pack(f, "ppt/presentation.xml", `<p xmlns:r="`+relsType[:len(relsType)-1]+`"><sldId r:id="a"/></p>`,
		"ppt/_rels/presentation.xml.rels", `<r><Relationship Id="a" Target="s.xml"/></r>`, "ppt/s.xml", "<s><p><t>x</t></p></s>"))
}
