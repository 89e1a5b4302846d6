package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

// migrations bring an older database to the schema: migrations[i] takes version
// i+1 to i+2. The newest version, len(migrations)+1, is what schema.sql describes.
var migrations = []string{}

// migrate makes the database at path the newest version. An older one is copied
// aside first and changed in one transaction; a newer one is refused.
func migrate(ctx context.Context, path, schema string, steps []string) (err error) {
	newest := len(steps) + 1
	db, err := sql.Open("sqlite", dsn(path, "&_txlock=immediate&_pragma=synchronous(FULL)"))
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
	case version == 0:
		return apply(ctx, db, newest, schema)
	}
	aside := fmt.Sprintf("%s.v%d", path, version)
	if err := copyAside(ctx, db, aside); err != nil {
		return fmt.Errorf("copy database to %s before the upgrade: %w", aside, err)
	}
	return apply(ctx, db, newest, strings.Join(steps[version-1:], ";\n"))
}

// copyAside keeps an existing copy: it is older and so safer.
func copyAside(ctx context.Context, db *sql.DB, aside string) error {
	if _, err := os.Stat(aside); err == nil {
		return nil
	}
	tmp := aside + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, aside)
}

func apply(ctx context.Context, db *sql.DB, version int, script string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("upgrade database: %w", err)
	}
	_, err = tx.ExecContext(ctx, script)
	if err == nil {
		_, err = tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, version))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("bring database to version %d: %w", version, err), tx.Rollback())
	}
	return nil
}
