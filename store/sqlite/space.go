package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"journeyman/store/engine"
)

// Space is the size of a database file and of its free pages, in bytes.
type Space struct {
	File int64 // the database file, without the log beside it
	Free int64 // free pages of the file
}

const selectSpace = `SELECT page_count * page_size, freelist_count * page_size
	FROM pragma_page_count, pragma_page_size, pragma_freelist_count`

// Space returns the size of the file and of its free pages. It reads only the first page.
func (db *DB) Space(ctx context.Context) (sp Space, err error) {
	db.switching.RLock()
	defer db.switching.RUnlock()
	err = db.readers.row(ctx, selectSpace, &sp.File, &sp.Free)
	return sp, db.Note(err)
}

// SpaceOf is Space for the database file at path. Other processes may have it open.
func SpaceOf(ctx context.Context, path string) (sp Space, err error) {
	err = withDatabase(path, reading, func(c *sql.DB) error {
		return c.QueryRowContext(ctx, selectSpace).Scan(&sp.File, &sp.Free)
	})
	return sp, err
}

// Steps in which free pages are returned. Their size follows the time that one takes, because
// all writes wait for it. The statements are few: each is prepared once and kept.
const (
	smallStep  = 16
	mediumStep = 128
	largeStep  = 1024
	stepTime   = 8 * time.Millisecond
)

// ReturnSpace makes the file smaller by its free pages, except for keep bytes that the next
// writes can use. It works in short transactions with pauses, until that is done or ctx ends, and
// returns the number of bytes.
func (db *DB) ReturnSpace(ctx context.Context, keep int64) (returned int64, err error) {
	step := smallStep
	for {
		sp, err := db.Space(ctx)
		if err != nil || sp.Free <= keep || ctx.Err() != nil {
			return returned, errors.Join(err, ctx.Err())
		}
		begun := time.Now()
		err = db.Write(ctx, engine.Serializable, func(tx engine.Tx) error { return returnPages(tx, step) })
		if err != nil {
			return returned, fmt.Errorf("return free pages: %w", err)
		}
		took := time.Since(begun)
		switch {
		case took > stepTime:
			step = max(step/8, smallStep)
		case took < stepTime/4:
			step = min(step*8, largeStep)
		}
		after, err := db.Space(ctx)
		if err != nil || after.File >= sp.File && after.Free >= sp.Free {
			return returned, err // nothing more can be moved
		}
		returned += sp.File - after.File
		if err := engine.Pause(ctx, took); err != nil { // other writes come first
			return returned, err
		}
	}
}

// returnPages moves pages from the end of the file into its free ones.
func returnPages(tx engine.Tx, pages int) error {
	rows, err := tx.Query(context.Background(), fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, pages))
	if err != nil {
		return err
	}
	for rows.Next() { // each row is a page that was moved
		continue
	}
	return tx.Note(errors.Join(rows.Err(), rows.Close()))
}

// Checkpoint copies the write-ahead log into the database file and makes both as small as they can
// be. If a reader needs the log, the log stays, and Checkpoint returns no error.
func (db *DB) Checkpoint(ctx context.Context) error {
	return db.Note(withDatabase(db.path, reading+"&_pragma=synchronous(FULL)", func(c *sql.DB) error {
		// First without a lock, so that writers wait only for the rest.
		for _, mode := range []string{"PASSIVE", "TRUNCATE"} {
			var busy, log, done int
			if _, err := c.ExecContext(ctx, `PRAGMA busy_timeout = 200`); err != nil {
				return fmt.Errorf("open the database for a checkpoint: %w", err)
			}
			err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(`+mode+`)`).Scan(&busy, &log, &done)
			if err != nil {
				return fmt.Errorf("copy the log into the database: %w", err)
			}
		}
		return nil
	}))
}

// TableSizes returns the bytes of each table with its indexes. It reads the whole file, on a
// connection of its own, with pauses between the tables.
func (db *DB) TableSizes(ctx context.Context) (sizes map[string]int64, err error) {
	sizes = map[string]int64{}
	err = withDatabase(db.path, reading, func(c *sql.DB) (err error) {
		tables, err := tablesOfTrees(ctx, c)
		if err != nil {
			return err
		}
		// One query measures one tree, because the log of the database grows as long as a query
		// lasts. The statement is prepared once, because that takes longer than measuring a small
		// tree.
		measure, err := c.PrepareContext(ctx, `SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = ?`)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, measure.Close()) }()
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			begun := time.Now()
			var size int64
			if err := measure.QueryRowContext(ctx, name).Scan(&size); err != nil {
				return fmt.Errorf("measure %s: %w", name, err)
			}
			sizes[tables[name]] += size
			if err := pauseAfter(ctx, time.Since(begun)); err != nil {
				return err
			}
		}
		return nil
	})
	return sizes, db.Note(err)
}

// tablesOfTrees returns the tables to which the trees of a database belong, by the name of the tree: a
// table or an index.
func tablesOfTrees(ctx context.Context, c *sql.DB) (map[string]string, error) {
	rows, err := c.QueryContext(ctx, `SELECT name, tbl_name FROM sqlite_schema WHERE rootpage > 0`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	const schema = "sqlite_schema" // its tree is not listed in itself
	tables := map[string]string{schema: schema}
	for rows.Next() {
		var name, table string
		if err := rows.Scan(&name, &table); err != nil {
			return nil, err
		}
		tables[name] = table
	}
	return tables, rows.Err()
}

// Rewrite replaces the database file at path by one without free pages. Nobody else may have the file
// open. After a crash, the file is either the old one or the new one. It needs free space on the disk for
// the new file.
func Rewrite(ctx context.Context, path string) error {
	tmp := path + ".vacuum.tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err := withDatabase(path, "&_pragma=synchronous(FULL)", func(c *sql.DB) error {
		if _, err := c.ExecContext(ctx, `VACUUM INTO ?`, tmp); err != nil {
			return fmt.Errorf("write the database anew: %w", err)
		}
		// The log must be empty, because its pages do not belong to the new file.
		var busy, log, done int
		err := c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &done)
		if err == nil && busy != 0 {
			err = errors.New("another program has the database open")
		}
		return err
	})
	if err == nil {
		err = Check(ctx, tmp) // the old file will be gone
	}
	if err == nil {
		err = syncPrivate(tmp) // after Check, which writes the mode of the journal
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	// Closing has removed the log. If it has not, the rename must not happen.
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Remove(tmp + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// syncPrivate puts a file on the disk, readable by its owner only.
func syncPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}
