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

// ErrUnknown means that the connection broke during a commit. The write may or may not have been
// committed.
var ErrUnknown = errors.New("the connection broke during the commit: it is unknown whether the write was done")

// Writes are refused with these errors. A later write may succeed.
var (
	errLockLost = errors.New("the connection that holds the lock of the database is lost")
	errFenced   = errors.New("another process has opened the database since: this one has to be restarted")
)

// A connectionError means that a connection broke or could not be opened.
type connectionError struct {
	doing string
	err   error
	fresh bool // the connection could not be opened
}

// Error returns the failed operation and its cause.
func (e *connectionError) Error() string { return e.doing + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *connectionError) Unwrap() error { return e.err }

// A conflictError means that a write conflicted with other writes in every try.
type conflictError struct {
	tries int
	err   error
}

// Error returns the number of tries and the last conflict.
func (e *conflictError) Error() string {
	return fmt.Sprintf("the write conflicted with other writes %d times: %v", e.tries, e.err)
}

// Unwrap returns the last conflict.
func (e *conflictError) Unwrap() error { return e.err }

// The SQLSTATE codes of server errors that this package handles.
const (
	codeInvalidValue  = "22023"
	codeUnique        = "23505"
	codeReadOnly      = "25006" // the server is a standby
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeFull          = "53100"
	codeLockTimeout   = "55P03"
	codeCanceled      = "57014" // by the server's own time limit, or by an administrator
	codeNoStatement   = "26000" // the connection no longer has a prepared statement
	codePlanChanged   = "0A000" // a prepared statement now has other columns
)

// codeOf returns the SQLSTATE of a server error, or "" for other errors.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// IsUnavailable reports whether a later try may succeed. This is the case for errors of the server,
// the network or the lock of the database, and for ErrUnknown.
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
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57P0"),
		strings.HasPrefix(code, "58"): // 58: the server cannot use its files
		return true
	case code == codeNoStatement, isPlanChanged(err): // another connection has no such statement
		return true
	default:
		return code == codeReadOnly || code == codeLockTimeout || code == codeCanceled || isConflict(code)
	}
}

// isPlanChanged reports whether a prepared statement now has other columns. Its code also means that the
// server does not support something, so the function that has failed decides: messages are translated.
func isPlanChanged(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == codePlanChanged && e.Routine == "RevalidateCachedQuery"
}

// IsDuplicate reports whether err means that a row with the same key exists.
func IsDuplicate(err error) bool { return codeOf(err) == codeUnique }

// IsFull reports whether err means that the server's disk is full.
func IsFull(err error) bool { return codeOf(err) == codeFull }

// isConflict reports whether a code means a conflict with another transaction.
func isConflict(code string) bool { return code == codeSerialization || code == codeDeadlock }

// failed converts the error of a query on c. It returns ctx's error if ctx has ended, and a
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
