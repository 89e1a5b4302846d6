package tool

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

// made returns a document that another program has made, or skips the test.
func made(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	if folder == "" {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	data, err := os.ReadFile(filepath.Join(folder, name))
	is.New(t).NoErr(err)
	return string(data)
}

// TestArchivesOfOtherPrograms lists archives and reads their members.
func TestArchivesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"infozip.zip", "stored.zip", "v7.tar", "ustar.tar", "gnu.tar", "pax.tgz", "b.tar.bz2", "z.tar.zst"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			h.put(t, name, made(t, name))
			list := h.text(t, "read_file", object{"path": name})
			is.True(strings.Contains(list, "\ndocs/Größe.txt\t18\t20") && strings.Contains(list, "\na.csv\t20\t20")) // with years
			is.Equal(h.text(t, "read_file", object{"path": name + "/docs/Größe.txt"}), "1\tGrüße aus Köln\n")
			is.Equal(h.text(t, "search_files", object{"pattern": "Äpfel"}), name+"/a.csv\n2:Äpfel;3\n[1 matches in 1 of 2 text files and documents]\n")
		})
	}
	h := newTurn(t, workspace.Limits{})
	h.put(t, "locked.zip", made(t, "locked.zip"))
	is.New(t).True(strings.Contains(h.text(t, "read_file", object{"path": "locked.zip"}), "\tencrypted\n"))
	h.refuses(t, "read_file", object{"path": "locked.zip/a.csv"}, "it is encrypted: ask for a copy without a password")
	h.put(t, "x.tar.xz", made(t, "x.tar.xz"))
	h.refuses(t, "read_file", object{"path": "x.tar.xz"}, "it is application/x-xz")
	h.refuses(t, "read_file", object{"path": "x.tar.xz"}, "may unpack it (7z, unrar, xz, tar xf)")
	h.put(t, "japanese.zip", made(t, "japanese.zip"))
	is.New(t).True(strings.Contains(h.text(t, "read_file", object{"path": "japanese.zip/会社の資.txt"}), "1\t見積書\n"))
}

// TestWordsOfOtherPrograms compares the words of documents with those that a person sees, in order.
func TestWordsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	shell, err := sandbox.NewShell(sandbox.Detect(t.Context()), sandbox.ShellConfig{})
	if err != nil && !errors.Is(err, sandbox.ErrUnconfined) {
		t.Fatal(err)
	}
	read := readFile{NewDocuments(sandbox.NewFilterPool()).WithOffice(func() *sandbox.Shell { return shell })}
	for _, name := range []string{"pandoc.html", "old.doc", "slides.ppt", "table.xls"} {
		t.Run(name, func(t *testing.T) {
			h := newTurn(t, workspace.Limits{})
			h.put(t, name, made(t, name))
			if shell == nil && name != "pandoc.html" {
				t.Skip("this machine cannot confine commands")
			}
			input, err := json.Marshal(object{"path": name})
			is.New(t).NoErr(err)
			text, err := read.Run(t.Context(), h, input)
			is.New(t).NoErr(err)
			var rest string
			is.New(t).NoErr(json.Unmarshal(text, &rest))
			for word := range strings.FieldsSeq(made(t, name+".words")) {
				_, after, found := strings.Cut(rest, word)
				if !found {
					t.Fatalf("%q is missing in %s", word, text)
				}
				rest = after
			}
		})
	}
}
