package outlook

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A node is a stream or a folder of a compound file.
type node struct {
	name   string
	data   []byte // nil for a folder
	inside []node
}

const sector = 512

// compoundFile returns a compound file. Each stream is padded to the length from which on it has sectors of its own.
func compoundFile(inside ...node) []byte {
	var directory, streams [][]byte
	var fat []uint32
	store := func(data []byte) (first uint32) {
		first = uint32(len(fat)) // #nosec G115 -- a test file is short
		for at := 0; at < len(data); at += sector {
			streams = append(streams, append(bytes.Clone(data[at:min(len(data), at+sector)]), make([]byte, max(0, at+sector-len(data)))...))
			fat = append(fat, uint32(len(fat)+1)) // #nosec G115
		}
		fat[len(fat)-1] = 0xfffffffe
		return first
	}
	const none = uint32(0xffffffff)
	var add func(n node, right uint32) uint32
	add = func(n node, right uint32) uint32 {
		at := len(directory)
		directory = append(directory, nil)
		child, first, size, kind := none, uint32(0), uint32(0), byte(1)
		if at == 0 {
			kind, first = 5, 0xfffffffe
		}
		if n.data != nil {
			data := append(bytes.Clone(n.data), make([]byte, max(0, 4096-len(n.data)))...)
			kind, first, size = 2, store(data), uint32(len(data)) // #nosec G115
		}
		for _, inner := range slices.Backward(n.inside) {
			child = add(inner, child)
		}
		name := wide(n.name)
		directory[at] = slices.Concat(name, make([]byte, 64-len(name)), le(uint16(len(name)), kind, byte(1), none, right, child), // #nosec G115
			make([]byte, 36), le(first, size, uint32(0)))
		return uint32(at) // #nosec G115
	}
	add(node{name: "Root Entry", inside: inside}, none)
	start := store(bytes.Join(directory, nil))
	sectors := (len(fat)+127)/128 + 1
	header := slices.Concat(msgSignature, make([]byte, 16), le(uint16(0x3e), uint16(3), uint16(0xfffe), uint16(9), uint16(6)), make([]byte, 10),
		le(uint32(sectors), start, uint32(0), uint32(4096), uint32(0xfffffffe), uint32(0), uint32(0xfffffffe), uint32(0))) // #nosec G115
	used := len(fat)
	for i := range 109 {
		if i < sectors {
			header = append(header, le(uint32(used+i))...) // #nosec G115
			fat = append(fat, 0xfffffffd)
		} else {
			header = append(header, le(none)...)
		}
	}
	for len(fat) < sectors*128 {
		fat = append(fat, none)
	}
	return slices.Concat(header, bytes.Join(streams, nil), le(fat))
}

func stream(id, kind uint16, data []byte) node {
	return node{name: fmt.Sprintf("__substg1.0_%04X%04X", id, kind), data: data}
}

// fixed returns the stream of properties with numbers.
func fixed(header int, numbers ...[]byte) node {
	return node{name: propertyStream, data: append(make([]byte, header), bytes.Join(numbers, nil)...)}
}

func number(id, kind uint16, n uint64) []byte { return le(kind, id, uint32(0), n) }

// sampleMsg is a msg file with two recipients, a file, and a mail with a file.
func sampleMsg() []byte {
	recipient := func(n int, kind uint64, name, address string) node {
		return node{name: fmt.Sprintf("__recip_version1.0_#%08X", n), inside: []node{fixed(partHeader, number(pidRecipientType, typeInt32, kind)),
			stream(pidDisplayName, typeUnicode, wide(name)), stream(pidSMTPAddress, typeUnicode, wide(address))}}
	}
	inner := node{name: "__substg1.0_3701000D", inside: []node{fixed(innerHeader), stream(pidSubject, typeUnicode, wide("Inner")),
		stream(pidBody, typeUnicode, wide("Inner text"))}}
	return compoundFile(fixed(topHeader, number(pidSubmitTime, typeTime, 132515538100000000), number(pidInternetCodepage, typeInt32, 28591)),
		stream(pidSubject, typeUnicode, wide("Zahlen für März")), stream(pidBody, typeUnicode, wide("Plain text")),
		stream(pidHTML, typeBinary, []byte("<p>Gr\xfc\xdfe \x80</p>")), stream(pidSenderName, typeUnicode, wide("Ann")),
		stream(pidSenderSMTP, typeUnicode, wide("ann@example.com")), recipient(0, 1, "Bob", "bob@example.com"),
		recipient(1, 2, "Carol", "carol@example.com"),
		node{name: "__attach_version1.0_#00000000", inside: []node{fixed(partHeader), stream(pidAttachLongFile, typeUnicode, wide("a b.txt")),
			stream(pidAttachData, typeBinary, []byte("in the file"))}},
		node{name: "__attach_version1.0_#00000001", inside: []node{fixed(partHeader), inner}})
}

// TestMsg converts a msg file.
func TestMsg(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	document := sampleMsg()
	is.True(IsMsg(document))
	part, err := Msg(document, never)
	is.NoErr(err)
	for _, want := range []string{`From: "Ann" <ann@example.com>`, `To: "Bob" <bob@example.com>`, `Cc: "Carol" <carol@example.com>`,
		"Date: Fri, 04 Dec 2020 11:10:10 +0000", "Subject: =?utf-8?b?WmFobGVuIGbDvHIgTcOkcno=?=", "Plain text", "<p>Grüße €</p>",
		"filename*=utf-8''a%20b.txt", "in the file", "message/rfc822", "Inner text", "filename*=utf-8''Inner.eml"} {
		if !strings.Contains(string(part), want) {
			t.Errorf("%q is not in the part", want)
		}
	}
	is.True(!IsMsg(compoundFile(node{name: "WordDocument", data: []byte("x")}))) // an old Word file
	for n := 0; n < len(document); n += 100 {
		_, err := Msg(document[:n], never)
		is.True(err != nil || n > len(document)/2)
	}
	binary.LittleEndian.PutUint32(document[48:], 7) // another sector than that of the directory
	_, err = Msg(document, never)
	is.True(err != nil)
}
