package tool

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
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
	h := newTurn(t, workspace.Limits{})
	h.put(t, "in.txt", "Grüße aus Köln\n")
	made, err := shell.Run(t.Context(), h.ws, sandbox.Command{Timeout: officeTime,
		Script: "soffice --headless --convert-to 'doc:MS Word 97' --infilter='Text (encoded):UTF8' in.txt"})
	is.NoErr(err)
	t.Log(made.Output)
	read := readFile{NewDocuments(sandbox.NewFilterPool()).WithOffice(func() *sandbox.Shell { return shell })}
	document := h.get(t, "in.doc")
	h.put(t, "b.zip", zipped(t, "letters/in.doc", document))
	h.put(t, "m.eml", "From: a@example.com\nContent-Type: application/msword; name=in.doc\nContent-Transfer-Encoding: base64\n\n"+
		base64.StdEncoding.EncodeToString([]byte(document)))
	for path, want := range map[string]string{
		"in.doc":                  "Grüße aus Köln",
		"b.zip/letters/in.doc":    "Grüße aus Köln",
		"m.eml/in.doc":            "Grüße aus Köln",
		"in.doc/docProps/app.xml": "Application", // a file in the newer form, whose files the text names
	} {
		t.Run(path, func(t *testing.T) {
			is := is.New(t)
			text, err := read.Run(t.Context(), h, json.RawMessage(`{"path":"`+path+`"}`))
			is.NoErr(err)
			is.True(strings.Contains(string(text), want))
		})
	}
}

// TestOfficeIsShared lets one organization convert several documents. Another one need not wait for them.
func TestOfficeIsShared(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	running, end := make(chan chan struct{}), make(chan error, 4)
	shell := func() *sandbox.Shell { // called once for each conversion, which it holds up
		leave := make(chan struct{})
		running <- leave
		<-leave
		return nil
	}
	o := NewDocuments(sandbox.NewFilterPool()).WithOffice(shell).office
	convert := func(organization string) {
		ctx := sandbox.ForClient(t.Context(), sandbox.Client{Organization: organization, Sender: "usr_1"})
		go func() {
			_, err := o.convert(ctx, documentKindOf(docType), []byte("x"))
			end <- err
		}()
	}
	convert("org_many")
	first := <-running
	for range 2 {
		convert("org_many")
	}
	for o.lane.Waiting() < 2 { // they are in the queue before the other organization
		runtime.Gosched()
	}
	convert("org_one")
	close(<-running) // it runs besides the first one, which has not ended
	says(t, <-end, "cannot be converted now")
	is.Equal(o.lane.Waiting(), 2) // of the organization that converts a document already
	close(first)
	for range 2 {
		close(<-running)
	}
	for range 3 {
		says(t, <-end, "cannot be converted now")
	}
}

// TestOfficeIsMissing reads such a document on a machine that cannot convert it.
func TestOfficeIsMissing(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
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
