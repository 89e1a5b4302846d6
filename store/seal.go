package store

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
func (s *Store) subkey(purpose string) ([]byte, error) {
	key, err := s.sealer.load(s.dir)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, purpose, 32)
}

func (s *Store) aead(purpose string) (cipher.AEAD, error) {
	key, err := s.subkey("seal " + purpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a secret with AES-256-GCM. purpose names the row that holds the secret. unseal
// fails for another purpose, so the secrets of two rows cannot be exchanged.
func (s *Store) seal(purpose string, plain []byte) ([]byte, error) {
	aead, err := s.aead(purpose)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, nil), nil
}

// unseal returns the secret that seal encrypted. It returns a Conflict if the key file has
// changed since then.
func (s *Store) unseal(purpose string, sealed []byte) ([]byte, error) {
	aead, err := s.aead(purpose)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, db.Errorf(db.Conflict, "the secret was sealed with another %s than the one in the data folder: "+
			"put the old file back, or enter the secret again", sealKeyName)
	}
	return plain, nil
}

// sign returns a signature of text for one purpose, such as a link in a mail.
func (s *Store) sign(purpose, text string) ([]byte, error) {
	key, err := s.subkey("sign " + purpose)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil), nil
}
