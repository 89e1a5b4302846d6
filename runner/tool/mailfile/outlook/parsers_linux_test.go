//go:build !race

// The race detector makes every parser slower by another factor.

package outlook

import (
	"fmt"
	"testing"

	"journeyman/store/growthtest"
)

// tnefOf returns shapes of TNEF with pieces inside.
func tnefOf(piece func(i int) []byte) growthtest.Shape {
	return func(n int) string {
		document := tnef()
		for i := 0; len(document) < n; i++ {
			document = append(document, piece(i)...)
		}
		return string(document)
	}
}

// parsers returns the converters. They run in a confined process.
func parsers() []growthtest.Parser {
	times, nested := growthtest.Times, growthtest.Nested
	inRTF := func(shape growthtest.Shape) growthtest.Shape {
		return func(n int) string {
			return string(tnef(att(1, attProperties, props(prop(pidRtf, typeBinary, packedRTF(shape(n)))))))
		}
	}
	return []growthtest.Parser{
		{
			Name: "winmail.dat", Fuzz: []string{"FuzzTNEF"},
			Read: func(in []byte) { _, _ = TNEF(in, never) },
			Shapes: map[string]growthtest.Shape{
				"attributes": tnefOf(func(int) []byte { return att(1, attSubject, []byte("x\x00")) }),
				"empty ones": tnefOf(func(int) []byte { return att(1, 0, nil) }),
				"files":      tnefOf(func(int) []byte { return att(2, attRenddata, nil) }),
				"properties": tnefOf(func(int) []byte { return att(1, attProperties, props(prop(pidSubject, typeUnicode, wide("x")))) }),
				"recipients": tnefOf(func(int) []byte {
					return att(1, attRecipients, append(le(uint32(1)), props(prop(pidDisplayName, typeUnicode, wide("a")))...))
				}),
				"a long text": func(n int) string {
					return string(tnef(att(1, attBody, []byte(times("", "a", "")(n)))))
				},
				"mails in mails": func(n int) string {
					document := tnef(att(1, attBody, []byte(times("", "a", "")(n))))
					for range maxNested {
						document = tnef(att(2, attRenddata, nil), att(2, attAttachment, props(prop(pidAttachData, typeObject, append(make([]byte, 16), document...)))))
					}
					return string(document)
				},
				"RTF, groups":  inRTF(nested("{\\rtf1", "{", "x", "}")),
				"RTF, words":   inRTF(times("{\\rtf1", "\\par ", "}")),
				"RTF, bytes":   inRTF(times("{\\rtf1", "\\'e4", "}")),
				"RTF, fonts":   inRTF(times("{\\rtf1{\\fonttbl", "{\\f1\\fcharset204 x;}", "}}")),
				"RTF, a page":  inRTF(times("{\\rtf1\\fromhtml1", "{\\*\\htmltag <b>}", "}")),
				"RTF, Unicode": inRTF(times("{\\rtf1", "\\u8364?", "}"))}},
		{
			Name: "msg file", Fuzz: []string{"FuzzMsg"}, Most: 4 << 20,
			Read: func(in []byte) { _, _ = Msg(in, never) },
			Shapes: map[string]growthtest.Shape{
				"streams": func(n int) string {
					list := []node{fixed(topHeader)}
					for i := range n / 4300 {
						list = append(list, stream(uint16(i), typeUnicode, wide("x"))) // #nosec G115
					}
					return string(compoundFile(list...))
				},
				"files": func(n int) string {
					list := []node{fixed(topHeader)}
					for i := range n / 8800 {
						list = append(list, node{name: fmt.Sprintf("__attach_version1.0_#%08X", i), inside: []node{fixed(partHeader), stream(pidAttachData, typeBinary, []byte("x"))}})
					}
					return string(compoundFile(list...))
				},
				"a long file": func(n int) string {
					return string(compoundFile(fixed(topHeader), stream(pidBody, typeString8, []byte(times("", "a", "")(n)))))
				}}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
