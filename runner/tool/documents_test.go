package tool

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

// packDocx returns a docx document with the given body.
func packDocx(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	w, err := z.Create("word/document.xml")
	if err == nil {
		_, err = w.Write([]byte(`<w:document xmlns:w="w">` + body + `</w:document>`))
	}
	if err == nil {
		err = z.Close()
	}
	is.New(t).NoErr(err)
	return b.String()
}

// packXlsb returns the archive of a binary workbook.
func packXlsb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	_, err := z.Create("xl/workbook.bin")
	is.New(t).NoErr(err)
	is.New(t).NoErr(z.Close())
	return b.String()
}

// TestWriteOfficeDocuments writes documents and reads them again.
func TestWriteOfficeDocuments(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.does(t, "write_file", object{"path": "a/letter.DOCX", "content": "# Dear Ann\n\n- one\n- two\n"})
	is.Equal(h.text(t, "read_file", object{"path": "a/letter.DOCX"}), "# Dear Ann\n\n- one\n- two\n")
	h.does(t, "write_file", object{"path": "b.xlsx", "content": "Name,Qty\nAnn,3\n"})
	is.Equal(h.text(t, "read_file", object{"path": "b.xlsx"}), "[sheet \"Sheet1\"]\n[A1:B2]\nrow | A | B\n1 | Name | Qty\n2 | Ann | 3\n\n")
	is.Equal(h.text(t, "read_file", object{"path": "b.xlsx", "sheet": "1", "range": "B"}), "[sheet \"Sheet1\"]\n[A1:B2]\nrow | B\n1 | Qty\n2 | 3\n\n")
	h.refuses(t, "read_file", object{"path": "b.xlsx", "sheet": "Plan"}, `this part of the workbook cannot be read: there is no sheet "Plan"; the sheets are 1 "Sheet1"`)
	h.refuses(t, "read_file", object{"path": "a/letter.DOCX", "range": "B"}, `range does not apply to "a/letter.DOCX"`)
	is.Equal(string(h.does(t, "write_file", object{"path": "c.xlsx", "content": `[["Qty"],[0],[{"formula":"1/A2"}]]`})[:16]), `{"path":"c.xlsx"`)
	is.True(strings.Contains(h.text(t, "read_file", object{"path": "c.xlsx"}), "3 | =1/A2 → #DIV/0!"))
	h.refuses(t, "write_file", object{"path": "c.xlsx", "content": `{"A": [["Qty"],[{"formula":"1+"}]]}`},
		`A!A2: the formula "1+" is not valid: it ends where a value is expected`)
	h.refuses(t, "write_file", object{"path": "b.xlsx", "content": "[7]"},
		"the content cannot become a xlsx document: sheet \"Sheet1\" must be a list of rows")
	is.True(strings.Contains(h.text(t, "read_file", object{"path": "b.xlsx"}), "Ann")) // the file did not change
}

// TestReadOfficeDocuments reads documents with read_file, in the confined process.
func TestReadOfficeDocuments(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "letter.docx", packDocx(t, "<w:p><w:t>Dear Ann</w:t></w:p><w:p><w:t>Yours</w:t></w:p>"))
	is.Equal(h.text(t, "read_file", object{"path": "letter.docx"}), "Dear Ann\n\nYours\n\n") // without line numbers
	is.Equal(h.text(t, "read_file", object{"path": "letter.docx", "limit": 1}), "Dear Ann\n[lines 1 to 1 of 4; go on with offset 2]\n")
	bomb := packDocx(t, "<w:p><w:t>"+strings.Repeat("x", 130<<20)+"</w:t></w:p>")
	for name, tt := range map[string]struct{ data, says string }{
		"damaged.docx": {"PK\x03\x04", "the docx document has no text that can be read: it is damaged"},
		"old.xlsx":     {"\xd0\xcf\x11\xe0", "the workbook has no text that can be read: a password protects it"},
		"damaged.ods":  {"PK\x03\x04", "the workbook has no text that can be read: it is damaged"},
		"binary.xlsb":  {packXlsb(t), "the workbook has no text that can be read: it is a binary workbook (xlsb)"},
		"other.pptx":   {packDocx(t, ""), "the pptx document has no text that can be read: it is damaged"},
		"bomb.docx":    {bomb, "the docx document has no text that can be read"}, // the process dies, and only this call fails
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.put(t, name, tt.data)
			h.refuses(t, "read_file", object{"path": name}, tt.says)
		})
	}
}
