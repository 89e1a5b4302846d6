package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A Kind says what an Error is about.
type Kind int

// The kinds of errors.
const (
	Invalid      Kind = iota + 1 // the path, or what it leads to, is not for this use
	NotFound                     // nothing is there
	TooLarge                     // a file over Limits.FileSize, or the limit of one Place
	TooManyFiles                 // the workspace has reached Limits.Files
	Full                         // the workspace has reached Limits.TotalSize
)

// An Error is a refusal its caller may be told about. Message is shown as it
// stands and names no path outside the workspace. Any other error of this package
// is trouble with the machine and not for showing.
type Error struct {
	Kind    Kind
	Message string
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

func errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// explain makes an *Error of what the system said about p where the caller can do
// something about it.
func explain(p string, err error) error {
	var known *Error
	var errno syscall.Errno
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return errorf(NotFound, "no file or folder %q in the workspace", p)
	case errors.Is(err, fs.ErrExist):
		return errorf(Invalid, "%q exists already", p)
	case errors.Is(err, fs.ErrPermission):
		return errorf(Invalid, "%q does not permit that", p)
	case errors.Is(err, syscall.ENOTDIR):
		return errorf(Invalid, "a part of %q is not a folder", p)
	case errors.Is(err, syscall.EISDIR):
		return errorf(Invalid, "%q is a folder, not a file", p)
	case errors.Is(err, syscall.ELOOP):
		return errorf(Invalid, "%q has too many symbolic links", p)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return errorf(Invalid, "%q is too long", p)
	case errors.Is(err, syscall.ENXIO):
		return errorf(Invalid, "%q is a device, pipe or socket, not a file", p)
	case errors.Is(err, fs.ErrClosed), errors.As(err, &errno):
		return fmt.Errorf("workspace file %q: %w", p, err)
	}
	var inRoot *fs.PathError
	if errors.As(err, &inRoot) {
		// os.Root has no name for this error; it is the one it makes by itself.
		return errorf(Invalid, "%q leads outside the workspace", p)
	}
	return fmt.Errorf("workspace file %q: %w", p, err)
}
