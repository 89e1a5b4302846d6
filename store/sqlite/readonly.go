package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// This file opens a database on a full disk. Even to read, SQLite creates the index of the
// write-ahead log in a file of 32 KiB. Connections that may not write this file build the index in
// memory.

// ErrReadOnly means that the database is open for reading only.
var ErrReadOnly = errors.New("the database is open for reading only")

// IsNoRoomToOpen reports whether err means that a database could not be opened because its disk
// has no room.
func IsNoRoomToOpen(err error) bool {
	return IsFull(err) || codeOf(err) == sqlite3.SQLITE_IOERR_SHMSIZE
}

// OpenReadOnly opens the existing database file at path for reading, and writes no byte. No process
// may have it open. It refuses a database of another version than the newest, because the upgrade
// needs room. Reopen ends the state.
func OpenReadOnly(ctx context.Context, path string, newest int) (*DB, error) {
	db := newDB(path)
	// SQLite opens both files beside the database and reads nothing from empty ones. An empty file
	// takes no space.
	err := errors.Join(createPrivate(path+"-wal"), createPrivate(path+"-shm"))
	if err != nil {
		return nil, err
	}
	db.readers = newReaders(unwritten(path))
	var version int
	err = db.readers.row(ctx, `PRAGMA user_version`, &version)
	if err == nil && version != newest {
		err = fmt.Errorf("the database has version %d and this program needs version %d: the upgrade needs about "+
			"twice the size of the database. Nothing was changed: make room on the disk and start again", version, newest)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// unwritten returns the connection string of readers that write no byte.
func unwritten(path string) string {
	return uri(path) + "?mode=ro&readonly_shm=1&_pragma=busy_timeout(5000)&_pragma=query_only(1)" +
		"&_pragma=temp_store(MEMORY)"
}

// switchTime bounds the wait for queries that run while the readers are replaced. New queries wait
// for it.
const switchTime = 2 * time.Second

// Reopen opens a database for writing that OpenReadOnly has opened. After an error it stays open
// for reading only.
func (db *DB) Reopen(ctx context.Context, schema string, migrations []string) error {
	if db.writer.Load() != nil {
		return nil
	}
	// This must not be Lock: queries that wait for it could hold connections that an earlier query
	// needs.
	if !db.switching.TryLock() {
		return errors.New("queries are running: try again")
	}
	defer db.switching.Unlock()
	// SQLite shares the index of the log between the connections of a process, so the readers that
	// may not write it must be closed first.
	old := db.readers
	err := old.Close()
	if err == nil {
		err = errors.New("long queries are running: try again")
	}
	for end := time.Now().Add(switchTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if old.connections() == 0 {
			err = db.openWhole(ctx, schema, migrations)
			break
		}
	}
	if err == nil {
		return nil
	}
	if w := db.writer.Swap(nil); w != nil {
		err = errors.Join(err, w.close())
	}
	db.readers = newReaders(unwritten(db.path))
	return err
}
