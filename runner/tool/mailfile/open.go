// Package mailfile reads mails that are files, and what mails are packed in: S/MIME messages, the winmail.dat of
// Exchange, and the msg files of Outlook.
//
// It is pure: the same bytes give the same result. Anybody may have written a document, so the package runs in a
// confined process, and everything that can grow has a limit.
package mailfile

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"journeyman/runner/tool/mailfile/outlook"
)

// maxUnpacked is how many bytes an envelope may have inside. It is a little less than a filter can return.
const maxUnpacked = 15 << 20

// IsEnvelope reports whether a document may be one that Open can read, by its first bytes.
func IsEnvelope(document []byte) bool {
	return outlook.IsTNEF(document) || outlook.IsMsg(document) || isCMS(withoutArmor(document))
}

// Open returns the content of an envelope: a part of a mail with its header, as MIME. An envelope is a signed S/MIME
// message, a winmail.dat or a msg file. It returns ErrEncrypted for an encrypted message.
func Open(document []byte, expired func() bool) (part []byte, err error) {
	switch {
	case outlook.IsTNEF(document):
		part, err = outlook.TNEF(document, expired)
	case outlook.IsMsg(document):
		part, err = outlook.Msg(document, expired)
	default:
		part, err = signedContent(document)
	}
	if err == nil && len(part) > maxUnpacked {
		err = fmt.Errorf("it has %d bytes inside, and at most %d can be unpacked", len(part), maxUnpacked)
	}
	return part, err
}

// inflate unpacks compressed bytes.
func inflate(packed []byte) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errors.New("its compression is not known")
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err != nil {
		return nil, errors.New("its compressed content is damaged")
	}
	return b, nil
}
