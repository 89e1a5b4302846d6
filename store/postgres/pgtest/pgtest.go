// Package pgtest creates a separate PostgreSQL database for each test.
//
// The tests need a server, whose URL is in JOURNEYMAN_TEST_DATABASE. Without it they are skipped.
// The script .ci/postgres runs a command with such a server.
package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for Open
)

// Variable is the name of the environment variable with the URL of a server. Its user must be
// allowed to create databases.
const Variable = "JOURNEYMAN_TEST_DATABASE"

// URL returns the URL of a new, empty database. It is dropped when the test ends. URL skips the test
// if there is no server.
func URL(t testing.TB) string {
	t.Helper()
	address := os.Getenv(Variable)
	if address == "" {
		t.Skipf("%s is not set: .ci/postgres runs a command with a server", Variable)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s is not a URL", Variable) // the error would show a password
	}
	name := "test_" + strings.ToLower(rand.Text())
	// Not template1: it may contain additional objects or have connected users.
	run(t, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { run(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// server returns the connections on which all tests of this process create and drop databases. A new
// connection costs a server about as much as a new database. They end with the process.
var server = sync.OnceValues(func() (*sql.DB, error) { return sql.Open("pgx", os.Getenv(Variable)) })

// run runs a statement on the server, and fails the test if the statement fails.
func run(t testing.TB, statement string) {
	t.Helper()
	if err := execute(statement); err != nil {
		t.Fatal(err)
	}
}

// execute runs a statement on the server.
func execute(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // cleanups have no test context
	defer cancel()
	db, err := server()
	if err == nil {
		_, err = db.ExecContext(ctx, statement)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// Named returns the URL of a database on the server.
func Named(name string) string {
	u, err := url.Parse(os.Getenv(Variable))
	if err != nil {
		return "" // store.Open refuses it
	}
	u.Path = "/" + name
	return u.String()
}

// Exists reports whether the server has a database with that name.
func Exists(name string) (found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := server()
	if err != nil {
		return false // the caller gets the error when it opens the database
	}
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&found)
	return found && err == nil
}

// Clone creates a copy of a database without any connections. The copy is dropped when the test
// ends.
func Clone(t testing.TB, from, name string) {
	t.Helper()
	run(t, "CREATE DATABASE "+name+" TEMPLATE "+from)
	t.Cleanup(func() { run(t, "DROP DATABASE "+name+" WITH (FORCE)") })
}

// Once creates a database and calls fill with its URL, unless the server has the database already.
// Several processes may call it at once.
func Once(name string, fill func(url string) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, os.Getenv(Variable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }() // also releases the lock
	if _, err := c.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, 0))`, name); err != nil {
		return err
	}
	var found bool
	err = c.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&found)
	if err != nil || found {
		return err
	}
	// The database gets its name only when it is complete.
	draft := name + "_draft"
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + draft + " WITH (FORCE)",
		"CREATE DATABASE " + draft + " TEMPLATE template0"} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := fill(Named(draft)); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name)
	return err
}

// Open opens a database on the server for a test, in addition to its user. It is closed when the
// test ends.
func Open(t testing.TB, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", Named(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
