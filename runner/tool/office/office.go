// Package office reads the text of docx, xlsx and pptx documents, and writes docx and
// xlsx documents.
//
// The readers expect hostile input: they limit the unpacked bytes, the nesting and the result.
// As a second line of defense, they run in a confined process. This package opens no file or
// connection, and imports no other package of this program.
package office

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// The limits of a document.
const (
	maxEntries  = 20_000    // files in the archive
	maxUnpacked = 128 << 20 // total bytes of XML that are unpacked
	maxNesting  = 200       // depth of nested elements
	maxText     = 8 << 20   // bytes of text; the rest is omitted
)

// Reasons why a document cannot be read.
var (
	errDamaged   = errors.New("it is damaged")
	errProtected = errors.New("a password protects it, or its format is older than 2007")
	errEntries   = fmt.Errorf("it holds more than %d files", maxEntries)
	errUnpacked  = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	errNesting   = fmt.Errorf("its elements are nested more than %d deep", maxNesting)
	errEmpty     = errors.New("it holds no text")
)

// errEnough ends the reading of a document if its text is long enough, or its time has expired.
// The text so far is still returned.
var errEnough = errors.New("enough text")

// A document is an archive of XML files during reading.
type document struct {
	files   map[string]*zip.File
	left    int64       // bytes that may still be unpacked, total of all files
	expired func() bool // reports whether the time has expired
	out     strings.Builder
	found   bool // out contains text of the document, not only notes
}

// open reads the directory of an archive.
func open(data []byte, expired func() bool) (*document, error) {
	// Encrypted documents and those before 2007 are OLE compound files (MS-CFB), not archives.
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0")) {
		return nil, errProtected
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, errDamaged
	}
	if len(archive.File) > maxEntries {
		return nil, errEntries
	}
	d := &document{files: map[string]*zip.File{}, left: maxUnpacked, expired: expired}
	// Some programs write names with a leading slash, like the targets in relations.
	for _, f := range archive.File {
		d.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	return d, nil
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
func (a attributes) get(name string) string {
	space, local, prefixed := strings.Cut(name, ":")
	if !prefixed {
		space, local = "", name
	}
	for _, attr := range a {
		// The transitional and the strict form of ECMA-376 have different namespaces. Both end
		// in "relationships".
		if attr.Name.Local == local && (!prefixed || attr.Name.Space != "" && space == "r" &&
			strings.HasSuffix(attr.Name.Space, "relationships")) {
			return attr.Value
		}
	}
	return ""
}

// parse parses the XML file at name, and calls v for each of its elements. It reports whether
// the document has such a file.
func (d *document) parse(name string, v visitor) (found bool, err error) {
	f := d.files[name]
	if f == nil {
		return false, nil
	}
	r, err := f.Open()
	if err != nil {
		return true, errDamaged
	}
	defer r.Close()
	bounded := &boundedReader{r: r, d: d}
	dec := xml.NewDecoder(bounded)
	// Only UTF-8 is accepted, so another declared encoding is an error. The decoder rejects
	// entities that XML does not predefine, so no entity can expand to a huge text.
	dec.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errDamaged }
	for depth, n := 0, 0; ; n++ {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		// The decoder only gets a file that ends early. Its own error would be misleading.
		case bounded.exceeded:
			return true, errUnpacked
		case err != nil:
			return true, errDamaged
		// Reading the clock at every token would take longer than the token.
		case n%1000 == 0 && d.expired():
			return true, errEnough
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxNesting {
				return true, errNesting
			}
			err = v.start(t.Name.Local, t.Attr)
		case xml.EndElement:
			depth--
			err = v.end(t.Name.Local)
		case xml.CharData:
			err = v.text(string(t))
		}
		if err != nil {
			return true, err
		}
	}
}

// A boundedReader counts the unpacked bytes of a document, and stops at the limit. The sizes in
// an archive are not reliable.
type boundedReader struct {
	r        io.Reader
	d        *document
	exceeded bool
}

// Read returns further bytes, until the document has unpacked maxUnpacked bytes.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.d.left <= 0 {
		b.exceeded = true
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.d.left)])
	b.d.left -= int64(n)
	return n, err
}

// A relation links one file of the document to another file or to an address. kind is the last
// part of its type.
type relation struct{ kind, target string }

// relations returns the relations of a file by their ids. OPC (ECMA-376 part 2) stores them in
// the folder _rels beside the file.
func (d *document) relations(name string) (map[string]relation, error) {
	dir, base := path.Split(name)
	v := &relationReader{dir: dir, found: map[string]relation{}}
	_, err := d.parse(dir+"_rels/"+base+".rels", v)
	return v.found, err
}

type relationReader struct {
	ignoreText
	dir   string
	found map[string]relation
}

func (v *relationReader) start(name string, attr attributes) error {
	if name != "Relationship" {
		return nil
	}
	target := attr.get("Target")
	if attr.get("TargetMode") != "External" {
		// A target is relative to the folder of the file with the relation.
		if !strings.HasPrefix(target, "/") {
			target = v.dir + target
		}
		target = strings.TrimPrefix(path.Clean("/"+target), "/")
	}
	v.found[attr.get("Id")] = relation{path.Base(attr.get("Type")), target}
	return nil
}

// ignoreText is embedded in visitors that ignore ends of elements and text.
type ignoreText struct{}

func (ignoreText) end(string) error  { return nil }
func (ignoreText) text(string) error { return nil }
