package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// CopyRows creates a database with the tables of template and the rows of another database, as they
// are at this moment. Clone cannot do that with a database that a program has open. The new database is
// dropped when the test ends. CopyRows makes no assertion, so that any goroutine may call it.
func CopyRows(t testing.TB, template, from, name string) (err error) {
	server := os.Getenv(Variable)
	if err := exec(server, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return err
	}
	t.Cleanup(func() { run(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	source, err := pgx.Connect(ctx, Named(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(ctx)) }() // which ends the transaction
	target, err := pgx.Connect(ctx, Named(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close(ctx)) }()
	if _, err := source.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return err
	}
	// The rows satisfy the foreign keys, whatever the order of the tables.
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
	// The next row of a table follows the newest one that it ever had.
	states, err := column(ctx, source, `SELECT format('SELECT setval(%L, %s, %L)', quote_ident(sequencename),
		coalesce(last_value, 1), last_value IS NOT NULL) FROM pg_sequences WHERE schemaname = current_schema()`)
	if err != nil || len(states) == 0 {
		return err
	}
	_, err = target.Exec(ctx, strings.Join(states, "; "))
	return err
}

// column returns the rows of a query that has one column.
func column(ctx context.Context, c *pgx.Conn, query string) ([]string, error) {
	rows, err := c.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
