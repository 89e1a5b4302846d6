// Package command is what an operator asks of a data folder on the command line:
// keys, users, backups, and the words of a start. Each works on the running server
// through its socket, or on the folder itself where none runs.
//
// It imports handlers, for that socket, store, and terminal for tables. Flags and
// help texts stand in the tags that main's parser reads; it reads no configuration
// of its own.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"journeyman/handlers"
	"journeyman/store"
)

// A Folder is the data folder that a command works on.
type Folder struct {
	Context context.Context // of the command
	Path    string
	BaseURL string // of links, where no server runs that knows its own
	Open    func() (*store.Store, error)
	Stdout  io.Writer
}

// Administer calls do with the running server, or with the folder itself where none
// runs.
func (f *Folder) Administer(do func(handlers.Admin) error) (err error) {
	st, err := f.Open()
	if errors.Is(err, store.ErrLocked) {
		return do(handlers.NewControlClient(socket(f.Path)))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return do(handlers.DataFolder{Store: st, BaseURL: f.BaseURL})
}

// socket is where a running server takes commands.
func socket(data string) string { return filepath.Join(data, "control.sock") }

// Listen opens the socket for commands on a data folder that this process has open.
// Only this user can: the folder is closed to others, and so is the socket.
func Listen(data string) (net.Listener, error) {
	path := socket(data)
	// The folder is locked by us, so a socket in it is what a dead process left.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ln, err := handlers.ListenControl(path)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return ln, nil
}
