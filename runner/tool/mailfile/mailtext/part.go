package mailtext

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// IsPart reports whether a document begins with a field of MIME, as every part of a signed mail does. Other signed
// documents, such as invoices and contracts (CAdES), begin as files of their kind.
func IsPart(document []byte) bool {
	head := bytes.ToLower(document[:min(len(document), 13)])
	return bytes.HasPrefix(head, []byte("content-")) || bytes.HasPrefix(head, []byte("mime-version:"))
}

// SignedName returns the name of the document in a file that holds it with its signature, such as a.pdf of a.pdf.p7m.
func SignedName(name string, document []byte) string {
	if extension := path.Ext(name); strings.EqualFold(extension, ".p7m") {
		name = strings.TrimSuffix(name, extension)
	}
	switch {
	case strings.Trim(path.Ext(name), ".") != "":
		return name
	case utf8.Valid(document):
		return name + ".txt"
	}
	return name + ".bin"
}
