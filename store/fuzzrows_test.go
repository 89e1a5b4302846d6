package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// notMeasured lists the fuzz targets without a row in a table of parsers, with the reason.
var notMeasured = map[string]string{
	"handlers/command.FuzzControl": "only the operator reaches the socket; its bodies are JSON with a maximum size",
	"mail.FuzzSession":             "a library reads commands line by line, with a maximum length; the rows of mail/message read the mails",
	"runner/backup.FuzzUnseal":     "age reads chunks of fixed size, and only of a backup that the operator names",
	"store.FuzzCursor":             "it needs a database; a cursor is Base64 of two numbers",
	"store.FuzzTaskSearch":         "it needs a database; the length of the text is limited",
	"store/postgres.FuzzTranslate": "it reads this program's own statements",
	"store/sqlite.FuzzValues":      "it compares two engines, and parses nothing",
}

var (
	fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)
	fuzzRow    = regexp.MustCompile(`"(Fuzz\w+)"`)
)

// TestFuzzedParsersAreMeasured checks that each fuzz target has a row in the table of its package, so that the
// time of its parser is measured.
func TestFuzzedParsersAreMeasured(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	targets, rows := map[string]bool{}, map[string]bool{}
	for _, file := range sources(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		is.NoErr(err)
		room, err := filepath.Rel("..", filepath.Dir(file))
		is.NoErr(err)
		for _, m := range fuzzTarget.FindAllSubmatch(text, -1) {
			targets[filepath.ToSlash(room)+"."+string(m[1])] = true
		}
		if filepath.Base(file) == "parsers_linux_test.go" {
			for _, m := range fuzzRow.FindAllSubmatch(text, -1) {
				rows[filepath.ToSlash(room)+"."+string(m[1])] = true
			}
		}
	}
	ordertest.Above(is, len(targets), 40)
	for name := range targets {
		if !rows[name] && notMeasured[name] == "" {
			t.Errorf("%s has no row in parsers_linux_test.go of its package, and no reason in notMeasured", name)
		}
	}
	for name := range rows {
		is.True(targets[name]) // a row names a fuzz target that exists
	}
	for name := range notMeasured {
		is.True(targets[name] && !rows[name])
	}
}
