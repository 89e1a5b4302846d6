package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
)

// TestSeal encrypts secrets. It decrypts them with the right key file, with another one, and for
// another row.
func TestSeal(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := &Store{dir: dir}
	plain := []byte("a key of another service")
	sealed, err := s.seal("secret sec_1", plain)
	is.NoErr(err)
	is.True(!bytes.Contains(sealed, plain)) // the database must not contain the secret
	again, err := s.seal("secret sec_1", plain)
	is.NoErr(err)
	is.True(!bytes.Equal(sealed, again)) // equal secrets must have different ciphertexts

	restarted := &Store{dir: dir}
	opened, err := restarted.unseal("secret sec_1", sealed)
	is.NoErr(err)
	is.Equal(string(opened), string(plain))
	_, err = restarted.unseal("secret sec_2", sealed)
	is.True(db.IsKind(err, db.Conflict)) // a secret of another row
	info, err := os.Stat(filepath.Join(dir, sealKeyName))
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o600))

	_, err = (&Store{dir: t.TempDir()}).unseal("secret sec_1", sealed)
	is.True(db.IsKind(err, db.Conflict)) // another key file
	is.NoErr(os.WriteFile(filepath.Join(dir, sealKeyName), []byte("short"), 0o600))
	_, err = (&Store{dir: dir}).seal("secret sec_1", plain)
	is.True(err != nil) // a damaged key file must not be replaced
}

// TestSign checks that a signature is valid for one purpose and one text only.
func TestSign(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &Store{dir: t.TempDir()}
	first, err := s.sign("approval", "apr_1")
	is.NoErr(err)
	for _, other := range [][2]string{{"approval", "apr_2"}, {"question", "apr_1"}} {
		signature, err := s.sign(other[0], other[1])
		is.NoErr(err)
		is.True(!bytes.Equal(signature, first))
	}
	again, err := s.sign("approval", "apr_1")
	is.NoErr(err)
	is.True(bytes.Equal(again, first))
}
