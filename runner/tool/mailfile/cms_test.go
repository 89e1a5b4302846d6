package mailfile

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// der returns an element with a definite length.
func der(tag byte, parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	switch n := len(body); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, body...)
	case n < 0x10000:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, body...)
	default:
		return append([]byte{tag, 0x83, byte(n >> 16), byte(n >> 8), byte(n)}, body...)
	}
}

// ber returns an element with an indefinite length.
func ber(tag byte, parts ...[]byte) []byte {
	return slices.Concat([]byte{tag, 0x80}, slices.Concat(parts...), []byte{0, 0})
}

// signed returns a signed message with a content. element is der or ber.
func signed(element func(tag byte, parts ...[]byte) []byte, octets []byte) []byte {
	inner := element(tagSequence, der(tagOID, oidData), element(tagExplicit, octets))
	data := element(tagSequence, der(2, []byte{1}), der(0x31, der(tagSequence, der(tagOID, []byte{0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1}))),
		inner, element(tagExplicit, der(tagSequence)), der(0x31))
	return element(tagSequence, der(tagOID, oidSigned), element(tagExplicit, data))
}

const signedText = "Content-Type: text/plain\r\n\r\nSigned text\r\n"

func never() bool { return false }

// TestSignedContent unwraps signed messages in all encodings.
func TestSignedContent(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write([]byte(signedText)) // a buffer accepts everything
	_ = w.Close()
	enveloped := der(tagSequence, der(tagOID, oidEnveloped), der(tagExplicit, der(tagSequence)))
	double := signed(der, der(tagOctets, signed(der, der(tagOctets, []byte(signedText)))))
	plain := signed(der, der(tagOctets, []byte(signedText)))
	for name, tt := range map[string]struct {
		document []byte
		err      string // "" if it has the signed text
	}{
		"DER":        {plain, ""},
		"BER":        {signed(ber, ber(tagOctets|constructed, der(tagOctets, []byte(signedText[:9])), der(tagOctets, []byte(signedText[9:])))), ""},
		"BER in BER": {signed(ber, ber(tagOctets|constructed, ber(tagOctets|constructed, der(tagOctets, []byte(signedText))))), ""},
		"DER in BER": {signed(ber, der(tagOctets, []byte(signedText))), ""},
		"PEM":        {pem.EncodeToMemory(&pem.Block{Type: "PKCS7", Bytes: plain}), ""},
		"base64":     {[]byte(base64.StdEncoding.EncodeToString(plain) + "\r\n"), ""},
		"compressed": {der(tagSequence, der(tagOID, oidCompressed), der(tagExplicit, der(tagSequence, der(2, []byte{0}), der(tagSequence),
			der(tagSequence, der(tagOID, oidData), der(tagExplicit, der(tagOctets, packed.Bytes())))))), ""},
		"signed twice":            {double, ""},
		"encrypted":               {enveloped, ErrEncrypted.Error()},
		"signed around encrypted": {signed(der, der(tagOctets, enveloped)), ErrEncrypted.Error()},
		"separate": {der(tagSequence, der(tagOID, oidSigned), der(tagExplicit, der(tagSequence, der(2, []byte{1}), der(0x31),
			der(tagSequence, der(tagOID, oidData))))), "its signature is separate from its content"},
		"short":  {plain[:len(plain)/2], errCMS.Error()},
		"text":   {[]byte("Hello"), errCMS.Error()},
		"empty":  {nil, errCMS.Error()},
		"nested": {bytes.Repeat([]byte{0x30, 0x80}, 5000), errCMS.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			content, err := Open(tt.document, never)
			if tt.err != "" {
				is.True(err != nil)
				is.Equal(err.Error(), tt.err)
				return
			}
			is.NoErr(err)
			is.Equal(string(content), signedText)
		})
	}
	is.New(t).True(IsEnvelope(plain))
	is.New(t).True(!IsEnvelope([]byte(strings.Repeat("0 x", 9))))
}

// FuzzOpen opens random documents.
func FuzzOpen(f *testing.F) {
	f.Add(signed(der, der(tagOctets, []byte(signedText))))
	f.Add(signed(ber, ber(tagOctets|constructed, der(tagOctets, []byte(signedText)))))
	f.Fuzz(func(t *testing.T, document []byte) {
		if part, err := Open(document, never); err == nil && len(part) > maxUnpacked {
			t.Errorf("%d bytes became %d", len(document), len(part))
		}
	})
}
