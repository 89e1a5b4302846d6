package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"journeyman/runner/tool/charset"
	"journeyman/store/visible"
)

const (
	maxEdits = 100 // replacements per call

	// maxEdited is the maximum size of an edited file, in bytes. The size is computed before
	// the edit: long replacements of many occurrences could exceed the machine's memory.
	maxEdited = 64 << 20
)

type editFile struct{}

// Spec describes edit_file.
func (editFile) Spec() Spec {
	return Spec{
		Name: "edit_file",
		Description: `Replace text that occurs once in a file of the workspace. Several edits are made in order, all
or none. old is text of the file without line numbers, with enough around it to occur once. White space at line
ends, indentation and typographic quotes may differ. Gives a diff.`,
		InputSchema: objectSchema(`
    "path": {"type": "string"},
    "old": {"type": "string", "minLength": 1},
    "new": {"type": "string", "description": "Empty to delete old"},
    "all": {"type": "boolean", "description": "Every occurrence of old; default false"},
    "edits": {"type": "array", "minItems": 1, "maxItems": 100, "description": "In place of old and new",
      "items": {"type": "object", "required": ["old", "new"], "additionalProperties": false,
        "properties": {"old": {"type": "string", "minLength": 1}, "new": {"type": "string"}}}}`,
			"path"),
		// Not Repeatable: new may contain old. After the edit, old may occur exactly once.
	}
}

// An edit replaces the text old by the text new.
type edit struct {
	name     string // name in messages: "old", or "edits[2].old"
	old, new []byte
	all      bool
}

// An editing holds the arguments and the state of one call of edit_file.
type editing struct {
	path   string
	edits  []edit
	count  int      // replacements
	loose  []string // names of edits whose text was only found by findLoosely
	before []byte   // contents of the file
	after  []byte
}

// Run edits a file.
func (editFile) Run(_ context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	e := editing{}
	if err := e.parse(input); err != nil {
		return nil, err
	}
	// Edit ensures that no other write through this Workspace happens between its read and its
	// write.
	if err := host.Workspace().Edit(e.path, e.apply); err != nil {
		return nil, explain(err)
	}
	notes := ""
	for _, name := range e.loose {
		notes += fmt.Sprintf("[%s was found with other white space or quotes: check the diff]\n", name)
	}
	return result(fmt.Sprintf("%s: %d replaced, %d bytes now\n", visible.Name(e.path), e.count, len(e.after)) + notes +
		unifiedDiff(e.path, string(e.before), string(e.after)))
}

// parse parses the arguments of a call. It returns an *Error with all problems.
func (e *editing) parse(input json.RawMessage) error {
	a := parse(input)
	e.path = a.path()
	all := a.boolean("all")
	one := func(a *arguments, name string) {
		e.edits = append(e.edits, edit{name: name, old: []byte(a.text("old", true, math.MaxInt)),
			new: []byte(a.text("new", true, math.MaxInt)), all: all})
	}
	several := a.has("edits", false)
	if several {
		for i, object := range a.objects("edits", maxEdits) {
			one(object, fmt.Sprintf("edits[%d].old", i))
		}
	}
	switch {
	// With both forms, it is unclear which edit is wanted.
	case several && (a.has("old", false) || a.has("new", false)):
		a.wrong("give either old and new, or edits")
	case several && len(e.edits) == 0:
		a.wrong("edits must not be empty")
	case !several:
		one(a, "old")
	}
	if err := a.err(); err != nil {
		return err
	}
	for _, x := range e.edits {
		switch {
		case len(x.old) == 0:
			return Errorf("%s must not be empty; to write a whole file, use write_file", x.name)
		// Reject this: after a success, the model would assume that the file has changed.
		case bytes.Equal(x.old, x.new):
			return Errorf("%s and new are the same, so nothing would change", x.name)
		}
	}
	return nil
}

// apply returns the contents of the file after all edits. After an error the file does not
// change, so a call makes all of its edits or none.
func (e *editing) apply(data []byte) ([]byte, error) {
	if encodingOf(data[:min(len(data), headSize)]) != charset.UTF8 || !utf8.Valid(data) {
		return nil, Errorf("path: %q is not UTF-8 text, so it cannot be edited; write_file can replace a text", e.path)
	}
	// Each edit changes the result of the previous one.
	e.before, e.after, e.count, e.loose = data, data, 0, nil
	for _, x := range e.edits {
		// First adapt the line ends, because a text with LF is not found in a file with CRLF.
		x.matchLineEnds(e.after)
		if err := e.replace(x); err != nil {
			return nil, err
		}
	}
	return e.after, nil
}

// replace makes one edit. It searches for the exact text first, then for a similar one.
func (e *editing) replace(x edit) error {
	data := e.after
	first := bytes.Index(data, x.old)
	if first < 0 {
		return e.replaceLoosely(x)
	}
	n := bytes.Count(data, x.old)
	if !x.all && bytes.Contains(data[first+1:], x.old) { // an overlapping occurrence counts, too
		return Errorf("%s occurs %d times in %q, %s; give more of the text around the right one, or set all to true",
			x.name, max(n, 2), e.path, x.lines(data))
	}
	// The size is checked before memory is allocated for the result.
	if size := len(data) + n*(len(x.new)-len(x.old)); size > maxEdited {
		return Errorf("the edit would make %d bytes of %q, more than a file can have; put the rest into another file",
			size, e.path)
	}
	e.count += n
	e.after = bytes.ReplaceAll(data, x.old, x.new)
	return nil
}

// replaceLoosely makes an edit whose exact text is not in the file. It replaces a text that
// differs only in white space or typographic characters. There must be only one such text.
func (e *editing) replaceLoosely(x edit) error {
	if len(e.after) > maxLoose {
		return Errorf("%s does not occur in %q; read the file for its exact text", x.name, e.path)
	}
	// A similar text must be the only candidate, even if all is set.
	found := findLoosely(e.after, x.old)
	switch {
	case len(found) == 0:
		return Errorf("%s does not occur in %q; the nearest lines are:\n%s",
			x.name, e.path, nearestLines(e.after, x.old))
	case len(found) > 1:
		return Errorf("%s does not occur in %q; with other white space or quotes it does %d times, "+
			"first on lines %d and %d; give more of the text around the right one",
			x.name, e.path, len(found), lineAt(e.after, found[0].from), lineAt(e.after, found[1].from))
	}
	at := found[0]
	replacement := at.reindent(e.after, x.old, x.new)
	e.after = bytes.Join([][]byte{e.after[:at.from], replacement, e.after[at.to:]}, nil)
	e.count++
	e.loose = append(e.loose, x.name)
	return nil
}

// lineAt returns the number of the line that contains the byte at offset.
func lineAt(data []byte, offset int) int { return bytes.Count(data[:offset], []byte("\n")) + 1 }

// matchLineEnds converts old and new to CRLF if every line of the file ends with CRLF. Models
// write LF: old would not be found, and new would cause mixed line ends.
func (x *edit) matchLineEnds(data []byte) {
	lf, crlf := []byte("\n"), []byte("\r\n")
	n := bytes.Count(data, crlf)
	if n == 0 || n != bytes.Count(data, lf) {
		return
	}
	for _, s := range []*[]byte{&x.old, &x.new} {
		// A text that already has CRLF would get a second CR.
		if !bytes.Contains(*s, crlf) {
			*s = bytes.ReplaceAll(*s, lf, crlf)
		}
	}
}

// lines returns a text with the line numbers of the first occurrences of old.
func (x *edit) lines(data []byte) string {
	var numbers []string
	// Advance by one byte, because occurrences may overlap.
	for at := 0; len(numbers) < 5; at++ {
		next := bytes.Index(data[at:], x.old)
		if next < 0 {
			break
		}
		at += next
		numbers = append(numbers, strconv.Itoa(lineAt(data, at)))
	}
	return "first on lines " + strings.Join(numbers, ", ")
}
