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

func TestWriteXlsx(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		content, want string // expected text, or text of the error
	}{
		"CSV": {"Name,Qty,Day,Phone\n\"Ann, B\",3.50,2024-02-29,0049301234\n=1+1,,-7,x<y\n", "[sheet \"Sheet1\"]\n1 | Name | Qty | Day | Phone\n" +
			"2 | Ann, B | 3.5 | 2024-02-29 | 0049301234\n3 | =1+1 |  | -7 | x<y\n\n"},
		"semicolons": {"a;b\n1,5;2\n", "1 | a | b\n2 | 1,5 | 2\n"},
		"tabs":       {"a\tb\n1\t2\n", "1 | a | b\n2 | 1 | 2\n"},
		"JSON rows":  {`[["a","b"],[1.25,null,true],[{"formula":"=SUM(A2:A2)"}]]`, "1 | a | b\n2 | 1.25 |  | TRUE\n3 | =SUM(A2:A2)\n"},
		"sheets":     {`{"Z":[["z"]],"A & b":[["a"]]}`, "[sheet \"Z\"]\n1 | z\n\n[sheet \"A & b\"]\n1 | a\n"},
		"nothing":    {" \n", "there are no rows"},
		"no sheets":  {"{}", "there are no sheets"},
		"half JSON":  {`{"A":[["a"]]`, "the JSON is broken"},
		"no rows":    {`{"A":7}`, "must be a list of rows"},
		"objects":    {`[[{"a":1}]]`, "a cell must be"},
		"lists":      {`[[[1]]]`, "a cell must not be a list"},
		"bad name":   {`{"A/B":[["a"]]}`, "a name has 1 to 31 characters"},
		"twice":      {`{"A":[["a"]],"a":[["b"]]}`, "is there twice"},
		"long text":  {`[["` + strings.Repeat("é", maxCellText+1) + `"]]`, "more than 32767 characters"},
		"wide row":   {strings.Repeat(",", maxColumns), "more than 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := WriteXlsx([]byte(tt.content))
			var got []byte
			if err == nil {
				got, err = Xlsx(data, never)
			}
			if err != nil {
				got = []byte(err.Error())
			}
			if !strings.Contains(string(got), tt.want) {
				t.Errorf("%q does not hold %q", got, tt.want)
			}
		})
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

func FuzzWriteXlsx(f *testing.F) {
	f.Add([]byte("a,b\n1,2024-01-01\n"))
	f.Add([]byte(`{"A":[["a",1e400,{"formula":"A1"}]]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		data, err := WriteXlsx(content)
		if err != nil {
			return
		}
		if _, err := Xlsx(data, never); err != nil && err != errEmpty {
			t.Fatalf("%q: %v", content, err)
		}
	})
}
