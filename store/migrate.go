package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// migrations bring an older database to the schema: migrations[i] takes version
// i+1 to i+2. The newest version, len(migrations)+1, is what schema.sql describes.
var migrations = []string{}

// migrate makes the database at path the newest version. An older one is copied
// aside first and changed in one transaction; a newer one is refused.
func migrate(ctx context.Context, path, schema string, steps []string) (err error) {
	newest := len(steps) + 1
	if err := createPrivate(path); err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	// Foreign keys are off, so that a step may drop a table that others refer to
	// and make it anew; apply looks for broken ones.
	db, err := sql.Open("sqlite", dsn(path, "&_txlock=immediate&_pragma=synchronous(FULL)&_pragma=foreign_keys(0)"))
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var version int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	switch {
	case version == newest:
		return nil
	case version > newest:
		return fmt.Errorf("the database is of version %d and this program knows versions up to %d: use a newer program", version, newest)
	case version < 0:
		return fmt.Errorf("the database has the impossible version %d", version)
	case version == 0:
		return apply(ctx, db, newest, []string{schema})
	}
	aside := fmt.Sprintf("%s.v%d", path, version)
	if err := copyAside(ctx, db, aside); err != nil {
		return fmt.Errorf("copy database to %s before the upgrade: %w", aside, err)
	}
	return apply(ctx, db, newest, steps[version-1:])
}

// createPrivate makes an empty file that only its owner reads, whatever the umask:
// SQLite gives the files beside a database its mode.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// copyAside keeps an existing copy: it is older and so safer.
func copyAside(ctx context.Context, db *sql.DB, aside string) error {
	if _, err := os.Stat(aside); err == nil {
		return nil
	}
	return copyDatabase(ctx, db, aside)
}

// copyDatabase writes a copy of db as it is now to a file, durably and whole or
// not at all.
func copyDatabase(ctx context.Context, db *sql.DB, path string) (err error) {
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, tmp); err != nil {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func apply(ctx context.Context, db *sql.DB, version int, scripts []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("upgrade database: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, script := range append(slices.Clone(scripts), fmt.Sprintf(`PRAGMA user_version = %d`, version)) {
		if _, err := tx.ExecContext(ctx, script); err != nil {
			return fmt.Errorf("bring database to version %d: %w", version, err)
		}
	}
	var table string
	err = tx.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check`).Scan(&table)
	if err == nil {
		return fmt.Errorf("bring database to version %d: a row of %s refers to nothing", version, table)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("bring database to version %d: %w", version, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("bring database to version %d: %w", version, err)
	}
	return nil
}
