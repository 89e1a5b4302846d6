package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// note returns a write that inserts the row id.
func note(id string) func(tx db.Tx) error {
	return func(tx db.Tx) error {
		return errOf(tx.Exec(`INSERT INTO runners (id, expires_at) VALUES (?, 1)`, id))
	}
}

// hold blocks the writer until release is called.
func hold(t *testing.T, s *store.Store) (release func()) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Write(context.Background(), func(db.Tx) error {
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

// violate writes a dangling reference, which COMMIT refuses.
func violate(tx db.Tx) error {
	if _, err := tx.Exec(`PRAGMA defer_foreign_keys = 1`); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO worker_versions (worker_id, version, instructions, created_at) VALUES ('none', 1, '', 0)`)
	return err
}

func TestFailedBatchIsNotCounted(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	release := hold(t, f.Store)
	outcome := make(chan error, 2)
	go func() {
		outcome <- errOf(f.CreateTurn(context.Background(), f.turn()))
	}()
	storetest.Eventually(t, "the turn to be queued", func() bool { return f.Waiting() == 1 })
	go func() { outcome <- f.Write(context.Background(), violate) }()
	storetest.Eventually(t, "the culprit to be queued", func() bool { return f.Waiting() == 2 })
	release()
	is.True(<-outcome != nil)
	is.True(<-outcome != nil)
	is.Equal(f.Queued(), int64(0))
	f.checkCounters()
}

func TestFullDiskIsTemporary(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	limit := func(pages int64) {
		f.exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
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
		ordertest.Below(is, accepted, 100) // no write was refused
	}
	is.True(db.IsKind(err, db.Busy))
	is.Equal(f.Queued(), int64(accepted))
	is.True(!strings.Contains(err.(*db.Error).Message, "SQL")) // the message is safe to show
	limit(1 << 30)
	f.clock.advance(10 * time.Second) // until then, new work is refused without a write
	f.accept(n)
	is.Equal(f.Queued(), int64(accepted+1))
	f.checkCounters()
}

func TestOnlyTheOwnerReadsTheData(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "data")
	s := storetest.Reopen(t, dir, store.Options{})
	is.NoErr(s.Write(t.Context(), note("a")))
	entries, err := os.ReadDir(dir)
	is.NoErr(err)
	for _, e := range entries {
		info, err := e.Info()
		is.NoErr(err)
		is.Equal(info.Mode().Perm()&0o077, os.FileMode(0)) // without access for group and others
	}
}
