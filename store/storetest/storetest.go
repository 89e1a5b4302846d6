// Package storetest opens real stores for tests: a database file in a temporary folder, closed when
// the test ends. It imports store, and the packages that open databases on a server for tests.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/people"
)

// Schema returns the text of schema.sql.
func Schema(t testing.TB) string {
	t.Helper()
	schema, err := readSchema()
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func readSchema() (string, error) {
	root, err := rootFolder()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(filepath.Join(root, "schema.sql"))
	return string(b), err
}

// rootFolder returns the nearest folder above the test that has schema.sql.
func rootFolder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "schema.sql")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("schema.sql is in no folder above the test")
		}
		dir = parent
	}
}

const databaseName = "journeyman.db"

// emptyDatabase returns the database file of a new store. The tables are created once per
// process, because that takes longer than most tests do.
var emptyDatabase = sync.OnceValues(func() (database []byte, err error) {
	schema, err := readSchema()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := store.Open(context.Background(), dir, schema, store.Options{})
	if err != nil {
		return nil, err
	}
	// The last connection that closes moves the write-ahead log into the file.
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, databaseName))
})

// weakMemory is the memory, in KiB, for password hashes in tests. At full cost, hashing would take
// a third of the time of some packages' tests.
const weakMemory = 64

// rareCollections lets the heap grow to five times the live data before it is collected. The heaps of
// tests are small, and collecting them often takes a tenth of the time.
const rareCollections = 400

// Open opens a store in a temporary folder and closes it when the test ends. Unless opt
// says otherwise, passwords are cheap to hash. Commits wait for the disk only in benchmarks. With
// REPEAT_WRITES in the environment, each write runs twice. The database is on a PostgreSQL server if the
// environment names one: see OnServer.
func Open(t testing.TB, opt store.Options) *store.Store {
	t.Helper()
	dir := t.TempDir()
	prepare(t, dir)
	return Reopen(t, dir, opt)
}

// Reopen is Open for a data folder that an earlier Open has created. The store that had it open
// must be closed.
func Reopen(t testing.TB, dir string, opt store.Options) *store.Store {
	t.Helper()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(rareCollections)
	}
	_, measured := t.(*testing.B)
	opt.NoSync = !measured // a benchmark measures what the program does
	opt.PasswordMemory = cmp.Or(opt.PasswordMemory, weakMemory)
	opt.RepeatWrites = opt.RepeatWrites || os.Getenv("REPEAT_WRITES") != ""
	opt.Database = cmp.Or(opt.Database, DatabaseOf(dir))
	s, err := store.Open(t.Context(), dir, Schema(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Eventually polls until ok returns true. It fails the test after three minutes, which are enough even
// on a busy machine. what is the name of the condition.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(3 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the condition was not reached in time: %s", what)
		}
	}
}

// A Log is text that a program writes while a test reads it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends text to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns what has been written until now.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// SideBySide lets at least n parallel tests run at once, unless the flag -parallel names a number. It is
// for packages whose tests wait more than they work, and TestMain calls it before it runs them.
func SideBySide(n int) {
	n = max(n, runtime.GOMAXPROCS(0))
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil { // the command line is read later
		panic(err)
	}
}

// Long skips a test that takes long, unless the environment has LONG. CI runs these
// tests in a section of their own.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("takes long: LONG=1 runs it")
	}
}

// Slow skips a test that takes about a second of processor time, or that waits for several seconds,
// unless the environment has SLOW or LONG. CI sets SLOW in the sections test, race and postgres.
func Slow(t testing.TB) {
	t.Helper()
	if !Slowly() {
		t.Skip("is slow: SLOW=1 runs it")
	}
}

// Slowly reports whether slow tests run. A test that is slow only with all its cases calls it, and
// leaves some of them out.
func Slowly() bool { return os.Getenv("SLOW") != "" || os.Getenv("LONG") != "" }

// Drawn is Rounds with fewer rounds under the race detector, where all rounds would take most of an
// hour. It is for tests whose rounds run the same code.
func Drawn(many, few int) int {
	if Race {
		return min(Rounds(many, few), 4*few)
	}
	return Rounds(many, few)
}

// Rounds returns the number of rounds of a randomized test: few, or many if the environment has
// LONG, as in CI.
func Rounds(many, few int) int {
	if os.Getenv("LONG") == "" {
		return few
	}
	return many
}

// Caller creates a user with an API key in an organization, and returns both. A second call
// with the same address returns the same user.
func Caller(t testing.TB, s *store.Store, organization, email string, role people.Role) (people.Identity, string) {
	t.Helper()
	_, secret, err := s.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "test", Email: email,
		Role:             role,
		OrganizationName: organization})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.People.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return id, secret
}

// CapCredits sets how many credits the caller's organization may spend in a month; nil
// lifts the cap. The caller must be an Owner.
func CapCredits(t testing.TB, s *store.Store, c people.Caller, credits *float64) {
	t.Helper()
	o, _, err := s.People.OrganizationSettings(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	o.MonthlyCreditCap = credits
	if err := s.People.UpdateOrganization(t.Context(), c, o); err != nil {
		t.Fatal(err)
	}
}

// Exec changes the database of an open store directly, for a test of a state that no method of the
// store creates.
func Exec(t testing.TB, s *store.Store, query string, args ...any) {
	t.Helper()
	db := open(t, s.Dir(), "_pragma=busy_timeout(10000)")
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), translated(t, query), args...); err != nil {
		t.Fatal(err)
	}
}
