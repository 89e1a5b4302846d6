package office

import (
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
	is.Equal(string(got), "# Report & <plan>\n\nSome slanted, bold, gone and code text.\nNext line https://example.org.\n\n"+
		"- one\n  - inner\nmore\n\n- ☑ done\n- three\n- four\nquoted\n\nif a < b {\n\treturn\n}\n\n"+
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
