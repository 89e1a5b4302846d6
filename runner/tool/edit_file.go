package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

type editFile struct{}

// Spec describes edit_file.
func (editFile) Spec() Spec {
	return Spec{
		Name: "edit_file",
		Description: `Replace a piece of text in a file of the workspace. old must be exactly what the file has, white
space and line ends included, and occur in it once: take in as much of the surrounding text as makes it the only one.
With all set to true every occurrence is replaced. To delete text, give an empty new.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Path of the file, relative to the workspace"},
    "old": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file"},
    "new": {"type": "string", "description": "The text to put in its place"},
    "all": {"type": "boolean", "description": "Replace every occurrence instead of the only one; default false"}
  },
  "required": ["path", "old", "new"],
  "additionalProperties": false
}`),
		// Not Repeatable: new may hold old, or old come to be unique only by the edit.
	}
}

// An edit is the replacement of old by new in the file at path.
type edit struct {
	path     string
	old, new []byte
	all      bool
	count    int // replacements made
	line     int // line of the first
	size     int // of the file afterwards
}

// Run edits a file.
func (editFile) Run(_ context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	e := edit{
		path: a.path(),
		old:  []byte(a.text("old", true, math.MaxInt)),
		new:  []byte(a.text("new", true, math.MaxInt)),
		all:  a.boolean("all"),
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	if len(e.old) == 0 {
		return nil, Errorf("old must not be empty; to write a whole file, use write_file")
	}
	if bytes.Equal(e.old, e.new) {
		return nil, Errorf("old and new are the same, so nothing would change")
	}
	if err := host.Workspace().Edit(e.path, e.apply); err != nil {
		return nil, told(err)
	}
	return result(struct {
		Path         string `json:"path"`
		Replacements int    `json:"replacements"`
		Line         int    `json:"line"`
		Size         int    `json:"size"`
	}{e.path, e.count, e.line, e.size})
}

// maxEdited is the most bytes an edit may make of a file. It is counted before the
// edit is made, since new texts for many old ones add up to more than memory holds.
const maxEdited = 64 << 20

// apply makes the edit in data.
func (e *edit) apply(data []byte) ([]byte, error) {
	if encodingOf(data[:min(len(data), headSize)]) != utf8Text || !utf8.Valid(data) {
		return nil, Errorf("path: %q is not UTF-8 text, so it cannot be edited; write_file can replace it", e.path)
	}
	e.matchLineEnds(data)
	first := bytes.Index(data, e.old)
	if first < 0 {
		return nil, e.missing(data)
	}
	e.count = bytes.Count(data, e.old)
	if !e.all && bytes.Contains(data[first+1:], e.old) { // also where it overlaps the first
		return nil, Errorf("old occurs %d times in %q, %s; give more of the text around the right one, or set all to true",
			max(e.count, 2), e.path, e.lines(data))
	}
	e.size = len(data) + e.count*(len(e.new)-len(e.old))
	if e.size > maxEdited {
		return nil, Errorf("the edit would make %d bytes of %q, more than a file can have", e.size, e.path)
	}
	e.line = bytes.Count(data[:first], []byte("\n")) + 1
	return bytes.ReplaceAll(data, e.old, e.new), nil
}

// matchLineEnds gives old and new the line ends of a file that has nothing but
// CRLF, so that a model, which writes LF, can edit it and leaves it consistent.
func (e *edit) matchLineEnds(data []byte) {
	lf, crlf := []byte("\n"), []byte("\r\n")
	n := bytes.Count(data, crlf)
	if n == 0 || n != bytes.Count(data, lf) {
		return
	}
	for _, s := range []*[]byte{&e.old, &e.new} {
		if !bytes.Contains(*s, crlf) {
			*s = bytes.ReplaceAll(*s, lf, crlf)
		}
	}
}

// lines says on which lines the first occurrences of old are.
func (e *edit) lines(data []byte) string {
	var numbers []string
	for at, line := 0, 1; len(numbers) < 5; {
		next := bytes.Index(data[at:], e.old)
		if next < 0 {
			break
		}
		line += bytes.Count(data[at:at+next], []byte("\n"))
		numbers = append(numbers, strconv.Itoa(line))
		line += bytes.Count(data[at+next:at+next+1], []byte("\n"))
		at += next + 1
	}
	return "first on lines " + strings.Join(numbers, ", ")
}

// missing says that old is not in data, and why that may be.
func (e *edit) missing(data []byte) error {
	squeeze := func(b []byte) string { return strings.Join(strings.Fields(string(b)), " ") }
	if old := squeeze(e.old); len(data) < 1<<20 && old != "" && strings.Contains(squeeze(data), old) {
		return Errorf("old does not occur in %q; it would with other white space, so copy that from the file exactly", e.path)
	}
	return Errorf("old does not occur in %q; read the file for its exact text", e.path)
}
