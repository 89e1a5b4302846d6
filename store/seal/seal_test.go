package seal

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
	path := filepath.Join(t.TempDir(), "secret.key")
	k := New(path, "new-*")
	plain := []byte("a key of another service")
	sealed, err := k.Seal("secret sec_1", plain)
	is.NoErr(err)
	is.True(!bytes.Contains(sealed, plain)) // the database must not contain the secret
	again, err := k.Seal("secret sec_1", plain)
	is.NoErr(err)
	is.True(!bytes.Equal(sealed, again)) // equal secrets must have different ciphertexts

	restarted := New(path, "new-*")
	opened, err := restarted.Unseal("secret sec_1", sealed)
	is.NoErr(err)
	is.Equal(string(opened), string(plain))
	_, err = restarted.Unseal("secret sec_2", sealed)
	is.True(db.IsKind(err, db.Conflict)) // a secret of another row
	info, err := os.Stat(path)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o600))

	_, err = New(filepath.Join(t.TempDir(), "secret.key"), "new-*").Unseal("secret sec_1", sealed)
	is.True(db.IsKind(err, db.Conflict)) // another key file
	is.NoErr(os.WriteFile(path, []byte("short"), 0o600))
	_, err = New(path, "new-*").Seal("secret sec_1", plain)
	is.True(err != nil) // a damaged key file must not be replaced
}

// TestSign checks that a signature is valid for one purpose and one text only.
func TestSign(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	k := New(filepath.Join(t.TempDir(), "secret.key"), "new-*")
	first, err := k.Sign("approval", "apr_1")
	is.NoErr(err)
	for _, other := range [][2]string{{"approval", "apr_2"}, {"question", "apr_1"}} {
		signature, err := k.Sign(other[0], other[1])
		is.NoErr(err)
		is.True(!bytes.Equal(signature, first))
	}
	again, err := k.Sign("approval", "apr_1")
	is.NoErr(err)
	is.True(bytes.Equal(again, first))
}
