package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A Kind says what sort of failure an Error is.
type Kind int

// The kinds of failures a caller may be told about.
const (
	Invalid         Kind = iota + 1 // a value breaks a rule; Details says which
	Unauthorized                    // no valid credential
	PaymentRequired                 // the organization's credit cap is reached
	Forbidden                       // it exists, and not for this caller
	NotFound                        // it exists nowhere
	Conflict                        // its state does not allow it
	TooLarge                        // a size limit
	Mismatch                        // an idempotency key used for another request
	Busy                            // a queue is full or the disk is: later it may work
)

// An Error is a failure its caller may be told about. Message and Details are
// shown as they stand, so they hold no SQL, no paths and no secrets. Any other
// error is internal: it is logged, and the caller learns only that it happened.
type Error struct {
	Kind    Kind
	Code    string // short and stable, for programs; '' for the kind's own
	Message string
	Details []Detail // every invalid field, not the first
	cause   error    // for the log
}

// A Detail is one invalid field.
type Detail struct {
	Path    string `json:"path"` // of the field in the body or query, such as "when.date"
	Message string `json:"message"`
}

// Error gives the message and, for the log, the cause.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error of a kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// IsKind reports whether err is an Error of that kind.
func IsKind(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// Fields collects invalid fields, so that a caller hears of all of them at once.
type Fields []Detail

// Add notes that the field at path breaks a rule.
func (f *Fields) Add(path, format string, args ...any) {
	*f = append(*f, Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Check adds the message unless ok.
func (f *Fields) Check(ok bool, path, format string, args ...any) {
	if !ok {
		f.Add(path, format, args...)
	}
}

// Err is nil without invalid fields, else an Invalid error that lists them.
func (f Fields) Err() error {
	if len(f) == 0 {
		return nil
	}
	msg := f[0].Path + ": " + f[0].Message
	if len(f) > 1 {
		msg += fmt.Sprintf(" (and %d more)", len(f)-1)
	}
	return &Error{Kind: Invalid, Message: msg, Details: f}
}

// Unavailable marks what a later try may not meet: a full or failing disk.
func Unavailable(err error) error {
	var known *Error
	var e *sqlite.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EIO):
	case errors.As(err, &e):
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		default:
			return err
		}
	default:
		return err
	}
	return &Error{Kind: Busy, Code: "storage", Message: "the data folder cannot be written now", cause: err}
}
