package outlook

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/richardlehane/mscfb"
)

var msgSignature = []byte{0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1}

const propertyStream = "__properties_version1.0"

// IsMsg reports whether a document is a msg file. Old Word and Excel files are compound files, too, but have no
// stream of properties.
func IsMsg(document []byte) bool {
	name := make([]byte, 0, 2*len(propertyStream))
	for _, c := range []byte(propertyStream) {
		name = append(name, c, 0)
	}
	return bytes.HasPrefix(document, msgSignature) && bytes.Contains(document, name)
}

// Msg returns the mail in a msg file as MIME.
func Msg(document []byte, expired func() bool) (part []byte, err error) {
	r := &reader{expired: expired, room: maxBytes}
	defer func() {
		// The library may panic on a damaged file. Such a file only cannot be read.
		if recover() != nil {
			part, err = nil, errDamaged
		}
	}()
	root, err := r.storages(document)
	if err != nil {
		return nil, err
	}
	m, err := r.msg(root, topHeader, 0)
	if err != nil {
		return nil, err
	}
	return r.mime(m, true)
}

// A storage is a folder of a compound file.
type storage struct {
	streams map[string][]byte
	folders map[string]*storage
	names   []string // of folders, in the order of the file
}

func newStorage() *storage { return &storage{map[string][]byte{}, map[string]*storage{}, nil} }

// folder returns the storage at a path, and makes it if necessary.
func (s *storage) folder(path []string) *storage {
	for _, name := range path {
		next := s.folders[name]
		if next == nil {
			next = newStorage()
			s.folders[name] = next
			s.names = append(s.names, name)
		}
		s = next
	}
	return s
}

const maxEntries = 50_000 // streams and folders of a file

// storages reads all streams of a compound file.
func (r *reader) storages(document []byte) (*storage, error) {
	file, err := mscfb.New(bytes.NewReader(document))
	if err != nil {
		return nil, errDamaged
	}
	root := newStorage()
	for n, entry := range file.File {
		if n > maxEntries || len(entry.Path) > 4*maxNested {
			return nil, errTooBig
		}
		if entry.Size > int64(len(document)) { // a file cannot hold it
			continue
		}
		if entry.FileInfo().IsDir() {
			root.folder(append(entry.Path[:len(entry.Path):len(entry.Path)], entry.Name))
			continue
		}
		if err := r.take(int(entry.Size)); err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(entry, entry.Size))
		if err == nil || len(data) > 0 {
			root.folder(entry.Path).streams[entry.Name] = data
		}
	}
	return root, nil
}

// Bytes in front of the properties, by the kind of their owner (MS-OXMSG, section 2.4.1).
const (
	topHeader   = 32
	innerHeader = 24
	partHeader  = 8
)

// msg reads the mail of a storage, which is depth mails deep.
func (r *reader) msg(s *storage, header, depth int) (*mail, error) {
	if depth > maxNested {
		return nil, errNested
	}
	if s.streams[propertyStream] == nil {
		return nil, errDamaged
	}
	m := &mail{properties: s.properties(header)}
	m.codepage = m.number(pidMessageCodepage)
	for _, name := range s.names {
		inner := s.folders[name]
		switch {
		case strings.HasPrefix(name, "__recip_version1.0_") && len(m.recipients) < maxRecipients:
			m.recipients = append(m.recipients, inner.properties(partHeader))
		case strings.HasPrefix(name, "__attach_version1.0_"):
			if len(m.attachments) >= maxAttachments {
				return nil, errTooBig
			}
			a, err := r.msgAttachment(inner, depth)
			if err != nil {
				return nil, err
			}
			m.attachments = append(m.attachments, a)
		}
	}
	return m, nil
}

func (r *reader) msgAttachment(s *storage, depth int) (a attachment, err error) {
	a.properties = s.properties(partHeader)
	a.data = a.properties[pidAttachData].raw
	object := s.folders["__substg1.0_3701000D"]
	if object == nil {
		return a, nil
	}
	inner, err := r.msg(object, innerHeader, depth+1)
	switch err {
	case nil:
		a.mail, a.data = inner, nil
	case errDamaged, errNested: // an object of another program, such as a drawing: its largest stream is the best
		for _, data := range object.streams {
			if len(data) > len(a.data) || len(data) == len(a.data) && bytes.Compare(data, a.data) < 0 {
				a.data = data
			}
		}
		return a, nil
	}
	return a, err
}

// properties returns the properties of a storage. Numbers stand in its stream of properties, texts and bytes in
// streams of their own.
func (s *storage) properties(header int) properties {
	p := properties{}
	fixed := s.streams[propertyStream]
	for b := fixed[min(header, len(fixed)):]; len(b) >= 16; b = b[16:] {
		kind, id := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
		switch kind {
		case typeInt16, typeInt32, typeInt64, typeBool, typeTime:
			p[id] = value{kind, b[8:16]}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.streams)) { // Unicode is behind other texts, and replaces them
		data := s.streams[name]
		tag, found := strings.CutPrefix(name, "__substg1.0_")
		n, err := strconv.ParseUint(tag, 16, 32)
		if !found || err != nil || len(tag) != 8 {
			continue
		}
		kind, id := uint16(n&0xffff), uint16(n>>16) // #nosec G115 -- both halves of 32 bits
		p[id] = value{kind, data}
	}
	return p
}
