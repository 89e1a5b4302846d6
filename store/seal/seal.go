// Package seal encrypts the secrets that the database holds and signs the tokens that leave the server, with one key.
// The key is a file of the data folder. No backup contains it.
//
// It stands on the errors of db, and on sqlite, which syncs a folder. It knows no table.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"

	"journeyman/store/db"
)

// subkey returns a key for one purpose. It is derived by HKDF (RFC 5869), so no two purposes
// share a key.
func (k *Key) subkey(purpose string) ([]byte, error) {
	key, err := k.load()
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, purpose, 32)
}

func (k *Key) aead(purpose string) (cipher.AEAD, error) {
	key, err := k.subkey("seal " + purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Seal encrypts a secret with AES-256-GCM. purpose names the row that holds the secret. Unseal
// fails for another purpose, so the secrets of two rows cannot be exchanged.
func (k *Key) Seal(purpose string, plain []byte) ([]byte, error) {
	aead, err := k.aead(purpose)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, nil), nil
}

// Unseal returns the secret that Seal encrypted. It returns a Conflict if the key file has
// changed since then.
func (k *Key) Unseal(purpose string, sealed []byte) ([]byte, error) {
	aead, err := k.aead(purpose)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, db.Errorf(db.Conflict, "the secret was sealed with another %s than the one in the data folder: "+
			"put the old file back, or enter the secret again", k.name())
	}
	return plain, nil
}

// Sign returns a signature of text for one purpose, such as a link in a mail.
func (k *Key) Sign(purpose, text string) ([]byte, error) {
	key, err := k.subkey("sign " + purpose)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil), nil
}
