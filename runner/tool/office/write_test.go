package office

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// example contains all Markdown elements that WriteDocx supports.
const example = "# Report & <plan>\n\nSome *slanted*, **bold**, ~~gone~~ and `code` [text](https://example.com/?a=1&b=2).  \nNext line " +
	"<https://example.org>.\n\n- one\n  - inner\n\n    more\n- [x] done\n\n3. three\n4. four\n\n> quoted\n\n```go\nif a < b {\n\treturn\n}\n```\n\n" +
	"| Name | Qty |\n|---|--:|\n| Ann | 3 |\n\n---\n\n[run](file:///bin/sh) ![a picture](x.png) <b>\n"

func TestWriteDocx(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	data, err := WriteDocx([]byte(example))
	is.NoErr(err)
	got, err := Docx(data, never)
	is.NoErr(err)
	is.Equal(string(got), "# Report & <plan>\n\nSome slanted, bold, gone and code [text](https://example.com/?a=1&b=2).\nNext line https://example.org.\n\n"+
		"- one\n  - inner\n\nmore\n\n- ☑ done\n3. three\n4. four\n\nquoted\n\nif a < b {\n\treturn\n}\n\n"+
		"| Name | Qty |\n| Ann | 3 |\n\nrun a picture <b>\n\n")
	is.True(!strings.Contains(string(data), "file:///bin/sh")) // only links to pages and mail addresses are kept

	pandoc, err := exec.LookPath("pandoc")
	if err != nil {
		t.Skip("pandoc is not installed")
	}
	path := filepath.Join(t.TempDir(), "a.docx")
	is.NoErr(os.WriteFile(path, data, 0o600))
	out, err := exec.Command(pandoc, "-t", "gfm", path).CombinedOutput()
	is.NoErr(err)
	for _, want := range []string{"# Report & \\<plan\\>", "*slanted*, **bold**, ~~gone~~", "[text](https://example.com/?a=1&b=2)",
		"-   inner", "3.  three", "4.  four", "> quoted", "| Ann      | 3       |"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("another reader finds no %q in\n%s", want, out)
		}
	}
}

func FuzzWriteDocx(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, markdown []byte) {
		data, err := WriteDocx(markdown)
		if err == nil {
			_, err = Docx(data, never)
		}
		if err != nil && err != errEmpty {
			t.Fatalf("%q: %v", markdown, err)
		}
	})
}

// TestDocxEscapes writes texts with escapes. A reader sees none of them.
func TestDocxEscapes(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"| a \\| b | `c \\| d` |\n|---|---|\n| \\* | \\\\ |": "| a \\| b | c \\| d |\n| * | \\ |\n",
		"1 \\* 2 \\_ &auml;&#228; &lt;b&gt; \\&amp; &nope;":  "1 * 2 _ ää <b> &amp; &nope;\n",
		"`\\* &auml;`": "\\* &auml;\n",
		"\\# x":        "# x\n",
		"a<br>b<BR/>c": "a\nb\nc\n",
	} {
		is := is.New(t)
		data, err := WriteDocx([]byte(source))
		is.NoErr(err)
		got, err := Docx(data, never)
		is.NoErr(err)
		is.Equal(strings.TrimSpace(string(got)), strings.TrimSpace(want))
	}
	is := is.New(t)
	data, err := WriteDocx([]byte(`[a](https://example.com/\_x?a=1&amp;b=2)`))
	is.NoErr(err)
	is.True(strings.Contains(unpacked(t, data, "word/_rels/document.xml.rels"), `"https://example.com/_x?a=1&amp;b=2"`))
}

// unpacked returns a file of a document.
func unpacked(t *testing.T, document []byte, name string) string {
	t.Helper()
	is := is.New(t)
	z, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	is.NoErr(err)
	f, err := z.Open(name)
	is.NoErr(err)
	data, err := io.ReadAll(f)
	is.NoErr(err)
	return string(data)
}

// TestDocxInOtherPrograms reads the size of the pages, and the text, with python-docx and LibreOffice.
func TestDocxInOtherPrograms(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	data, err := WriteDocx([]byte("# Title\n\n| a \\| b | c |\n|---|---|\n| 1 | 2 |\n"))
	is.NoErr(err)
	is.True(strings.Contains(unpacked(t, data, "word/document.xml"), `<w:pgSz w:w="11906" w:h="16838"/>`))
	path := filepath.Join(t.TempDir(), "a.docx")
	is.NoErr(os.WriteFile(path, data, 0o600))
	const script = `import docx, sys
d = docx.Document(sys.argv[1])
s = d.sections[0]
print(len(d.sections), round(s.page_width.mm), round(s.page_height.mm), round(s.left_margin.mm), d.tables[0].cell(0, 0).text)`
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import docx").Run() != nil {
		t.Skip("python-docx is not installed")
	}
	out, err := exec.Command(python, "-c", script, path).CombinedOutput()
	is.NoErr(err)
	is.Equal(strings.TrimSpace(string(out)), "1 210 297 25 a | b")
}
