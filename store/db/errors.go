package db

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"journeyman/store/gate"
	"journeyman/store/postgres"
	"journeyman/store/sqlite"
)

// A Kind is the sort of failure that an Error reports.
type Kind int

// The kinds of failures a caller may be told about.
const (
	Invalid         Kind = iota + 1 // a value breaks a rule; Details lists the fields
	Unauthorized                    // no valid credential
	PaymentRequired                 // the organization's credit cap is reached
	Forbidden                       // the caller may not see or change it
	NotFound                        // it does not exist
	Conflict                        // the state of the record does not permit it
	TooLarge                        // a size limit
	Mismatch                        // an idempotency key used for another request
	Busy                            // a queue or the disk is full: a later attempt may succeed
	Limited                         // too many requests: an attempt after RetryAfter may succeed
	Damaged                         // the database is damaged: the operator must act first
	Stale                           // the record has changed since the caller read it
	Full                            // the organization stores as much as it may
	Upstream                        // the model's provider refuses the request: another attempt fails, too
)

// An Error is a failure its caller may be told about. Message and Details are shown unchanged,
// so they hold no SQL, no paths and no secrets. Any other error is internal: it is logged, and the
// caller learns only that there was an error.
type Error struct {
	Kind    Kind
	Code    string // short and stable, for programs; '' for the code of the kind
	Message string
	Details []Detail // every invalid field, not the first

	RetryAfter time.Duration // of a Limited error, and of a Busy one that lasts longer than a second
	Cause      error         // for the log; clients do not see it
}

// CodeStorage is the code of errors that come from the disk or from another limit of the
// machine.
const CodeStorage = "storage"

// A Detail is one invalid field.
type Detail struct {
	Path    string `json:"path"` // of the field in the body or query, such as "when.date"
	Message string `json:"message"`
}

// Error returns the message and, for the log, the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an Error of a kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// IsKind reports whether err is an Error of that kind.
func IsKind(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// Fields collects invalid fields, so that the caller learns all of them at once.
type Fields []Detail

// Add adds the message that the field at path breaks a rule.
func (f *Fields) Add(path, format string, args ...any) {
	*f = append(*f, Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Check adds the message unless ok is true.
func (f *Fields) Check(ok bool, path, format string, args ...any) {
	if !ok {
		f.Add(path, format, args...)
	}
}

// Err returns nil without invalid fields, and an Invalid error that lists them otherwise.
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

// Unavailable returns a Busy error if the disk or the machine caused err, because a later attempt
// may succeed. If the database is damaged, it returns a Damaged error. It returns any other err
// unchanged.
func Unavailable(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if sqlite.IsDamage(err) {
		return &Error{Kind: Damaged, Code: "storage_damaged", Message: damageMessage, Cause: err}
	}
	if sqlite.IsFull(err) {
		return DiskFullError(err)
	}
	if postgres.IsUnavailable(err) {
		return &Error{Kind: Busy, Code: CodeStorage, Message: serverMessage(err), Cause: err}
	}
	if !sqlite.IsUnavailable(err) {
		return err
	}
	if sqlite.IsOutOfFiles(err) {
		return &Error{Kind: Busy, Code: CodeStorage, Cause: err,
			Message: "the server has reached its limit of open files: try again later"}
	}
	return &Error{Kind: Busy, Code: CodeStorage, Message: "the data folder cannot be written now", Cause: err}
}

// serverMessage returns the message for clients about a failure of the database server.
func serverMessage(err error) string {
	switch {
	case errors.Is(err, postgres.ErrUnknown):
		return "the connection to the database broke during the commit: the request may have been carried out. " +
			"Repeat it with its Idempotency-Key, or check its result before you repeat it"
	case postgres.IsFull(err):
		return "the disk of the database server is full: it takes no new work until there is room again"
	}
	return "the database server cannot be used now: try again later"
}

// IsNotFound reports whether err says that something does not exist.
func IsNotFound(err error) bool { return IsKind(err, NotFound) || errors.Is(err, sql.ErrNoRows) }

// damageMessage is the message for clients. The log, the page System and /readyz have the details.
const damageMessage = "the server's database is damaged: its operator has to restore a backup"

// diskFullMessage is the message for clients, below the reserve and after a failed write.
const diskFullMessage = "the server's disk is full: it takes no new work until there is room again"

// DiskFullError returns the error of a full disk. cause is for the log and may be nil.
func DiskFullError(cause error) *Error {
	e := ReadOnlyError(CodeStorage, diskFullMessage)
	e.Cause = cause
	return e
}

// ReadOnlyError returns the error of a store that takes no writes. A later attempt may succeed. The
// code is short and stable, for programs; the message is for people.
func ReadOnlyError(code, message string) *Error {
	return &Error{Kind: Busy, Code: code, Message: message, RetryAfter: readOnlyRetry}
}

// readOnlyRetry is the pause after which clients of a server that takes no writes try again.
// Common client libraries ignore a pause of more than a minute.
const readOnlyRetry = 30 * time.Second

// IsMaintenance reports whether err is the refusal of a server in maintenance.
func IsMaintenance(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == gate.CodeMaintenance
}
