package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

func TestReadFileTooLarge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "huge", strings.Repeat("x", headSize))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable+1))
	h.refuses(t, "read_file", object{"path": "huge"}, "67108865 bytes; read_file reads files of up to 67108864")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable))
	h.does(t, "read_file", object{"path": "huge"})
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{FileSize: 10, TotalSize: 15})
	for range 2 {
		out := h.does(t, "write_file", object{"path": "a/b.txt", "content": "größe\n"})
		is.Equal(out, `{"path":"a/b.txt","size":8}`)
		is.Equal(h.get(t, "a/b.txt"), "größe\n")
	}
	h.does(t, "write_file", object{"path": "empty", "content": ""})
	h.refuses(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 11)},
		"larger than a file can be, 10 bytes")
	h.refuses(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 8)},
		"the workspace can hold 15 bytes and has 8")
	h.refuses(t, "write_file", object{"path": "a", "content": ""}, "path: \"a\" is a folder")
	h.refuses(t, "write_file", object{"path": "../f", "content": ""}, "outside")
}

// TestBinaryExtensions writes text to files that cannot be text, and publishes such files.
func TestBinaryExtensions(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	for path, way := range map[string]string{
		"a.odt": ".docx or .pdf instead", "a.DOC": ".docx or .pdf instead", "a.xls": ".xlsx instead", "a.ods": ".xlsx instead",
		"a.pptx": ".pdf or .docx instead", "a.odp": ".pdf or .docx instead", "b/a.ppt": ".pdf or .docx instead",
		"a.png": "make_chart", "a.jpg": ".svg instead", "a.zip": "the tool shell", "a.mp3": "the tool shell",
		"a.xlsm": ".xlsx instead", "a.tar.gz": "the tool shell", "a.epub": ".docx or .pdf instead", "a.sqlite": "the tool shell",
	} {
		for _, content := range []string{"hello world", "", "UEsDBBQA"} {
			h.refuses(t, "write_file", object{"path": path, "content": content}, way)
		}
		h.put(t, path, "hello world")
		h.refuses(t, "publish_file", object{"path": path}, "no program can open plain text as ")
		h.put(t, path, "")
		h.refuses(t, "publish_file", object{"path": path}, "an empty file")
	}
	h.put(t, "a.pdf", "hello world")
	h.refuses(t, "publish_file", object{"path": "a.pdf"}, "no program can open plain text as .pdf")
	for path, content := range map[string]string{
		"a.svg": "<svg/>", "a.rtf": `{\rtf1 x}`, "a.eml": "From: a", "a.ipynb": "{}", "a.sql": "select 1", "a.toml": "a=1",
		"a.unknown": "x", "a": "x", "a.csv": "", "a.tsv": "a", "a.ics": "x", "a.vcf": "x", "a.ps": "%!PS", "a.ts": "x", "a.html": "x",
		"png": "x", ".png/x": "y",
	} {
		h.does(t, "write_file", object{"path": path, "content": content})
		h.does(t, "publish_file", object{"path": path})
	}
	h.put(t, "rich.doc", `{\rtf1 x}`)
	h.does(t, "publish_file", object{"path": "rich.doc"})
	h.put(t, "real.png", string(testPicture(t, 3, 2)))
	h.does(t, "publish_file", object{"path": "real.png"})
}
