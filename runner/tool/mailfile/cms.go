package mailfile

import (
	"bytes"
	"encoding/base64"
	"errors"
)

// Object identifiers of the content of CMS messages (RFC 5652), as their encoded bytes.
var (
	oidData       = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01}
	oidSigned     = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02}
	oidEnveloped  = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x03}
	oidBoth       = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x04} // signed and enveloped
	oidEncrypted  = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x06}
	oidAuthData   = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x02}
	oidCompressed = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x09}
	oidAuthEnv    = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x17}
)

// ErrEncrypted is the error for a document that only its recipients' keys can read.
var ErrEncrypted = errors.New("it is encrypted")

var errCMS = errors.New("it is no valid S/MIME message")

// maxSigned is the greatest number of signed messages inside each other.
const maxSigned = 5

// signedContent returns the content of a signed S/MIME message, without a check of the signature. The encoding may be
// DER or BER, with or without the armor of PEM. It returns ErrEncrypted for an encrypted message.
func signedContent(document []byte) ([]byte, error) {
	content := withoutArmor(document)
	for range maxSigned {
		inner, err := signedOnce(content)
		if err != nil {
			return nil, err
		}
		if content = inner; !isCMS(content) { // else it is signed twice, or encrypted below the signature
			return content, nil
		}
	}
	return nil, errors.New("it has too many signatures around each other")
}

// isCMS reports whether a document begins as a CMS message: a sequence with one of the types of content.
func isCMS(document []byte) bool {
	seq, err := element(document)
	if err != nil || seq.tag != tagSequence {
		return false
	}
	oid, err := element(seq.body)
	return err == nil && oid.tag == tagOID &&
		(bytes.HasPrefix(oid.body, oidData[:8]) || bytes.HasPrefix(oid.body, oidCompressed[:10]))
}

// signedOnce returns the content below one signature.
func signedOnce(document []byte) ([]byte, error) {
	oid, content, err := contentInfo(document)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.Equal(oid, oidData):
		return octets(content)
	case bytes.Equal(oid, oidSigned), bytes.Equal(oid, oidAuthData):
	case bytes.Equal(oid, oidEnveloped), bytes.Equal(oid, oidEncrypted), bytes.Equal(oid, oidAuthEnv),
		bytes.Equal(oid, oidBoth):
		return nil, ErrEncrypted
	case bytes.Equal(oid, oidCompressed):
		return decompressed(content)
	default:
		return nil, errCMS
	}
	// SignedData: version, digest algorithms, and then the content. AuthenticatedData has more fields in front.
	fields, err := element(content)
	if err != nil || fields.tag != tagSequence {
		return nil, errCMS
	}
	for rest := fields.body; len(rest) > 0; {
		field, err := element(rest)
		if err != nil {
			return nil, err
		}
		if field.tag == tagSequence && startsWithOID(field.body) {
			if _, content, err := contentInfo(field.all); err == nil && len(content) > 0 {
				return octets(content)
			}
		}
		rest = rest[len(field.all):]
	}
	return nil, errors.New("its signature is separate from its content")
}

func startsWithOID(body []byte) bool {
	oid, err := element(body)
	return err == nil && oid.tag == tagOID && !bytes.Equal(oid.body, nil)
}

// contentInfo returns the type and the content of a ContentInfo or EncapsulatedContentInfo.
func contentInfo(document []byte) (oid, content []byte, err error) {
	seq, err := element(document)
	if err != nil || seq.tag != tagSequence {
		return nil, nil, errCMS
	}
	kind, err := element(seq.body)
	if err != nil || kind.tag != tagOID {
		return nil, nil, errCMS
	}
	wrapped, err := element(seq.body[len(kind.all):])
	if err != nil || wrapped.tag != tagExplicit {
		return nil, nil, errCMS
	}
	return kind.body, wrapped.body, nil
}

// decompressed returns the content of CompressedData (RFC 3274): version, algorithm, content.
func decompressed(content []byte) ([]byte, error) {
	fields, err := element(content)
	if err != nil || fields.tag != tagSequence {
		return nil, errCMS
	}
	rest := fields.body
	for range 2 {
		field, err := element(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[len(field.all):]
	}
	_, inner, err := contentInfo(rest)
	if err != nil {
		return nil, err
	}
	packed, err := octets(inner)
	if err != nil {
		return nil, err
	}
	return inflate(packed)
}

// Tags of ASN.1.
const (
	tagOctets   = 0x04
	tagOID      = 0x06
	tagSequence = 0x30
	tagExplicit = 0xa0
	constructed = 0x20
)

// maxNested is the greatest depth of elements. S/MIME messages need about ten.
const maxNested = 50

// An asn1Element is one element in BER.
type asn1Element struct {
	tag  byte
	body []byte // without the end mark of an indefinite length
	all  []byte
}

// element returns the first element of a text in BER.
func element(b []byte) (asn1Element, error) { return elementAt(b, 0) }

func elementAt(b []byte, depth int) (e asn1Element, err error) {
	if len(b) < 2 || b[0]&0x1f == 0x1f || depth > maxNested { // CMS has no long tags
		return e, errCMS
	}
	e.tag = b[0]
	head, length := 2, int(b[1])
	switch {
	case length == 0x80: // indefinite: elements up to an end mark
		return indefinite(b, depth)
	case length > 0x80:
		digits := length & 0x7f
		if digits > 4 || len(b) < 2+digits {
			return e, errCMS
		}
		head, length = 2+digits, 0
		for _, d := range b[2 : 2+digits] {
			length = length<<8 | int(d)
		}
	}
	if length > len(b)-head {
		return e, errCMS
	}
	e.body, e.all = b[head:head+length], b[:head+length]
	return e, nil
}

// indefinite returns an element of indefinite length. Its end is found by reading the elements inside.
func indefinite(b []byte, depth int) (e asn1Element, err error) {
	if b[0]&constructed == 0 {
		return e, errCMS
	}
	for at := 2; ; {
		if len(b) >= at+2 && b[at] == 0 && b[at+1] == 0 {
			return asn1Element{b[0], b[2:at], b[:at+2]}, nil
		}
		inner, err := elementAt(b[at:], depth+1)
		if err != nil {
			return e, err
		}
		at += len(inner.all)
	}
}

// octets returns the bytes of an octet string, whose pieces may be elements of their own.
func octets(b []byte) ([]byte, error) {
	var out []byte
	err := appendOctets(&out, b, 0)
	return out, err
}

func appendOctets(out *[]byte, b []byte, depth int) error {
	e, err := elementAt(b, depth)
	switch {
	case err != nil:
		return err
	case e.tag == tagOctets:
		*out = append(*out, e.body...)
		return nil
	case e.tag != tagOctets|constructed:
		// Old programs (PKCS #7) sign elements of other types: the content is the element.
		*out = append(*out, e.all...)
		return nil
	}
	for rest := e.body; len(rest) > 0; {
		piece, err := elementAt(rest, depth+1)
		if err != nil {
			return err
		}
		if err := appendOctets(out, piece.all, depth+1); err != nil {
			return err
		}
		rest = rest[len(piece.all):]
	}
	return nil
}

// withoutArmor returns the bytes of a document in PEM or in base64, and other documents as they are.
func withoutArmor(document []byte) []byte {
	if len(document) > 0 && document[0] == tagSequence {
		return document
	}
	text := bytes.TrimSpace(document)
	if rest, found := bytes.CutPrefix(text, []byte("-----BEGIN ")); found {
		_, text, _ = bytes.Cut(rest, []byte("\n"))
		text, _, _ = bytes.Cut(text, []byte("-----END "))
	}
	text = bytes.Join(bytes.Fields(text), nil)
	if b, err := base64.StdEncoding.DecodeString(string(text)); err == nil && len(b) > 0 {
		return b
	}
	return document
}
