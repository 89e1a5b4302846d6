package tool

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

// TestReadOldOffice reads a document in a form before 2007, which LibreOffice makes here and converts in read_file.
func TestReadOldOffice(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("soffice"); err != nil {
		t.Skip("this machine has no soffice")
	}
	shell, err := sandbox.NewShell(sandbox.Detect(t.Context()), sandbox.ShellConfig{})
	if errors.Is(err, sandbox.ErrUnconfined) {
		t.Skip(err)
	}
	is := is.New(t)
	is.NoErr(err)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "in.txt", "Grüße aus Köln\n")
	made, err := shell.Run(t.Context(), h.ws, sandbox.Command{Timeout: officeTime,
		Script: "soffice --headless --convert-to 'doc:MS Word 97' --infilter='Text (encoded):UTF8' in.txt"})
	is.NoErr(err)
	t.Log(made.Output)
	read := readFile{NewDocuments(sandbox.NewFilterPool()).WithOffice(func() *sandbox.Shell { return shell })}
	text, err := read.Run(t.Context(), h, json.RawMessage(`{"path":"in.doc"}`))
	is.NoErr(err)
	is.True(strings.Contains(string(text), "Grüße aus Köln"))
}

// TestOfficeIsMissing reads such a document on a machine that cannot convert it.
func TestOfficeIsMissing(t *testing.T) {
	t.Parallel()
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "o.xls", "\xd0\xcf\x11\xe0"+strings.Repeat("\x00", 512)+"W\x00o\x00r\x00k\x00b\x00o\x00o\x00k\x00\x00\x00")
	for name, shell := range map[string]func() *sandbox.Shell{
		"no shell":   func() *sandbox.Shell { return nil },
		"unconfined": func() *sandbox.Shell { return &sandbox.Shell{} },
	} {
		t.Run(name, func(t *testing.T) {
			read := readFile{NewDocuments(sandbox.NewFilterPool()).WithOffice(shell)}
			_, err := read.Run(t.Context(), h, json.RawMessage(`{"path":"o.xls"}`))
			says(t, err, "soffice --headless --convert-to xlsx 'o.xls'")
		})
	}
}
