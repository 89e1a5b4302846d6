package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// EmptyLog writes the log of a database into the database and removes it. No other process may
// have the database open.
func EmptyLog(ctx context.Context, path string) error {
	err := withDatabase(path, "", func(c *sql.DB) error {
		var mode string
		if err := c.QueryRowContext(ctx, `PRAGMA journal_mode = DELETE`).Scan(&mode); err != nil {
			return err
		}
		if mode != "delete" {
			return fmt.Errorf("the log is in use (mode %s)", mode)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("empty the log of %s: %w", path, err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("empty the log of %s: it is still there", path)
	}
	return nil
}
