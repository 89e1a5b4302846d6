package store_test

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

	"journeyman/store"
	"journeyman/store/storetest"
)

// note writes a row that tests look for.
func note(id string) func(tx *store.Tx) error {
	return func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO runners (id, expires_at) VALUES (?, 1)`, id)
		return err
	}
}

func notes(t *testing.T, s *store.Store) []string {
	t.Helper()
	ids, err := s.Strings(t.Context(), `SELECT id FROM runners ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// hold keeps the writer busy until release is called.
func hold(t *testing.T, s *store.Store) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Write(context.Background(), func(*store.Tx) error {
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
func inOneBatch(t *testing.T, s *store.Store, ops ...func(tx *store.Tx) error) []error {
	t.Helper()
	release := hold(t, s)
	errs := make([]error, len(ops))
	var wg sync.WaitGroup
	for i, op := range ops {
		wg.Go(func() { errs[i] = s.Write(context.Background(), op) })
		eventually(t, "an operation to be queued", func() bool { return s.Waiting() == i+1 })
	}
	release()
	wg.Wait()
	return errs
}

func TestOperationsOfABatchFailAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	broken := errors.New("broken")
	errs := inOneBatch(t, s,
		note("a"),
		func(tx *store.Tx) error { return errors.Join(note("b")(tx), broken) },
		func(tx *store.Tx) error {
			if err := note("c")(tx); err != nil {
				return err
			}
			panic("boom")
		},
		func(tx *store.Tx) error { return errors.Join(note("d")(tx), note("a")(tx)) }, // a is taken
		note("e"),
	)
	is.NoErr(errs[0])
	is.True(errors.Is(errs[1], broken))
	is.True(strings.Contains(errs[2].Error(), "boom"))
	is.True(errs[3] != nil)
	is.NoErr(errs[4])
	is.Equal(notes(t, s), []string{"a", "e"}) // nothing of a failed operation is left
}

func TestAnswersFollowCommit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	release := hold(t, s)
	answered := make(chan error, 1)
	go func() { answered <- s.Write(context.Background(), note("first")) }()
	eventually(t, "the first to be queued", func() bool { return s.Waiting() == 1 })
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Write(context.Background(), func(*store.Tx) error {
			close(begun)
			<-end
			return nil
		})
	}()
	eventually(t, "the second to be queued", func() bool { return s.Waiting() == 2 })
	release()
	<-begun // the first has run, in the same transaction
	is.Equal(len(notes(t, s)), 0)
	select {
	case err := <-answered:
		t.Fatalf("answered before COMMIT: %v", err)
	default:
	}
	close(end)
	is.NoErr(<-answered)
	is.Equal(notes(t, s), []string{"first"})
}

// TestLateOperationsJoin has what is submitted while a batch runs be in its
// transaction: one sync of the disk less.
func TestLateOperationsJoin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	before := s.Counters().Commits.Load()
	release := hold(t, s)
	errs := make(chan error, 3)
	for i := range 3 {
		go func() { errs <- s.Write(context.Background(), note(fmt.Sprint("late", i))) }()
	}
	eventually(t, "operations to wait", func() bool { return s.Waiting() == 3 })
	release()
	for range 3 {
		is.NoErr(<-errs)
	}
	is.Equal(s.Counters().Commits.Load()-before, int64(1))
	is.Equal(notes(t, s), []string{"late0", "late1", "late2"})
}

func TestReadsSeeTheWriteBefore(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				id := fmt.Sprintf("%d-%d", g, i)
				if err := s.Write(t.Context(), note(id)); err != nil {
					t.Error(err)
					return
				}
				got, err := s.Strings(t.Context(), `SELECT id FROM runners WHERE id = ?`, id)
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
	s := storetest.Open(t, store.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Write(ended, note("before")), context.Canceled))

	release := hold(t, s)
	waiting, cancel := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() { outcome <- s.Write(waiting, note("waiting")) }()
	eventually(t, "the write to be queued", func() bool { return s.Waiting() == 1 })
	cancel()
	is.True(errors.Is(<-outcome, context.Canceled)) // at once: the writer is still held
	release()

	running, cancel := context.WithCancel(t.Context())
	is.NoErr(s.Write(running, func(tx *store.Tx) error {
		cancel() // once begun it is seen through, and the outcome known
		return note("running")(tx)
	}))
	is.Equal(notes(t, s), []string{"running"})
}

// violate leaves a reference to nothing, which COMMIT refuses.
func violate(tx *store.Tx) error {
	if _, err := tx.Exec(`PRAGMA defer_foreign_keys = 1`); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO worker_versions (worker_id, version, instructions, created_at) VALUES ('none', 1, '', 0)`)
	return err
}

func TestABatchFailsWhole(t *testing.T) {
	t.Parallel()
	for name, culprit := range map[string]func(tx *store.Tx) error{
		"at COMMIT": violate,
		"by a statement that ends the transaction": func(tx *store.Tx) error {
			_, err := tx.Exec(`ROLLBACK`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			errs := inOneBatch(t, f.Store, note("a"), culprit, func(tx *store.Tx) error {
				return note("b")(tx)
			})
			for _, err := range errs {
				is.True(err != nil) // nobody is told of success
			}
			is.Equal(len(notes(t, f.Store)), 0)
			is.NoErr(f.Write(t.Context(), note("c"))) // the next batch is as if nothing had been
			is.Equal(notes(t, f.Store), []string{"c"})
			f.checkCounters()
		})
	}
}

func TestAFailedBatchCountsNothing(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	release := hold(t, f.Store)
	outcome := make(chan error, 2)
	go func() {
		_, err := f.CreateTurn(context.Background(), f.turn())
		outcome <- err
	}()
	eventually(t, "the turn to be queued", func() bool { return f.Waiting() == 1 })
	go func() { outcome <- f.Write(context.Background(), violate) }()
	eventually(t, "the culprit to be queued", func() bool { return f.Waiting() == 2 })
	release()
	is.True(<-outcome != nil)
	is.True(<-outcome != nil)
	is.Equal(f.Queued(), int64(0))
	f.checkCounters()
}

func TestAFullDiskIsBusyAndPasses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	limit := func(pages int64) {
		is.NoErr(f.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
			return err
		}))
	}
	limit(f.count(`PRAGMA page_count`) + 2)
	n := f.turn()
	n.Input = strings.Repeat("A long instruction. ", 2000)
	accepted := 0
	var err error
	for err == nil {
		if _, err = f.CreateTurn(t.Context(), n); err == nil {
			accepted++
		}
		is.True(accepted < 100)
	}
	is.True(store.IsKind(err, store.Busy))
	is.Equal(f.Queued(), int64(accepted))
	is.True(!strings.Contains(err.(*store.Error).Message, "SQL")) // the message may be shown
	limit(1 << 30)
	f.accept(n)
	is.Equal(f.Queued(), int64(accepted+1))
	f.checkCounters()
}

func TestCloseWhileWriting(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	var begun atomic.Int64
	for g := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%02d-%06d", g, i)
				if err := s.Write(context.Background(), note(id)); err != nil {
					return
				}
				begun.Add(1)
				mu.Lock()
				acknowledged = append(acknowledged, id)
				mu.Unlock()
			}
		})
	}
	eventually(t, "some writes", func() bool { return begun.Load() > 100 })
	is.NoErr(s.Close())
	is.NoErr(s.Close()) // twice is once
	wg.Wait()
	is.True(s.Write(t.Context(), note("late")) != nil)

	again, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	kept := notes(t, again)
	is.NoErr(again.Close())
	slices.Sort(acknowledged)
	is.Equal(kept, acknowledged) // what was acknowledged, and no more
}

// TestATornBatchIsNotThere cuts the write-ahead log at many places, as a power
// loss would, and finds of each batch all or nothing.
func TestATornBatchIsNotThere(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	const batches, size = 4, 8
	for b := range batches {
		var ops []func(tx *store.Tx) error
		for i := range size {
			ops = append(ops, note(fmt.Sprintf("%d-%d-%s", b, i, strings.Repeat("x", 500))))
		}
		for _, err := range inOneBatch(t, s, ops...) {
			is.NoErr(err)
		}
	}
	path := store.DatabasePath(dir)
	database, err := os.ReadFile(path) // closing it loses SQLite's locks; nobody else is here
	is.NoErr(err)
	log, err := os.ReadFile(path + "-wal")
	is.NoErr(err)
	is.NoErr(s.Close())
	seen := map[int]bool{}
	for cut := 0; cut <= len(log); cut += 1999 {
		n := countAfterCut(t, database, log[:cut])
		is.Equal(n%size, 0) // whole batches
		seen[n] = true
	}
	is.True(len(seen) > 2) // the cuts did fall between batches
}

func countAfterCut(t *testing.T, database, log []byte) int {
	t.Helper()
	is := is.New(t)
	dir := t.TempDir()
	path := store.DatabasePath(dir)
	is.NoErr(os.WriteFile(path, database, 0o600))
	is.NoErr(os.WriteFile(path+"-wal", log, 0o600))
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	n := len(notes(t, s))
	is.NoErr(s.Close())
	return n
}

func TestOnlyTheOwnerReadsTheData(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	s, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(s.Close()) })
	is.NoErr(s.Write(t.Context(), note("a")))
	entries, err := os.ReadDir(dir)
	is.NoErr(err)
	for _, e := range entries {
		info, err := e.Info()
		is.NoErr(err)
		is.Equal(info.Mode().Perm()&0o077, os.FileMode(0)) // group and others: nothing
	}
}
