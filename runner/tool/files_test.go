package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

func TestReadFileTooLarge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "huge", strings.Repeat("x", headSize))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable+1))
	h.refuses(t, "read_file", object{"path": "huge"}, "67108865 bytes; read_file reads files of up to 67108864")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable))
	h.does(t, "read_file", object{"path": "huge"})
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{FileSize: 10, TotalSize: 15})
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
