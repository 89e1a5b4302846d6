package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A Kind classifies an Error.
type Kind int

// The kinds of errors.
const (
	Invalid      Kind = iota + 1 // the path, the file or the command is not suitable for the call
	NotFound                     // there is no file or folder at the path
	TooLarge                     // a file exceeds Limits.FileSize, or the limit of one Place
	TooManyFiles                 // the workspace has reached Limits.Files
	Full                         // the workspace has reached Limits.TotalSize
	OverQuota                    // Limits.Quota has no room
)

// An Error may be shown to users. Its message contains no path outside the workspace. All other
// errors of this package come from the machine and must not be shown.
type Error struct {
	Kind    Kind
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// IsNotFound reports whether err means that there is no file or folder at a path.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == NotFound
}

// Errorf returns an Error of a kind.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// explain converts an error of the operating system about p into an *Error if the caller can
// act on it. It wraps other errors.
func explain(p string, err error) error {
	if _, known := errors.AsType[*Error](err); known {
		return err
	}
	for _, refusal := range []struct {
		is    error
		kind  Kind
		words string
	}{
		{fs.ErrNotExist, NotFound, "no file or folder %q in the workspace"},
		{fs.ErrExist, Invalid, "%q exists already"},
		{fs.ErrPermission, Invalid, "%q does not permit that"},
		{syscall.ENOTDIR, Invalid, "a part of %q is not a folder"},
		{syscall.EISDIR, Invalid, "%q is a folder, not a file"},
		{syscall.ELOOP, Invalid, "%q has too many symbolic links"},
		{syscall.ENAMETOOLONG, Invalid, "%q is too long"},
		{syscall.ENXIO, Invalid, "%q is a device, pipe or socket, not a file"},
	} {
		if errors.Is(err, refusal.is) {
			return Errorf(refusal.kind, refusal.words, p)
		}
	}
	_, fromKernel := errors.AsType[syscall.Errno](err)
	_, inRoot := errors.AsType[*fs.PathError](err)
	if inRoot && !fromKernel && !errors.Is(err, fs.ErrClosed) {
		// os.Root exports no error for a path that leaves the root. Its error is the only
		// *fs.PathError that wraps no errno.
		return Errorf(Invalid, "%q leads outside the workspace", p)
	}
	return fmt.Errorf("workspace file %q: %w", p, err)
}
