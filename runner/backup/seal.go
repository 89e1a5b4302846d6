package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
)

// A sealer encrypts backups for its recipients. Without recipients, it does not encrypt.
type sealer struct{ recipients []age.Recipient }

func newSealer(keys []string) (s sealer, err error) {
	for _, key := range keys {
		list, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return s, fmt.Errorf("--backup-recipient: %.20q is not a public key of age (age1...); "+
				"a passphrase cannot be used", key)
		}
		s.recipients = append(s.recipients, list...)
	}
	return s, nil
}

func (s sealer) enabled() bool { return len(s.recipients) > 0 }

// A sealing is the encryption of one backup. It keeps the key of this backup in memory, so that the
// backup can be read again. The key decrypts no other backup.
type sealing struct {
	recipients []age.Recipient
	fileKey    []byte
}

func (s sealer) begin() (*sealing, error) {
	l := &sealing{}
	for i, r := range s.recipients {
		if i == 0 {
			r = &keyCatcher{r, l}
		}
		l.recipients = append(l.recipients, r)
	}
	return l, nil
}

// writer returns a writer that encrypts its input to w. Its Close writes the last block and leaves
// w open.
func (l *sealing) writer(w io.Writer) (io.WriteCloser, error) {
	if len(l.recipients) == 0 {
		return plainWriter{w}, nil
	}
	return age.Encrypt(w, l.recipients...)
}

// reader returns a reader that decrypts the output of writer.
func (l *sealing) reader(r io.Reader) (io.Reader, error) {
	if len(l.recipients) == 0 {
		return r, nil
	}
	return age.Decrypt(r, age.NewInjectedFileKeyIdentity(l.fileKey))
}

type plainWriter struct{ io.Writer }

// Close does nothing: the owner of the writer closes it.
func (plainWriter) Close() error { return nil }

// A keyCatcher wraps a recipient and copies the file key into a sealing.
type keyCatcher struct {
	age.Recipient
	of *sealing
}

// Wrap calls Wrap of the recipient.
func (k *keyCatcher) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	k.of.fileKey = bytes.Clone(fileKey)
	return k.Recipient.Wrap(fileKey)
}

// WrapWithLabels calls WrapWithLabels of the recipient. age uses labels to refuse a mix of
// recipients of different strength.
func (k *keyCatcher) WrapWithLabels(fileKey []byte) ([]*age.Stanza, []string, error) {
	labelled, ok := k.Recipient.(age.RecipientWithLabels)
	if !ok {
		stanzas, err := k.Wrap(fileKey)
		return stanzas, nil, err
	}
	k.of.fileKey = bytes.Clone(fileKey)
	return labelled.WrapWithLabels(fileKey)
}

// sealedMark is the prefix of all age-encrypted files.
const sealedMark = "age-encryption.org/"

// ErrSealed means that a backup is encrypted and no identity was given.
var ErrSealed = errors.New("the backup is encrypted: name the file with its secret key by --identity FILE")

// Unseal returns a reader of the archive in a backup, encrypted or not. identities reads an age
// identity file with secret keys; it may be nil.
func Unseal(backup io.Reader, identities io.Reader) (io.Reader, error) {
	r := bufio.NewReader(backup)
	begin, _ := r.Peek(len(sealedMark)) // a file that is too short fails when its reader parses it
	if string(begin) != sealedMark {
		return r, nil
	}
	if identities == nil {
		return nil, ErrSealed
	}
	list, err := age.ParseIdentities(identities)
	if err != nil {
		return nil, errors.New("--identity: the file holds no secret keys of age (AGE-SECRET-KEY-...). Passphrases are " +
			"not used: decrypt a key file that has one with age -d")
	}
	plain, err := age.Decrypt(r, list...)
	if wrong := (*age.NoIdentityMatchError)(nil); errors.As(err, &wrong) {
		return nil, errors.New("the backup is encrypted for other keys than those of --identity")
	}
	if err != nil {
		return nil, fmt.Errorf("the backup is damaged: %w", err)
	}
	return plain, nil
}
