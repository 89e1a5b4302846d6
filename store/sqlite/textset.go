package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// A TextSet is a set of texts in a file, so that it needs little memory for any number of texts. It
// belongs to one goroutine.
type TextSet struct {
	db       *sql.DB
	tx       *sql.Tx
	add, has *sql.Stmt
}

// NewTextSet creates an empty set in a new file at path. Its user removes the file.
func NewTextSet(ctx context.Context, path string) (s *TextSet, err error) {
	s = &TextSet{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("create a set: %w", err), s.Close())
		}
	}()
	if s.db, err = sql.Open("sqlite", dsn(path, "&_pragma=synchronous(OFF)")); err != nil {
		return s, err
	}
	s.db.SetMaxOpenConns(1)
	// One transaction is used and never committed, because the file is not read later.
	for _, pragma := range []string{`PRAGMA journal_mode(OFF)`, `CREATE TABLE texts (text TEXT PRIMARY KEY) WITHOUT ROWID`} {
		if _, err := s.db.ExecContext(ctx, pragma); err != nil {
			return s, err
		}
	}
	if s.tx, err = s.db.BeginTx(ctx, nil); err != nil {
		return s, err
	}
	if s.add, err = s.tx.PrepareContext(ctx, `INSERT OR IGNORE INTO texts VALUES (?)`); err != nil {
		return s, err
	}
	s.has, err = s.tx.PrepareContext(ctx, `SELECT EXISTS (SELECT 1 FROM texts WHERE text = ?)`)
	return s, err
}

// Add adds a text.
func (s *TextSet) Add(ctx context.Context, text string) error {
	_, err := s.add.ExecContext(ctx, text)
	return err
}

// Has reports whether a text was added.
func (s *TextSet) Has(ctx context.Context, text string) (found bool, err error) {
	err = s.has.QueryRowContext(ctx, text).Scan(&found)
	return found, err
}

// Close closes the file.
func (s *TextSet) Close() (err error) {
	if s.tx != nil {
		err = s.tx.Rollback()
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}
