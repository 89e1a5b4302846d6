package outlook

import "encoding/binary"

// Attributes of TNEF (MS-OXTNEF, section 2.1.3.3), without their types.
const (
	attFrom         = 0x8000
	attSubject      = 0x8004
	attDateSent     = 0x8005
	attMessageClass = 0x8008
	attMessageID    = 0x8009
	attBody         = 0x800c
	attAttachData   = 0x800f
	attAttachTitle  = 0x8010
	attRenddata     = 0x9002
	attProperties   = 0x9003
	attRecipients   = 0x9004
	attAttachment   = 0x9005
	attCodepage     = 0x9007
)

const tnefSignature = 0x223e9f78

// IsTNEF reports whether a document begins as TNEF.
func IsTNEF(document []byte) bool {
	return len(document) >= 6 && binary.LittleEndian.Uint32(document) == tnefSignature
}

// TNEF returns the mail in a winmail.dat as MIME. A document that ends early gives what was read so far.
func TNEF(document []byte, expired func() bool) ([]byte, error) {
	r := &reader{expired: expired, room: maxBytes}
	m, err := r.tnef(document, 0)
	if err != nil {
		return nil, err
	}
	return r.mime(m, false)
}

// tnef reads a TNEF stream, which is depth mails deep.
func (r *reader) tnef(document []byte, depth int) (*mail, error) {
	if depth > maxNested {
		return nil, errNested
	}
	if !IsTNEF(document) {
		return nil, errDamaged
	}
	m := &mail{properties: properties{}}
	for b := document[6:]; len(b) >= 11; {
		level, id := b[0], binary.LittleEndian.Uint16(b[1:])
		length := binary.LittleEndian.Uint32(b[5:])
		data := b[9:]
		if uint64(length) > uint64(len(data)) {
			length = uint32(len(data)) // #nosec G115 -- the document ends early, and its last file, too
		}
		data = data[:length]
		if err := r.take(len(data)); err != nil {
			return nil, err
		}
		var err error
		if level == 2 {
			err = r.attachmentAttribute(m, id, data, depth)
		} else {
			err = r.mailAttribute(m, id, data)
		}
		if err != nil {
			return nil, err
		}
		if b = b[9+length:]; len(b) >= 2 {
			b = b[2:] // the checksum
		}
	}
	return m, nil
}

// mailAttribute reads an attribute of the mail itself.
func (r *reader) mailAttribute(m *mail, id uint16, data []byte) error {
	legacy := func(property uint16) {
		if _, better := m.properties[property]; !better {
			m.properties[property] = value{typeString8, data}
		}
	}
	switch id {
	case attCodepage:
		if len(data) >= 4 {
			m.codepage = int(binary.LittleEndian.Uint32(data))
		}
	case attSubject:
		legacy(pidSubject)
	case attBody:
		legacy(pidBody)
	case attMessageClass:
		legacy(pidMessageClass)
	case attProperties:
		rest := data
		return r.propertyList(m.properties, &rest)
	case attRecipients:
		return r.recipientTable(m, data)
	}
	return nil
}

// recipientTable reads the recipients: their number, and a list of properties for each.
func (r *reader) recipientTable(m *mail, data []byte) error {
	if len(data) < 4 {
		return nil
	}
	count := binary.LittleEndian.Uint32(data)
	data = data[4:]
	for range min(count, maxRecipients) {
		p := properties{}
		if err := r.propertyList(p, &data); err != nil {
			return err
		}
		if len(p) == 0 {
			break
		}
		m.recipients = append(m.recipients, p)
	}
	return nil
}

// attachmentAttribute reads an attribute of the last attachment.
func (r *reader) attachmentAttribute(m *mail, id uint16, data []byte, depth int) error {
	if id == attRenddata || len(m.attachments) == 0 {
		if len(m.attachments) >= maxAttachments {
			return errTooBig
		}
		m.attachments = append(m.attachments, attachment{properties: properties{}})
	}
	a := &m.attachments[len(m.attachments)-1]
	switch id {
	case attAttachData:
		a.data = data
	case attAttachTitle:
		a.properties[pidAttachFile] = value{typeString8, data}
	case attAttachment:
		title := a.properties[pidAttachFile]
		rest := data
		if err := r.propertyList(a.properties, &rest); err != nil {
			return err
		}
		if title.raw != nil && a.properties[pidAttachFile].raw == nil {
			a.properties[pidAttachFile] = title
		}
		return r.attachedObject(a, depth)
	}
	return nil
}

// attachedObject reads the object of an attachment: an interface's identifier, and a mail as TNEF.
func (r *reader) attachedObject(a *attachment, depth int) error {
	v := a.properties[pidAttachData]
	const identifier = 16 // bytes
	if v.kind == typeObject && len(v.raw) > identifier && IsTNEF(v.raw[identifier:]) {
		inner, err := r.tnef(v.raw[identifier:], depth+1)
		if err == nil {
			a.mail = inner
		} else if err != errNested && err != errDamaged {
			return err
		}
	}
	if a.mail == nil && len(a.data) == 0 && len(v.raw) > 0 {
		if a.data = v.raw; v.kind == typeObject && len(v.raw) > identifier {
			a.data = v.raw[identifier:]
		}
	}
	return nil
}

// propertyList reads a list of properties from the beginning of data. It leaves out what is behind a damaged one.
func (r *reader) propertyList(into properties, data *[]byte) error {
	c := cursor{b: *data}
	count := c.uint32()
	for n := uint32(0); n < count && !c.bad; n++ {
		if n >= maxProperties {
			return errTooBig
		}
		kind, id := c.uint16(), c.uint16()
		if id >= 0x8000 {
			c.skipName()
		}
		raw := c.values(kind)
		if c.bad {
			break
		}
		if kind&typeMany == 0 && id < 0x8000 {
			into[id] = value{kind, raw}
		}
	}
	*data = c.b
	return nil
}

// A cursor reads numbers from the beginning of b. After an error, bad is set.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.b) || c.bad {
		c.bad = true
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) uint16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// padded reads a length and as many bytes, and skips the bytes up to a multiple of four.
func (c *cursor) padded() []byte {
	n := c.uint32()
	if uint64(n) > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	b := c.bytes(int(n))
	c.bytes(min(int(-n&3), len(c.b)))
	return b
}

// skipName skips the name of a named property: a GUID, and a number or a text.
func (c *cursor) skipName() {
	c.bytes(16)
	if c.uint32() == 0 {
		c.uint32()
		return
	}
	c.padded()
}

// values reads the values of a property, and returns the first one.
func (c *cursor) values(kind uint16) (first []byte) {
	base, count := kind&^typeMany, uint32(1)
	size := map[uint16]int{typeInt16: 4, typeInt32: 4, 0x0004: 4, 0x000a: 4, typeBool: 4,
		0x0005: 8, 0x0006: 8, 0x0007: 8,
		typeInt64: 8, typeTime: 8, 0x0048: 16, 0x0001: 4}[base]
	if size == 0 && base != typeString8 && base != typeUnicode && base != typeBinary && base != typeObject {
		c.bad = true // its length is unknown
		return nil
	}
	if size == 0 || kind != base {
		count = c.uint32()
	}
	for n := uint32(0); n < count && !c.bad; n++ {
		var b []byte
		if size > 0 {
			b = c.bytes(size)
		} else {
			b = c.padded()
		}
		if n == 0 {
			first = b
		}
		if len(c.b) == 0 && n+1 < count {
			c.bad = true
		}
	}
	return first
}
