package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	modernc "modernc.org/sqlite"
	"modernc.org/sqlite/vfs"
)

const (
	copyStep = 16   // pages that are copied at once
	pageSize = 4096 // bytes, as SQLite creates databases

	// maxCopyWAL is the size of the write-ahead log, in bytes, above which a copy or a check no longer
	// pauses. The log cannot be shortened before it ends.
	maxCopyWAL = 128 << 20
)

// CopyTo writes a copy of the present database to a new file. It uses a connection of its own, so
// that writes continue meanwhile. The copy has the same pages, so a check of the copy is a check of
// the database. The file is not synced to disk.
func (db *DB) CopyTo(ctx context.Context, path string, pace *Pace) error {
	return db.Note(withDatabase(db.path, "", func(c *sql.DB) (err error) {
		conn, err := c.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		// The read transaction fixes the state that is copied. Without it, each other write would
		// restart the copy.
		tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() {
			if end := tx.Rollback(); err == nil && !errors.Is(end, sql.ErrTxDone) {
				err = end
			}
			if err == nil {
				// This moves the pages of the log into the database, so that no commit has to
				// wait for it.
				_, err = conn.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
			}
		}()
		if _, err := tx.ExecContext(ctx, `SELECT count(*) FROM sqlite_schema`); err != nil {
			return err
		}
		return conn.Raw(func(driver any) error { return db.copyPages(ctx, driver, path, pace) })
	}))
}

// copyPages copies all pages that the driver's connection sees.
func (db *DB) copyPages(ctx context.Context, driver any, path string, pace *Pace) (err error) {
	source, ok := driver.(interface {
		NewBackup(to string) (*modernc.Backup, error)
	})
	if !ok {
		return errors.New("the database driver makes no copies")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := NewFlusher(f)
	b, err := source.NewBackup("file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_error_rc=1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Finish()) }()
	for more := true; more; {
		if more, err = b.Step(copyStep); err != nil {
			return err
		}
		if wal, err := os.Stat(db.path + "-wal"); err == nil && wal.Size() > maxCopyWAL {
			pace = nil
		}
		out.flush(int64(b.PageCount()-b.Remaining()) * pageSize)
		if err := errors.Join(pace.Pause(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// Check returns an error if the database file at path is damaged, or has no
// version of a schema.
func Check(ctx context.Context, path string) error {
	return withDatabase(path, "", func(c *sql.DB) error { return check(ctx, c) })
}

// CheckCopy is Check with pauses. No process may write to the file.
func CheckCopy(ctx context.Context, path string, pace *Pace) (err error) {
	name, files, err := vfs.New(pacedFile{path, pace})
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	// Without immutable, SQLite would need the index of the log for a database in WAL mode.
	c, err := sql.Open("sqlite", "file:"+copyName+"?immutable=1&_error_rc=1&vfs="+name)
	if err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }() // runs before files.Close, which needs c closed
	c.SetMaxOpenConns(1)
	return check(ctx, c)
}

// copyName is the name of the only file that a pacedFile holds.
const copyName = "copy.db"

// A pacedFile is a file system with one file, whose reads pause.
type pacedFile struct {
	path string
	pace *Pace
}

// Open opens the one file.
func (p pacedFile) Open(name string) (fs.File, error) {
	if name != copyName {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := os.Open(p.path)
	if err != nil {
		return nil, err
	}
	return &pacedHandle{f, p.pace}, nil
}

type pacedHandle struct {
	*os.File
	pace *Pace
}

// Read pauses and reads.
func (h *pacedHandle) Read(b []byte) (int, error) {
	if err := h.pace.Pause(); err != nil {
		return 0, err
	}
	return h.File.Read(b)
}

func check(ctx context.Context, c *sql.DB) error {
	var verdict string
	if err := c.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrDamaged, verdict)
	}
	var version int
	if err := c.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if version < 1 { // to SQLite, an empty file is a valid database
		return errors.New("the database was not created by this program: its schema has no version")
	}
	return nil
}

// withDatabase opens the database file at path with one connection, runs fn and
// closes the database.
func withDatabase(path, options string, fn func(c *sql.DB) error) (err error) {
	c, err := sql.Open("sqlite", dsn(path, options))
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.SetMaxOpenConns(1)
	return fn(c)
}

// copyDurably writes a copy of c to a file that is complete and on disk, or that
// does not exist.
func copyDurably(ctx context.Context, c *sql.DB, path string) error {
	tmp := filepath.Join(filepath.Dir(path), ".journeyman-"+filepath.Base(path)+".tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := c.ExecContext(ctx, `VACUUM INTO ?`, tmp); err != nil {
		return errors.Join(err, os.RemoveAll(tmp)) // the disk may be full and need the space
	}
	if err := syncPrivate(tmp); err != nil {
		return err
	}
	// The name comes after the sync: a file with this name is complete.
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a folder durable: a new file's name is on disk only
// once its folder is.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// RowCounts returns the number of rows of each table of the database file at path.
func RowCounts(ctx context.Context, path string) (counts map[string]int64, err error) {
	counts = map[string]int64{}
	err = withDatabase(path, reading, func(c *sql.DB) error {
		tables, err := column[string](c.QueryContext(ctx, allTables))
		for _, table := range tables {
			if err != nil {
				return err
			}
			var n int64
			err = c.QueryRowContext(ctx, `SELECT count(*) FROM "`+strings.ReplaceAll(table, `"`, `""`)+`"`).Scan(&n)
			counts[table] = n
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count rows: %w", err)
	}
	return counts, nil
}

// EachText calls do with each row of a query of one column, from the database file at path.
func EachText(ctx context.Context, path, query string, do func(text string) error) error {
	return withDatabase(path, reading, func(c *sql.DB) error {
		rows, err := c.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			if err := do(text); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// Version returns the version of the schema of the database file at path.
func Version(ctx context.Context, path string) (version int, err error) {
	err = withDatabase(path, reading, func(c *sql.DB) error {
		return c.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	})
	return version, err
}
