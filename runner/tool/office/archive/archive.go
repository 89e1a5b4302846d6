// Package archive reads and writes the archives of XML files of which office documents consist.
//
// It expects hostile input: it limits the files, the unpacked bytes and the nesting. It opens no file or
// connection, and imports no other package of this program.
package archive

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

// The limits of an archive.
const (
	MaxEntries  = 20_000    // files
	MaxUnpacked = 128 << 20 // total bytes of XML that are unpacked
	MaxNesting  = 200       // depth of nested elements
)

// Reasons why an archive cannot be read.
var (
	ErrDamaged   = errors.New("it is damaged")
	ErrProtected = errors.New("a password protects it, or its format is older than 2007")
	ErrEntries   = fmt.Errorf("it holds more than %d files", MaxEntries)
	ErrUnpacked  = fmt.Errorf("it unpacks to more than %d bytes", MaxUnpacked)
	ErrNesting   = fmt.Errorf("its elements are nested more than %d deep", MaxNesting)
)

// ErrEnough ends the reading of an archive if its text is long enough, or its time has expired. The text so
// far is still useful.
var ErrEnough = errors.New("enough text")

// A Reader reads the files of an archive.
type Reader struct {
	Files   map[string]*zip.File // by their names
	Left    *int64               // bytes that may still be unpacked, total of all files
	Expired func() bool          // reports whether the time has expired
}

// Open reads the directory of an archive.
func Open(data []byte, expired func() bool) (Reader, error) {
	// Encrypted documents and those before 2007 are OLE compound files (MS-CFB), not archives.
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0")) {
		return Reader{}, ErrProtected
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Reader{}, ErrDamaged
	}
	if len(z.File) > MaxEntries {
		return Reader{}, ErrEntries
	}
	left := int64(MaxUnpacked)
	r := Reader{Files: map[string]*zip.File{}, Left: &left, Expired: expired}
	// Some programs write names with a leading slash, like the targets in relations.
	for _, f := range z.File {
		r.Files[strings.TrimPrefix(f.Name, "/")] = f
	}
	return r, nil
}

// OpenFlat is Open for documents that may be a single XML file. Such a file becomes the only one of the result, under a
// name.
func OpenFlat(data []byte, name string, expired func() bool) (Reader, error) {
	head := bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), 1000)], []byte("\xef\xbb\xbf")), " \r\n\t")
	if !bytes.HasPrefix(head, []byte("<")) {
		return Open(data, expired)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = f.Write(data)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return Reader{}, fmt.Errorf("pack document: %w", err)
	}
	return Open(b.Bytes(), expired)
}

// A Visitor handles the elements and the text of an XML file. An error of a method ends the reading.
type Visitor interface {
	Start(name xml.Name, attr Attributes) error
	End(name xml.Name) error
	Text(text string) error
}

// Attributes are the attributes of an element.
type Attributes []xml.Attr

// Get returns the value of an attribute, "" if there is none. A name may have the prefix r:, as
// in r:id, for the namespace of relationships.
func (a Attributes) Get(name string) string {
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

// Parse parses the XML file at name, and calls v for each of its elements. It reports whether
// the archive has such a file.
func (r Reader) Parse(name string, v Visitor) (found bool, err error) {
	f := r.Files[name]
	if f == nil {
		return false, nil
	}
	in, err := f.Open()
	if err != nil {
		return true, ErrDamaged
	}
	defer in.Close()
	bounded := &boundedReader{in: in, left: r.Left}
	dec := xml.NewDecoder(bounded)
	// Only UTF-8 is accepted, so another declared encoding is an error. The decoder rejects
	// entities that XML does not predefine, so no entity can expand to a huge text.
	dec.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, ErrDamaged }
	for depth, n := 0, 0; ; n++ {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		// The decoder only gets a file that ends early. Its own error would be misleading.
		case bounded.exceeded:
			return true, ErrUnpacked
		case err != nil:
			return true, ErrDamaged
		// Reading the clock at every token would take longer than the token.
		case n%1000 == 0 && r.Expired():
			return true, ErrEnough
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > MaxNesting {
				return true, ErrNesting
			}
			err = v.Start(t.Name, t.Attr)
		case xml.EndElement:
			depth--
			err = v.End(t.Name)
		case xml.CharData:
			err = v.Text(string(t))
		}
		if err != nil {
			return true, err
		}
	}
}

// A boundedReader counts the unpacked bytes of an archive, and stops at the limit. The sizes in
// an archive are not reliable.
type boundedReader struct {
	in       io.Reader
	left     *int64
	exceeded bool
}

// Read returns further bytes, until the archive has unpacked MaxUnpacked bytes.
func (b *boundedReader) Read(p []byte) (int, error) {
	if *b.left <= 0 {
		b.exceeded = true
		return 0, io.EOF
	}
	n, err := b.in.Read(p[:min(int64(len(p)), *b.left)])
	*b.left -= int64(n)
	return n, err
}

// A Relation links one file of the archive to another file or to an address.
type Relation struct {
	Kind     string // last part of its type
	Target   string
	External bool // Target is an address
}

// Relations returns the relations of a file by their ids, those of the whole archive for "". OPC (ECMA-376
// part 2) stores them in the folder _rels beside the file.
func (r Reader) Relations(name string) (map[string]Relation, error) {
	dir, base := path.Split(name)
	v := &relationReader{dir: dir, found: map[string]Relation{}}
	_, err := r.Parse(dir+"_rels/"+base+".rels", v)
	return v.found, err
}

type relationReader struct {
	IgnoreText
	dir   string
	found map[string]Relation
}

// Start reads a relation.
func (v *relationReader) Start(name xml.Name, attr Attributes) error {
	if name.Local != "Relationship" {
		return nil
	}
	target, external := attr.Get("Target"), attr.Get("TargetMode") == "External"
	if !external {
		// A target is relative to the folder of the file with the relation.
		if !strings.HasPrefix(target, "/") {
			target = v.dir + target
		}
		target = strings.TrimPrefix(path.Clean("/"+target), "/")
	}
	v.found[attr.Get("Id")] = Relation{path.Base(attr.Get("Type")), target, external}
	return nil
}

// IgnoreText is embedded in visitors that ignore ends of elements and text.
type IgnoreText struct{}

// End ignores the end of an element.
func (IgnoreText) End(xml.Name) error { return nil }

// Text ignores a text.
func (IgnoreText) Text(string) error { return nil }

// Bytes returns the file at name, or its first most bytes. It returns nil if there is no such file.
func (r Reader) Bytes(name string, most int64) ([]byte, error) {
	f := r.Files[name]
	if f == nil {
		return nil, nil
	}
	in, err := f.Open()
	if err != nil {
		return nil, ErrDamaged
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(&boundedReader{in: in, left: r.Left}, most))
	if err != nil {
		return nil, ErrDamaged
	}
	return content, nil
}
