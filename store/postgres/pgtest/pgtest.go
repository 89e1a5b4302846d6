// Package pgtest gives each test a PostgreSQL database of its own.
//
// The tests need a server, which JOURNEYMAN_TEST_DATABASE names; without it they are skipped. The
// script .ci/postgres runs a command with such a server.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Variable is the name of the environment variable with the URL of a server. Its user must be
// allowed to create databases.
const Variable = "JOURNEYMAN_TEST_DATABASE"

// URL returns the URL of a new, empty database. It is dropped when the test ends. URL skips the test
// if there is no server.
func URL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Skipf("%s is not set: .ci/postgres runs a command with a server", Variable)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", Variable) // the error would show a password
	}
	name := "test_" + strings.ToLower(rand.Text())
	// Not template1: somebody may have added something to it, or be connected to it.
	run(t, server, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { run(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// run carries out a statement on the server.
func run(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended in a cleanup
	defer cancel()
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(ctx, statement)
	if closing := c.Close(ctx); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
