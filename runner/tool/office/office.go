// Package office reads the text of docx and pptx documents, and writes docx documents.
//
// The readers expect hostile input: they limit the unpacked bytes, the nesting and the result.
// As a second line of defense, they run in a confined process. This package opens no file or
// connection.
package office

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// The limits of a document.
const (
	maxEntries  = archive.MaxEntries
	maxUnpacked = archive.MaxUnpacked
	maxText     = 8 << 20 // bytes of text; the rest is omitted
)

// Reasons why a document cannot be read.
var (
	errDamaged  = archive.ErrDamaged
	errUnpacked = archive.ErrUnpacked
	errEmpty    = errors.New("it holds no text")
)

// errEnough ends the reading of a document if its text is long enough, or its time has expired.
// The text so far is still returned.
var errEnough = archive.ErrEnough

// A document is an archive of XML files during reading.
type document struct {
	files   map[string]*zip.File
	left    *int64      // bytes that may still be unpacked, total of all files
	expired func() bool // reports whether the time has expired
	out     strings.Builder
	found   bool // out contains text of the document, not only notes

	drawings map[string]string // texts of the charts and diagrams so far, by the names of their files
}

// open reads the directory of an archive.
func open(data []byte, expired func() bool) (*document, error) {
	r, err := archive.Open(data, expired)
	if err != nil {
		return nil, err
	}
	return &document{files: r.Files, left: r.Left, expired: expired}, nil
}

// finish returns the text so far. err is the error that ended the reading, nil at the end of
// the document.
func (d *document) finish(err error) ([]byte, error) {
	switch {
	case errors.Is(err, errEnough):
		d.out.WriteString("\n[the rest of the document is not read]\n")
	case err != nil:
		return nil, err
	case !d.found:
		return nil, errEmpty
	}
	return []byte(strings.ToValidUTF8(d.out.String(), "\uFFFD")), nil
}

// write adds text of the document. It returns errEnough when the limit or the time is reached.
func (d *document) write(text string) error {
	d.found = d.found || strings.TrimSpace(text) != ""
	d.out.WriteString(text)
	if d.out.Len() > maxText || d.expired() {
		return errEnough
	}
	return nil
}

// note adds a line that is not text of the document. A document with only notes is considered
// empty.
func (d *document) note(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

// A visitor handles the elements and the text of an XML file. Names have no namespace. An error
// of a method ends the reading.
type visitor interface {
	start(name string, attr attributes) error
	end(name string) error
	text(text string) error
}

// attributes are the attributes of an element.
type attributes []xml.Attr

// get returns the value of an attribute, "" if there is none. A name may have the prefix r:, as
// in r:id, for the namespace of relationships.
func (a attributes) get(name string) string { return archive.Attributes(a).Get(name) }

// withoutSpaces passes the elements of an XML file to a visitor, without their namespaces.
type withoutSpaces struct{ visitor }

func (v withoutSpaces) Start(name xml.Name, attr archive.Attributes) error {
	return v.start(name.Local, attributes(attr))
}

func (v withoutSpaces) End(name xml.Name) error { return v.end(name.Local) }

func (v withoutSpaces) Text(text string) error { return v.text(text) }

// archive returns the reader of the document's files.
func (d *document) archive() archive.Reader {
	return archive.Reader{Files: d.files, Left: d.left, Expired: d.expired}
}

// parse parses the XML file at name, and calls v for each of its elements. It reports whether
// the document has such a file.
func (d *document) parse(name string, v visitor) (found bool, err error) {
	return d.archive().Parse(name, withoutSpaces{v})
}

// A relation links one file of the document to another file or to an address. kind is the last
// part of its type.
type relation struct{ kind, target string }

// relations returns the relations of a file by their ids.
func (d *document) relations(name string) (map[string]relation, error) {
	all, err := d.archive().Relations(name)
	found := make(map[string]relation, len(all))
	for id, r := range all {
		found[id] = relation{r.Kind, r.Target}
	}
	return found, err
}

// ignoreText is embedded in visitors that ignore ends of elements and text.
type ignoreText struct{}

func (ignoreText) end(string) error  { return nil }
func (ignoreText) text(string) error { return nil }
