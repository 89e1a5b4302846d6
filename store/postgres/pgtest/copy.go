package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CopyRows creates a database with the tables of template and the current rows of another database.
// Clone cannot copy a database that is open. The new database is dropped when the test ends.
// CopyRows makes no assertion, so any goroutine may call it.
func CopyRows(t testing.TB, template, from, name string) (err error) {
	if err := execute("CREATE DATABASE " + name + " TEMPLATE " + template); err != nil {
		return err
	}
	t.Cleanup(func() { run(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	source, err := pgx.Connect(ctx, Named(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(ctx)) }() // also ends the transaction
	target, err := pgx.Connect(ctx, Named(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close(ctx)) }()
	if _, err := source.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return err
	}
	// The rows satisfy the foreign keys, but the tables are copied in any order.
	if _, err := target.Exec(ctx, "BEGIN; SET LOCAL session_replication_role = replica"); err != nil {
		return err
	}
	if err := copyTables(ctx, source, target); err != nil {
		return fmt.Errorf("copy the database %s: %w", from, err)
	}
	_, err = target.Exec(ctx, "COMMIT")
	return err
}

// copyTables replaces the rows of all tables of target by those of source.
func copyTables(ctx context.Context, source, target *pgx.Conn) error {
	tables, err := column(ctx, source, `SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r'
		AND relnamespace = current_schema()::regnamespace`)
	if err != nil {
		return err
	}
	if _, err := target.Exec(ctx, "TRUNCATE "+strings.Join(tables, ", ")); err != nil {
		return err
	}
	for _, table := range tables {
		var rows bytes.Buffer
		if _, err := source.PgConn().CopyTo(ctx, &rows, "COPY "+table+" TO STDOUT (FORMAT binary)"); err != nil {
			return err
		}
		if _, err := target.PgConn().CopyFrom(ctx, &rows, "COPY "+table+" FROM STDIN (FORMAT binary)"); err != nil {
			return err
		}
	}
	// Copy the state of the sequences, so that new rows never reuse a number.
	states, err := column(ctx, source, `SELECT format('SELECT setval(%L, %s, %L)', quote_ident(sequencename),
		coalesce(last_value, 1), last_value IS NOT NULL) FROM pg_sequences WHERE schemaname = current_schema()`)
	if err != nil || len(states) == 0 {
		return err
	}
	_, err = target.Exec(ctx, strings.Join(states, "; "))
	return err
}

// column returns the rows of a query with one column.
func column(ctx context.Context, c *pgx.Conn, query string) ([]string, error) {
	rows, err := c.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
