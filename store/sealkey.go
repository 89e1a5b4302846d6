package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"journeyman/store/sqlite"
)

// A sealer holds the key that encrypts stored secrets and signs tokens. The key is a file
// of the data folder, which is created when the key is first needed.
type sealer struct {
	mu  sync.Mutex // held while the key is read or created
	key []byte     // nil until it is first needed
}

// load returns the key. It creates the key file if the folder has none.
func (k *sealer) load(dir string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	path := filepath.Join(dir, sealKeyName)
	key, err := os.ReadFile(path)
	// The key is on the disk before it is used. Otherwise a crash could make sealed secrets unreadable.
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		err = writeDurably(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("key of secrets: %w", err)
	}
	// A truncated file is refused and not replaced, because a new key cannot unseal the existing
	// secrets.
	if len(key) != 32 {
		return nil, fmt.Errorf("key of secrets: %s has %d bytes and must have 32", sealKeyName, len(key))
	}
	// Errors are not kept, so the next call reads a file that the operator has put back.
	k.key = key
	return key, nil
}

// writeDurably creates a file that only its owner can read. It returns once the file and
// its name are on the disk.
func writeDurably(path string, data []byte) error {
	// The file gets its name only when it is complete: a crash must not leave half a key.
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path)+tempSuffix)
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return sqlite.SyncDir(filepath.Dir(path))
}
