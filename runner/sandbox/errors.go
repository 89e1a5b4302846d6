package sandbox

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
	Invalid      Kind = iota + 1 // the path, or the file there, does not suit the call
	NotFound                     // nothing is there
	TooLarge                     // a file exceeds Limits.FileSize, or the limit of one Place
	TooManyFiles                 // the workspace has reached Limits.Files
	Full                         // the workspace has reached Limits.TotalSize
)

// An Error is a refusal that its caller may show. Its message names no path outside
// the workspace. All other errors of this package come from the machine and must not
// be shown.
type Error struct {
	Kind    Kind
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// IsNotFound reports whether err says that there is no file or folder at a path.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == NotFound
}

// A StartError means that a command could not be started. It has done nothing, so the call
// may be made again.
type StartError struct{ Err error }

// Error returns the text of the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Exhausted reports whether err says that this process, or the machine, has no more open
// files, no more processes, or no memory for one. The same call may succeed later.
func Exhausted(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// explain turns an error of the operating system about p into an *Error, if the
// caller can do something about it. Other errors are wrapped.
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
			return errorf(refusal.kind, refusal.words, p)
		}
	}
	_, fromKernel := errors.AsType[syscall.Errno](err)
	_, inRoot := errors.AsType[*fs.PathError](err)
	if inRoot && !fromKernel && !errors.Is(err, fs.ErrClosed) {
		// os.Root has no name for the error of a path that leaves the root: it is the only
		// *fs.PathError that wraps no errno.
		return errorf(Invalid, "%q leads outside the workspace", p)
	}
	return fmt.Errorf("workspace file %q: %w", p, err)
}
