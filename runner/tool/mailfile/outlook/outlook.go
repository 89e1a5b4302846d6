// Package outlook converts the two formats in which Outlook packs a mail into MIME: TNEF, the winmail.dat that
// Exchange attaches, and msg files. Both hold the same properties (MAPI), so one writer makes the MIME of both.
//
// It is pure: the same bytes give the same result. Anybody may have written a document, so the package runs in a
// confined process, and everything that can grow has a limit.
package outlook

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"journeyman/runner/tool/mailfile/mailtext"
)

// Limits of a document.
const (
	maxNested      = 5        // mails inside mails
	maxAttachments = 500      // of a mail
	maxProperties  = 20_000   // of a mail or attachment
	maxRecipients  = 2000     // of a mail
	maxBytes       = 64 << 20 // of all attachments and texts together
)

var (
	errDamaged = errors.New("it is damaged")
	errTooBig  = errors.New("it is too large")
	errNested  = fmt.Errorf("it has more than %d mails inside each other", maxNested)
	errExpired = errors.New("reading it takes too long")
)

// Identifiers of properties (MS-OXPROPS).
const (
	pidMessageClass     = 0x001a
	pidSubject          = 0x0037
	pidSubmitTime       = 0x0039
	pidSentName         = 0x0042
	pidSentAddress      = 0x0065
	pidHeaders          = 0x007d
	pidRecipientType    = 0x0c15
	pidSenderName       = 0x0c1a
	pidSenderAddress    = 0x0c1f
	pidDisplayCc        = 0x0e03
	pidDisplayTo        = 0x0e04
	pidDeliveryTime     = 0x0e06
	pidBody             = 0x1000
	pidRtf              = 0x1009
	pidHTML             = 0x1013
	pidMessageID        = 0x1035
	pidReferences       = 0x1039
	pidInReplyTo        = 0x1042
	pidDisplayName      = 0x3001
	pidAddress          = 0x3003
	pidAttachData       = 0x3701
	pidAttachFile       = 0x3704
	pidAttachLongFile   = 0x3707
	pidAttachMediaType  = 0x370e
	pidAttachContentID  = 0x3712
	pidSMTPAddress      = 0x39fe
	pidInternetCodepage = 0x3fde
	pidMessageCodepage  = 0x3ffd
	pidSenderSMTP       = 0x5d01
	pidSentSMTP         = 0x5d02
)

// Types of properties (MS-OXCDATA, section 2.11.1).
const (
	typeInt16   = 0x0002
	typeInt32   = 0x0003
	typeBool    = 0x000b
	typeObject  = 0x000d
	typeInt64   = 0x0014
	typeString8 = 0x001e
	typeUnicode = 0x001f
	typeTime    = 0x0040
	typeBinary  = 0x0102
	typeMany    = 0x1000 // a flag: several values
)

// A value is the value of a property: its type and its bytes.
type value struct {
	kind uint16
	raw  []byte
}

// properties holds the properties of a mail, an attachment or a recipient, by identifier.
type properties map[uint16]value

// A mail is one mail with its properties.
type mail struct {
	properties
	codepage    int // of texts that are no Unicode, 0 if unknown
	recipients  []properties
	attachments []attachment
}

// An attachment is a file or a mail that is attached.
type attachment struct {
	properties
	data []byte // of a file
	mail *mail  // nil for a file
}

// number returns a property with a number, 0 if there is none.
func (p properties) number(id uint16) int {
	v := p[id]
	switch {
	case v.kind == typeInt16 && len(v.raw) >= 2:
		return int(binary.LittleEndian.Uint16(v.raw))
	case v.kind == typeInt32 && len(v.raw) >= 4:
		return int(binary.LittleEndian.Uint32(v.raw))
	}
	return 0
}

// time returns a property with a time.
func (p properties) time(id uint16) (time.Time, bool) {
	v := p[id]
	if v.kind != typeTime || len(v.raw) < 8 {
		return time.Time{}, false
	}
	const unixEpoch = 116444736000000000 // in units of 100 ns since 1601
	ticks := binary.LittleEndian.Uint64(v.raw)
	if ticks < unixEpoch || ticks > 1<<62 {
		return time.Time{}, false
	}
	at := time.Unix(0, 0).UTC().Add(time.Duration((ticks-unixEpoch)/10_000_000) * time.Second)
	return at, at.Year() < 9999
}

// text returns a property with a text. Texts that are no Unicode are decoded with a code page.
func (p properties) text(id uint16, codepage int) string {
	v := p[id]
	switch v.kind {
	case typeUnicode:
		return utf16Text(v.raw)
	case typeString8, typeBinary:
		return strings.TrimRight(mailtext.Decode(v.raw, labelOf(codepage)), "\x00")
	}
	return ""
}

// utf16Text decodes UTF-16 in little endian.
func utf16Text(raw []byte) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return strings.TrimRight(string(utf16.Decode(units)), "\x00")
}

// labelOf returns the label of a code page of Windows, "" for an unknown one.
func labelOf(codepage int) string {
	switch codepage {
	case 0, 20127:
		return ""
	case 65001:
		return "utf-8"
	case 932:
		return "shift_jis"
	case 936:
		return "gbk"
	case 949, 51949:
		return "euc-kr"
	case 950:
		return "big5"
	case 54936:
		return "gb18030"
	case 20866:
		return "koi8-r"
	case 21866:
		return "koi8-u"
	case 50220, 50221, 50222:
		return "iso-2022-jp"
	case 51932:
		return "euc-jp"
	case 50225:
		return "iso-2022-kr"
	case 10000:
		return "macintosh"
	case 1200:
		return "utf-16le"
	}
	if codepage > 28590 && codepage < 28606 {
		return fmt.Sprintf("iso-8859-%d", codepage-28590)
	}
	if codepage >= 1250 && codepage <= 1258 || codepage == 874 {
		return fmt.Sprintf("windows-%d", codepage)
	}
	return fmt.Sprintf("cp%d", codepage)
}

// A reader holds the limits of reading one document, all mails inside it included.
type reader struct {
	expired func() bool
	room    int // bytes that are left of maxBytes
}

// take takes n bytes from the limit.
func (r *reader) take(n int) error {
	if r.room -= n; r.room < 0 {
		return errTooBig
	}
	if r.expired() {
		return errExpired
	}
	return nil
}
