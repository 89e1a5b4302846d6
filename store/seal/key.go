package seal

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

// A Key encrypts stored secrets and signs tokens. Its file is created when the key is first needed. Its methods are
// safe for concurrent use.
type Key struct {
	path, temp string

	mu  sync.Mutex // held while the key is read or created
	key []byte     // nil until it is first needed
}

// New returns the key of a file. temp is the pattern of temporary files in its folder, for os.CreateTemp: a crash
// may leave one behind.
func New(path, temp string) *Key { return &Key{path: path, temp: temp} }

// name returns the name of the file, for messages.
func (k *Key) name() string { return filepath.Base(k.path) }

// load returns the key. It creates the key file if the folder has none.
func (k *Key) load() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	key, err := os.ReadFile(k.path)
	// The key is on the disk before it is used. Otherwise a crash could make sealed secrets unreadable.
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		if err = createDurably(k.path, k.temp, key); errors.Is(err, fs.ErrExist) {
			key, err = os.ReadFile(k.path) // another node was first
		}
	}
	if err != nil {
		return nil, fmt.Errorf("key of secrets: %w", err)
	}
	// A truncated file is refused and not replaced, because a new key cannot unseal the existing
	// secrets.
	if len(key) != 32 {
		return nil, fmt.Errorf("key of secrets: %s has %d bytes and must have 32", k.name(), len(key))
	}
	// Errors are not kept, so the next call reads a file that the operator has put back.
	k.key = key
	return key, nil
}

// createDurably creates a file that only its owner can read. It returns once the file and its name are
// on the disk. It returns fs.ErrExist if the file exists, because another node may create it at the same
// time.
func createDurably(path, temp string, data []byte) error {
	// The file gets its name only when it is complete: a crash must not leave half a key.
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, temp)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a rename it has gone already
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(f.Name(), path) // a file system without links
	}
	if err != nil {
		return err
	}
	return sqlite.SyncDir(dir)
}
