package tool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

// TestWritePDF writes PDF documents with pictures of the workspace, and reads them with another program.
func TestWritePDF(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "docs/near.png", string(testPicture(t, 40, 20)))
	h.put(t, "far one.png", string(testPicture(t, 30, 20)))
	h.put(t, "note.png", "no picture")
	const markdown = "# Größe – 5 €\n\n![near](near.png) ![far](far%20one.png)\n\n![none](none.png) ![web](https://example.com/x.png) " +
		"![outside](../../etc/passwd) ![text](note.png)\n\n| Item | Price |\n|---|---|\n| Apple | 1,20 € |\n"
	var got struct {
		Path        string
		Size, Pages int
		Notes       []string
	}
	is.NoErr(json.Unmarshal([]byte(h.does(t, "write_file", object{"path": "docs/a.pdf", "content": markdown})), &got))
	is.Equal(got.Path, "docs/a.pdf")
	is.Equal(got.Pages, 1)
	is.Equal(got.Size, len(h.get(t, "docs/a.pdf")))
	is.Equal(len(got.Notes), 4)
	for i, want := range []string{`"none.png" is not shown, but its description: no file or folder`,
		`web_fetch with save`, "outside the workspace", `"note.png" is not shown: it is neither a PNG nor a JPEG`} {
		if !strings.Contains(got.Notes[i], want) {
			t.Errorf("note %q does not contain %q", got.Notes[i], want)
		}
	}
	h.does(t, "publish_file", object{"path": "docs/a.pdf"})
	h.refuses(t, "write_file", object{"path": "docs/a.pdf", "content": "%PDF-1.4\n1 0 obj"}, "made of Markdown")
	h.refuses(t, "write_file", object{"path": "b.PDF", "content": strings.Repeat("<p style='break-after: page'>\n\n", 1001)},
		"the content cannot become a PDF document: the document would have more than 1000 pages")
	program, err := exec.LookPath("pdftotext")
	if err != nil {
		t.Skip("pdftotext is not installed")
	}
	out, err := exec.Command(program, filepath.Join(h.dir, "docs/a.pdf"), "-").CombinedOutput()
	is.NoErr(err)
	is.Equal(strings.Fields(string(out)), strings.Fields("Größe – 5 € none web outside [note.png] Item Price Apple 1,20 € 1"))
	out, err = exec.Command("pdfimages", "-list", filepath.Join(h.dir, "docs/a.pdf")).CombinedOutput()
	is.NoErr(err)
	is.True(strings.Contains(string(out), " 40 ") && strings.Contains(string(out), " 30 "))
}

// TestWritePDFWithLargePictures writes a document with a picture of the largest size, in the confined process.
func TestWritePDFWithLargePictures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "large.png", string(testPicture(t, 3000, 3000)))
	h.put(t, "larger.png", string(testPicture(t, 3001, 3000)))
	out := h.does(t, "write_file", object{"path": "a.pdf", "content": "![x](large.png)\n\n![y](larger.png)"})
	is.True(strings.Contains(out, `The picture \"larger.png\" is not shown: it has 3001 x 3000 pixels`))
	is.True(!strings.Contains(out, "large.png is"))
	entries, err := os.ReadDir(h.dir)
	is.NoErr(err)
	is.True(slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "a.pdf" }))
}
