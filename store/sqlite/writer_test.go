package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/sqlite"
	"journeyman/store/storetest"
)

// schema is what the tests of the engine need.
const schema = `
	CREATE TABLE notes (id TEXT PRIMARY KEY) STRICT;
	CREATE TABLE links (note TEXT NOT NULL REFERENCES notes (id)) STRICT;
	CREATE TABLE log (num INTEGER PRIMARY KEY, organization TEXT NOT NULL, detail TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
	CREATE INDEX log_listed ON log (organization, created_at)`

// open opens a new database in a temporary folder until the test ends.
func open(t testing.TB) *sqlite.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "a.db"), schema)
}

func openAt(t testing.TB, path, schema string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, schema, nil)
	is.New(t).NoErr(err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// texts reads one column of text.
func texts(ctx context.Context, db engine.Querier, query string, args ...any) (list []string, err error) {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// note writes a row that tests look for.
func note(id string) func(tx engine.Tx) error {
	return func(tx engine.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes (id) VALUES (?)`, id)
		return err
	}
}

func notes(t *testing.T, db *sqlite.DB) []string {
	t.Helper()
	ids, err := texts(t.Context(), db, `SELECT id FROM notes ORDER BY id`)
	is.New(t).NoErr(err)
	return ids
}

// hold keeps the writer busy until release is called.
func hold(t *testing.T, db *sqlite.DB) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = db.Write(context.Background(), engine.Serializable, func(engine.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	release = sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	return release
}

// inOneBatch runs the operations in one transaction, in this order, and gives
// their outcomes.
func inOneBatch(t *testing.T, db *sqlite.DB, ops ...func(tx engine.Tx) error) []error {
	t.Helper()
	release := hold(t, db)
	errs := make([]error, len(ops))
	var wg sync.WaitGroup
	for i, op := range ops {
		wg.Go(func() { errs[i] = db.Write(context.Background(), engine.Serializable, op) })
		storetest.Eventually(t, "an operation to be queued", func() bool { return db.Waiting() == i+1 })
	}
	release()
	wg.Wait()
	return errs
}

func TestOperationsOfABatchFailAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	broken := errors.New("broken")
	errs := inOneBatch(t, db,
		note("a"),
		func(tx engine.Tx) error { return errors.Join(note("b")(tx), broken) },
		func(tx engine.Tx) error {
			if err := note("c")(tx); err != nil {
				return err
			}
			panic("boom")
		},
		func(tx engine.Tx) error { return errors.Join(note("d")(tx), note("a")(tx)) }, // a is taken
		note("e"),
	)
	is.NoErr(errs[0])
	is.True(errors.Is(errs[1], broken))
	is.True(strings.Contains(errs[2].Error(), "boom"))
	is.True(errs[3] != nil)
	is.NoErr(errs[4])
	is.Equal(notes(t, db), []string{"a", "e"}) // nothing of a failed operation is left
}

func TestAnswersFollowCommit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	release := hold(t, db)
	answered := make(chan error, 1)
	go func() { answered <- db.Write(context.Background(), engine.Serializable, note("first")) }()
	storetest.Eventually(t, "the first to be queued", func() bool { return db.Waiting() == 1 })
	begun, end := make(chan struct{}), make(chan struct{})
	proceed := sync.OnceFunc(func() { close(end) })
	t.Cleanup(proceed) // a test that fails must not leave the writer waiting
	go func() {
		_ = db.Write(context.Background(), engine.Serializable, func(engine.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	storetest.Eventually(t, "the second to be queued", func() bool { return db.Waiting() == 2 })
	release()
	<-begun // the first has run, in the same transaction
	is.Equal(len(notes(t, db)), 0)
	select {
	case err := <-answered:
		t.Fatalf("answered before COMMIT: %v", err)
	default:
	}
	proceed()
	is.NoErr(<-answered)
	is.Equal(notes(t, db), []string{"first"})
}

// TestLateOperationsJoin has what is submitted while a batch runs be in its
// transaction: one sync of the disk less.
func TestLateOperationsJoin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	before := db.Stats().Commits.Load()
	release := hold(t, db)
	errs := make(chan error, 3)
	for i := range 3 {
		go func() { errs <- db.Write(context.Background(), engine.Serializable, note(fmt.Sprint("late", i))) }()
	}
	storetest.Eventually(t, "operations to wait", func() bool { return db.Waiting() == 3 })
	release()
	for range 3 {
		is.NoErr(<-errs)
	}
	is.Equal(db.Stats().Commits.Load()-before, int64(1))
	is.Equal(notes(t, db), []string{"late0", "late1", "late2"})
}

func TestReadsSeeTheWriteBefore(t *testing.T) {
	t.Parallel()
	db := open(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%d-%d", g, i)
				if err := db.Write(t.Context(), engine.Serializable, note(id)); err != nil {
					t.Error(err)
					return
				}
				got, err := texts(t.Context(), db, `SELECT id FROM notes WHERE id = ?`, id)
				if err != nil || len(got) != 1 {
					t.Errorf("after the write of %s a read found %v, %v", id, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestContextOfAWrite(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(db.Write(ended, engine.Serializable, note("before")), context.Canceled))

	release := hold(t, db)
	waiting, cancel := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() { outcome <- db.Write(waiting, engine.Serializable, note("waiting")) }()
	storetest.Eventually(t, "the write to be queued", func() bool { return db.Waiting() == 1 })
	cancel()
	is.True(errors.Is(<-outcome, context.Canceled)) // at once: the writer is still held
	release()

	running, cancel := context.WithCancel(t.Context())
	is.NoErr(db.Write(running, engine.Serializable, func(tx engine.Tx) error {
		cancel() // once begun it is seen through, and the outcome known
		return note("running")(tx)
	}))
	is.Equal(notes(t, db), []string{"running"})
}

// violate leaves a reference to nothing, which COMMIT refuses.
func violate(tx engine.Tx) error {
	if _, err := tx.Exec(`PRAGMA defer_foreign_keys = 1`); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO links (note) VALUES ('none')`)
	return err
}

func TestBatchFailsAsAWhole(t *testing.T) {
	t.Parallel()
	for name, culprit := range map[string]func(tx engine.Tx) error{
		"at COMMIT": violate,
		"by a statement that ends the transaction": func(tx engine.Tx) error {
			_, err := tx.Exec(`ROLLBACK`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			db := open(t)
			errs := inOneBatch(t, db, note("a"), culprit, func(tx engine.Tx) error {
				return note("b")(tx)
			})
			for _, err := range errs {
				is.True(err != nil) // nobody is told of success
			}
			is.Equal(len(notes(t, db)), 0)
			is.NoErr(db.Write(t.Context(), engine.Serializable, note("c"))) // the next batch is as if nothing had been
			is.Equal(notes(t, db), []string{"c"})
		})
	}
}

func TestCloseWhileWriting(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	db := openAt(t, path, schema)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	var begun atomic.Int64
	for g := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%02d-%06d", g, i)
				if err := db.Write(context.Background(), engine.Serializable, note(id)); err != nil {
					return
				}
				begun.Add(1)
				mu.Lock()
				acknowledged = append(acknowledged, id)
				mu.Unlock()
			}
		})
	}
	storetest.Eventually(t, "some writes", func() bool { return begun.Load() > 100 })
	is.NoErr(db.Close())
	wg.Wait()
	is.True(db.Write(t.Context(), engine.Serializable, note("late")) != nil)

	kept := notes(t, openAt(t, path, schema))
	slices.Sort(acknowledged)
	is.Equal(kept, acknowledged) // what was acknowledged, and no more
}

// TestTornBatchIsDiscarded cuts the write-ahead log at many places, as a power
// loss would, and finds of each batch all or nothing.
func TestTornBatchIsDiscarded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	db := openAt(t, path, schema)
	const batches, size = 4, 8
	for b := range batches {
		var ops []func(tx engine.Tx) error
		for i := range size {
			ops = append(ops, note(fmt.Sprintf("%d-%d-%s", b, i, strings.Repeat("x", 500))))
		}
		for _, err := range inOneBatch(t, db, ops...) {
			is.NoErr(err)
		}
	}
	database, err := os.ReadFile(path) // closing it loses SQLite's locks; nobody else is here
	is.NoErr(err)
	log, err := os.ReadFile(path + "-wal")
	is.NoErr(err)
	is.NoErr(db.Close())
	seen := map[int]bool{}
	for cut := 0; cut <= len(log); cut += 1999 {
		n := countAfterCut(t, database, log[:cut])
		is.Equal(n%size, 0) // whole batches
		seen[n] = true
	}
	ordertest.Above(is, len(seen), 2) // the cuts did fall between batches
}

func countAfterCut(t *testing.T, database, log []byte) int {
	t.Helper()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "a.db")
	is.NoErr(os.WriteFile(path, database, 0o600))
	is.NoErr(os.WriteFile(path+"-wal", log, 0o600))
	return len(notes(t, openAt(t, path, schema)))
}
