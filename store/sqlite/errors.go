package sqlite

import (
	"errors"
	"syscall"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// codeOf returns the extended result code of an error of SQLite, and 0 for other errors.
func codeOf(err error) int {
	if e, ok := errors.AsType[*engineError](err); ok {
		return int(e.code)
	}
	if e, ok := errors.AsType[*modernc.Error](err); ok {
		return e.Code()
	}
	return 0
}

// IsUnavailable reports whether err comes from the disk or from another limit of the machine, so
// that a later attempt may succeed.
func IsUnavailable(err error) bool {
	if code := codeOf(err); code != 0 {
		switch code & 0xff { // the primary code of an extended one
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOMEM,
			sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
			return true
		}
		return false
	}
	return isNoRoom(err) || errors.Is(err, syscall.EIO) || IsOutOfFiles(err)
}

// IsOutOfFiles reports whether err means that the process or the machine has no file descriptor
// left.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsFull reports whether err means that the disk, or a quota on it, has no room.
func IsFull(err error) bool {
	if code := codeOf(err); code != 0 {
		return code&0xff == sqlite3.SQLITE_FULL
	}
	return isNoRoom(err)
}

func isNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
