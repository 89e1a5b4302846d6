package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrInUse means that another process has the database open.
var ErrInUse = errors.New("the database is in use by another process: stop that one, or choose another database")

// ErrUnknown means that the connection broke while a transaction was committed. The write was
// either done or not.
var ErrUnknown = errors.New("the connection broke during the commit: it is unknown whether the write was done")

// These errors are reasons to refuse a write. A later write may succeed.
var (
	errLockLost = errors.New("the connection that holds the lock of the database is lost")
	errFenced   = errors.New("another process has opened the database since: this one has to be restarted")
)

// A connectionError means that a connection could not be made, or broke.
type connectionError struct {
	doing string
	err   error
	fresh bool // the connection could not be made
}

// Error returns what failed and why.
func (e *connectionError) Error() string { return e.doing + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *connectionError) Unwrap() error { return e.err }

// A conflictError means that a write was run again and again, and met other writes each time.
type conflictError struct {
	tries int
	err   error
}

// Error returns how often the write was tried, and the last conflict.
func (e *conflictError) Error() string {
	return fmt.Sprintf("the write met other writes %d times: %v", e.tries, e.err)
}

// Unwrap returns the last conflict.
func (e *conflictError) Unwrap() error { return e.err }

// The codes of the server's errors, called SQLSTATE, that this package tells apart.
const (
	codeUnique        = "23505"
	codeReadOnly      = "25006" // the server is a standby
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeFull          = "53100"
	codeLockTimeout   = "55P03"
	codeCanceled      = "57014" // by the server's own limit of time, or by an administrator
	codeNoStatement   = "26000" // the connection has forgotten a prepared statement
	codePlanChanged   = "0A000" // a prepared statement has other columns than before
)

// codeOf returns the SQLSTATE of an error of the server, and "" for other errors.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// IsUnavailable reports whether err comes from the server, the network or the lock of the
// database, so that a later try may succeed. An error that is ErrUnknown is one of them.
func IsUnavailable(err error) bool {
	for _, known := range []error{ErrUnknown, errLockLost, errFenced} {
		if errors.Is(err, known) {
			return true
		}
	}
	if _, ok := errors.AsType[*connectionError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*conflictError](err); ok {
		return true
	}
	switch code := codeOf(err); {
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P0"):
		return true
	default:
		return code == codeReadOnly || code == codeLockTimeout || code == codeCanceled || isConflict(code)
	}
}

// IsFull reports whether err means that the server's disk has no room.
func IsFull(err error) bool { return codeOf(err) == codeFull }

// isConflict reports whether a code means that a transaction met another one.
func isConflict(code string) bool { return code == codeSerialization || code == codeDeadlock }

// failed returns the error of a query on the connection c. It is ctx's if that has ended, and a
// connectionError if the connection broke.
func failed(ctx context.Context, c *conn, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && c.broken() {
		return ended
	}
	if c.broken() {
		return &connectionError{doing: "the connection to the database broke", err: err}
	}
	return err
}
