package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Migrate upgrades the database file at path to the newest version, which schema describes. Its
// number is len(migrations)+1. migrations[i] upgrades version i+1 to i+2. PRAGMA user_version of a
// database holds its version.
//
// A file that does not exist is created from schema. An older database is copied to path.vN
// first, then upgraded in one transaction. A database that is newer than the program is
// refused.
func Migrate(ctx context.Context, path, schema string, migrations []string) error {
	if err := createPrivate(path); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if version, err := versionOf(ctx, path); err != nil || version == len(migrations)+1 {
		return err
	}
	// Foreign keys are not enforced, so that a migration can replace a table to
	// which others refer. apply looks for broken references at the end.
	const options = "&_txlock=immediate&_pragma=synchronous(FULL)&_pragma=foreign_keys(0)"
	return withDatabase(path, options, func(c *sql.DB) error {
		return migrate(ctx, c, path, schema, migrations)
	})
}

// versionOf returns the version of the database file at path, 0 for an empty file. It is much quicker
// than a query of a table, because SQLite does not read the schema.
func versionOf(ctx context.Context, path string) (version int, err error) {
	c, err := sql.Open("sqlite", uri(path)+"?_pragma=busy_timeout(5000)&_error_rc=1")
	if err != nil {
		return 0, fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return 0, fmt.Errorf("read database version: %w", err)
	}
	return version, nil
}

func migrate(ctx context.Context, c *sql.DB, path, schema string, migrations []string) error {
	newest := len(migrations) + 1
	var version int
	if err := c.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return fmt.Errorf("read database version: %w", err)
	}
	switch {
	case version == newest:
		return nil
	case version > newest:
		return fmt.Errorf("the database has version %d and this program knows versions up to %d: use a newer program",
			version, newest)
	case version < 0:
		return fmt.Errorf("the database has the impossible version %d", version)
	case version == 0:
		return apply(ctx, c, newest, []string{schema})
	}
	// A copy of an earlier attempt is replaced, because the older program may have written since.
	if err := copyDurably(ctx, c, fmt.Sprintf("%s.v%d", path, version)); err != nil {
		return fmt.Errorf("copy database of version %d before the upgrade: %w", version, roomForUpgrade(err))
	}
	return roomForUpgrade(apply(ctx, c, newest, migrations[version-1:]))
}

// roomForUpgrade adds advice to the error of an upgrade on a full disk.
func roomForUpgrade(err error) error {
	if !IsFull(err) {
		return err
	}
	return fmt.Errorf("the disk is full, and the upgrade needs about twice the size of the database. Nothing was "+
		"changed: make room and start again: %w", err)
}

// createPrivate creates an empty file that only its owner can read, whatever the umask. SQLite uses
// the mode of the database for the files beside it.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// apply runs scripts and sets the version, in one transaction.
func apply(ctx context.Context, c *sql.DB, version int, scripts []string) error {
	tx, err := c.BeginTx(ctx, nil)
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
		return fmt.Errorf("bring database to version %d: a row of %s refers to a row that does not exist",
			version, table)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("bring database to version %d: %w", version, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("bring database to version %d: %w", version, err)
	}
	return nil
}
