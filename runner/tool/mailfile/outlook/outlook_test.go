package outlook

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/matryer/is"
)

func never() bool { return false }

// le returns numbers in little endian.
func le(numbers ...any) []byte {
	var b bytes.Buffer
	for _, n := range numbers {
		_ = binary.Write(&b, binary.LittleEndian, n) // a buffer accepts everything
	}
	return b.Bytes()
}

func wide(s string) []byte { return le(append(utf16.Encode([]rune(s)), 0)) }

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

// prop returns a property of TNEF with one value of variable length.
func prop(id, kind uint16, data []byte) []byte {
	return append(le(kind, id, uint32(1), uint32(len(data))), pad(bytes.Clone(data))...)
}

func props(list ...[]byte) []byte { return append(le(uint32(len(list))), bytes.Join(list, nil)...) }

// att returns an attribute of TNEF.
func att(level byte, id uint16, data []byte) []byte {
	sum := uint16(0)
	for _, c := range data {
		sum += uint16(c)
	}
	return append(append(le(level, id, uint16(6), uint32(len(data))), data...), le(sum)...)
}

func tnef(attributes ...[]byte) []byte {
	return append(le(uint32(tnefSignature), uint16(1)), bytes.Join(attributes, nil)...)
}

// packedRTF returns RTF in the form of the property: compressed without references to the window.
func packedRTF(rtf string) []byte {
	var b bytes.Buffer
	for i := 0; i < len(rtf); i += 8 {
		b.WriteByte(0)
		b.WriteString(rtf[i:min(len(rtf), i+8)])
	}
	return append(le(uint32(b.Len()+12), uint32(len(rtf)), uint32(compressed), uint32(0)), b.Bytes()...)
}

// sample is a winmail.dat with a text, a page as RTF, two files and a mail with a file.
func sample() []byte {
	inner := tnef(att(1, attProperties, props(prop(pidSubject, typeUnicode, wide("Grüße")), prop(pidBody, typeUnicode, wide("Inner text")),
		prop(pidSenderName, typeUnicode, wide("Bob")), prop(pidSenderSMTP, typeUnicode, wide("bob@example.net")))),
		att(2, attRenddata, make([]byte, 14)), att(2, attAttachTitle, []byte("inner.txt\x00")), att(2, attAttachData, []byte("in the inner file")))
	object := append(make([]byte, 16), inner...)
	return tnef(att(1, attCodepage, le(uint32(1251), uint32(0))), att(1, attSubject, []byte("\xd6\xe8\xf4\xf0\xfb\x00")),
		att(1, attBody, []byte("\xcf\xf0\xe8\xe2\xe5\xf2\x00")),
		att(1, attProperties, props(le(uint16(typeInt32|typeMany), uint16(0x6000), uint32(2), uint32(1), uint32(2)),
			append(le(uint16(typeUnicode), uint16(0x8001), make([]byte, 16), uint32(1), uint32(6)), append(pad(wide("ab")), le(uint32(1), uint32(4), uint32(0))...)...),
			prop(pidRtf, typeBinary, packedRTF(`{\rtf1\ansi\ansicpg1251\fromhtml1 {\*\htmltag64 <p>}\htmlrtf {\htmlrtf0 \'cf\'f0\'e8{\*\htmltag84 &nbsp;}\htmlrtf x\htmlrtf0 \u1074?\'e5\'f2{\*\htmltag72 </p>}}`)))),
		att(2, attRenddata, make([]byte, 14)), att(2, attAttachTitle, []byte("A~1.TXT\x00")), att(2, attAttachData, []byte("one\r\n--x")),
		att(2, attAttachment, props(prop(pidAttachLongFile, typeUnicode, wide("Länge 1.txt")), prop(pidAttachMediaType, typeUnicode, wide("text/plain")))),
		att(2, attRenddata, make([]byte, 14)), att(2, attAttachTitle, []byte("b.bin\x00")), att(2, attAttachData, []byte{0, 1, 2, 13, 10}),
		att(2, attRenddata, make([]byte, 14)), att(2, attAttachment, props(prop(pidAttachData, typeObject, object))))
}

// TestTNEF converts a winmail.dat whose properties have all forms.
func TestTNEF(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	part, err := TNEF(sample(), never)
	is.NoErr(err)
	for _, want := range []string{"\r\n\r\nПривет\r\n", "<p>При&nbsp;вет</p>", "filename*=utf-8''L%C3%A4nge%201.txt", "\r\n\r\none\r\n--x\r\n",
		"filename*=utf-8''b.bin", "\x00\x01\x02\r\n\r\n", "Content-Type: message/rfc822", "Subject: =?utf-8?b?R3LDvMOfZQ==?=",
		`From: "Bob" <bob@example.net>`, "Inner text", "in the inner file", "filename*=utf-8''Gr%C3%BC%C3%9Fe.eml"} {
		if !strings.Contains(string(part), want) {
			t.Errorf("%q is not in the part", want)
		}
	}
	for n := range sample() { // a document that ends early gives the beginning, or an error
		part, err := TNEF(sample()[:n], never)
		is.True(err != nil || len(part) > 0)
	}
	_, err = TNEF(sample(), func() bool { return true })
	is.Equal(err, errExpired)
}

// TestMailsInsideMails checks the limit of depth.
func TestMailsInsideMails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	document := tnef(att(1, attBody, []byte("deepest\x00")))
	for range maxNested + 3 {
		document = tnef(att(1, attBody, []byte("x\x00")), att(2, attRenddata, nil),
			att(2, attAttachment, props(prop(pidAttachData, typeObject, append(make([]byte, 16), document...)))))
	}
	part, err := TNEF(document, never)
	is.NoErr(err)
	is.Equal(strings.Count(string(part), "message/rfc822"), maxNested)
	is.True(strings.Contains(string(part), "application/octet-stream")) // the next one is a file
}

// TestRTF reads text and pages in RTF.
func TestRTF(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rtf, want string }{
		"text":              {`{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\colortbl;\red0;}\pard One\par Two\tab x\line\{y\}\~z}`, "One\r\nTwo\tx\r\n{y}\u00a0z"},
		"bytes":             {`{\rtf1\ansi\ansicpg1252 Gr\'fc\'dfe \'80}`, "Grüße €"},
		"Unicode":           {`{\rtf1\uc1 \u8364?\u-3913?x{\uc2 \u1078??}}`, "€\uf0b7xж"},
		"pairs":             {`{\rtf1 \u-10179?\u-8704?}`, "😀"},
		"another font":      {`{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f1 \'cf\f0  \'e9}`, "П é"},
		"Japanese":          {`{\rtf1{\fonttbl{\f0\fcharset128 A;}}\f0\'93\'fa\'96\'7b}`, "日本"},
		"destinations":      {`{\rtf1{\*\generator x;}{\info{\title t}}{\pict 0102}a{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link}}}`, "alink"},
		"signs":             {`{\rtf1\ldblquote a\rdblquote\emdash\bullet}`, "“a”—•"},
		"bytes of a binary": {`{\rtf1 a\bin3 }}}b}`, "ab"},
		"a page":            {`{\rtf1\fromhtml1{\*\htmltag19 <b>}\htmlrtf \b \htmlrtf0 a\par b{\*\htmltag27 </b>}}`, "<b>a\r\nb</b>"},
		"broken":            {`{\rtf1 a\`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := &reader{expired: never, room: maxBytes}
			text, _, err := r.readRTF([]byte(tt.rtf))
			is.NoErr(err)
			is.Equal(text, tt.want)
		})
	}
}

// TestDecompress reads the example of the specification (MS-OXRTFCP, section 4.1).
func TestDecompress(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	in := "\x2d\x00\x00\x00\x2b\x00\x00\x00\x4c\x5a\x46\x75\xf1\xc5\xc7\xa7\x03\x00\x0a\x00\x72\x63\x70\x67\x31\x32\x35\x42\x32" +
		"\x0a\xf3\x20\x68\x65\x6c\x09\x00\x20\x62\x77\x05\xb0\x6c\x64\x7d\x0a\x80\x0f\xa0"
	r := &reader{expired: never, room: maxBytes}
	out, err := r.decompress([]byte(in))
	is.NoErr(err)
	is.Equal(string(out), "{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n")
}

// FuzzTNEF converts random documents.
func FuzzTNEF(f *testing.F) {
	f.Add(sample())
	f.Add(tnef(att(1, attRecipients, append(le(uint32(1)), props(prop(pidDisplayName, typeUnicode, wide("a")))...))))
	f.Fuzz(func(t *testing.T, document []byte) {
		part, err := TNEF(document, never)
		if err == nil && len(part) > 100*len(document)+10_000 {
			t.Errorf("%d bytes became %d", len(document), len(part))
		}
	})
}

// FuzzMsg converts random documents.
func FuzzMsg(f *testing.F) {
	f.Add(sampleMsg())
	f.Fuzz(func(t *testing.T, document []byte) {
		if part, err := Msg(document, never); err == nil && len(part) > 100*len(document)+10_000 {
			t.Errorf("%d bytes became %d", len(document), len(part))
		}
	})
}
