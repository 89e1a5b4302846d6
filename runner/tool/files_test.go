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
	_, err := h.call(t, "read_file", object{"path": "huge"})
	says(t, err, "67108865 bytes; read_file reads files of up to 67108864")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable))
	_, err = h.call(t, "read_file", object{"path": "huge"})
	is.NoErr(err)
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{FileSize: 10, TotalSize: 15})
	for range 2 {
		out, err := h.call(t, "write_file", object{"path": "a/b.txt", "content": "größe\n"})
		is.NoErr(err)
		is.Equal(out, `{"path":"a/b.txt","size":8}`)
		is.Equal(h.get(t, "a/b.txt"), "größe\n")
	}
	_, err := h.call(t, "write_file", object{"path": "empty", "content": ""})
	is.NoErr(err)
	_, err = h.call(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 11)})
	says(t, err, "larger than a file can be, 10 bytes")
	_, err = h.call(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 8)})
	says(t, err, "the workspace can hold 15 bytes and has 8")
	_, err = h.call(t, "write_file", object{"path": "a", "content": ""})
	says(t, err, "path: \"a\" is a folder")
	_, err = h.call(t, "write_file", object{"path": "../f", "content": ""})
	says(t, err, "outside")
}
