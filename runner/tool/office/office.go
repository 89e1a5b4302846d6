// Package office reads the text of docx, xlsx and pptx documents, and writes docx and
// xlsx documents.
//
// The readers expect hostile input: they bound what they unpack, nest and return. As a second
// line of defence, they run in a confined process. Nothing here opens a file or a connection, and
// the package imports no other package of ours.
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
	maxUnpacked = 128 << 20 // bytes of XML that are unpacked in all
	maxNesting  = 200       // elements within each other
	maxText     = 8 << 20   // bytes of text; the rest is left out
)

// The reasons why a document cannot be read.
var (
	errDamaged   = errors.New("it is damaged")
	errProtected = errors.New("a password protects it, or its format is older than 2007")
	errEntries   = fmt.Errorf("it holds more than %d files", maxEntries)
	errUnpacked  = fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
	errNesting   = fmt.Errorf("its elements are nested more than %d deep", maxNesting)
	errEmpty     = errors.New("it holds no text")
)

// errEnough ends the reading of a document whose text is long enough, or whose time is up.
// The text so far is still returned.
var errEnough = errors.New("enough text")

// A document is an archive of XML files that is being read.
type document struct {
	files   map[string]*zip.File
	left    int64       // bytes that may still be unpacked, of all files together
	expired func() bool // reports whether time is up
	out     strings.Builder
	found   bool // out holds text of the document, not only notes
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
	// Some programs write names with a slash at the beginning, as the relations of OPC do.
	for _, f := range archive.File {
		d.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	return d, nil
}

// finish returns the text that was read. err is the error that ended the reading, nil at the
// end of the document.
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

// write adds text of the document. It returns errEnough once the limit or the time is reached.
func (d *document) write(text string) error {
	d.found = d.found || strings.TrimSpace(text) != ""
	d.out.WriteString(text)
	if d.out.Len() > maxText || d.expired() {
		return errEnough
	}
	return nil
}

// note adds a line that is not text of the document. A document with notes alone is empty.
func (d *document) note(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

// A visitor handles the elements and the text of an XML file. Names come without their
// namespace. An error of a method ends the reading.
type visitor interface {
	start(name string, attr attributes) error
	end(name string) error
	text(text string) error
}

// attributes are the attributes of an element.
type attributes []xml.Attr

// get returns the value of an attribute, "" if there is none. A name may have the prefix r:,
// as in r:id. The prefix stands for the namespace of relationships.
func (a attributes) get(name string) string {
	space, local, prefixed := strings.Cut(name, ":")
	if !prefixed {
		space, local = "", name
	}
	for _, attr := range a {
		// The transitional and the strict form of ECMA-376 have different namespaces. Both names end
		// in "relationships".
		if attr.Name.Local == local && (!prefixed || attr.Name.Space != "" && space == "r" &&
			strings.HasSuffix(attr.Name.Space, "relationships")) {
			return attr.Value
		}
	}
	return ""
}

// parse reads the XML file at name, and calls v for each of its elements. It reports whether the
// document has such a file.
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
	// Only UTF-8 is read, so another declared encoding is an error. The decoder refuses entities
	// that XML does not predefine, so no entity can expand to a huge text.
	dec.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errDamaged }
	for depth, n := 0, 0; ; n++ {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		// The decoder only sees a file that ends early. Its own error would be misleading.
		case bounded.exceeded:
			return true, errUnpacked
		case err != nil:
			return true, errDamaged
		// Reading the clock at every token would cost more than the token.
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

// A boundedReader counts the unpacked bytes of a document, and ends at their limit. The sizes
// in an archive cannot be trusted.
type boundedReader struct {
	r        io.Reader
	d        *document
	exceeded bool
}

// Read reads on, until the document has unpacked maxUnpacked bytes.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.d.left <= 0 {
		b.exceeded = true
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.d.left)])
	b.d.left -= int64(n)
	return n, err
}

// A relation leads from one file of the document to another file or to an address. kind is
// the last part of its type.
type relation struct{ kind, target string }

// relations returns the relations of a file by their ids. OPC (ECMA-376 part 2) keeps them in
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
		// A target is relative to the folder of the file that it belongs to.
		if !strings.HasPrefix(target, "/") {
			target = v.dir + target
		}
		target = strings.TrimPrefix(path.Clean("/"+target), "/")
	}
	v.found[attr.get("Id")] = relation{path.Base(attr.get("Type")), target}
	return nil
}

// ignoreText is embedded in visitors that need no ends and no text.
type ignoreText struct{}

func (ignoreText) end(string) error  { return nil }
func (ignoreText) text(string) error { return nil }
