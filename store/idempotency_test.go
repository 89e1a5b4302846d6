package store_test

import (
	"context"
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// again accepts a turn, and checks whether that repeats an earlier request.
func (f *fixture) again(n store.NewTurn, replayed bool) store.Turn {
	f.t.Helper()
	is := is.New(f.t)
	a, err := f.CreateTurn(f.ctx(), n)
	is.NoErr(err)
	is.Equal(a.Replayed, replayed)
	return a.Turn
}

func TestOnceByKey(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("body")}
	_, found, err := f.Lookup(t.Context(), n.IdempotencyKey)
	is.NoErr(err)
	is.True(!found)
	first := f.accept(n)
	is.Equal(f.again(n, true), first)
	turn, found, err := f.Lookup(t.Context(), n.IdempotencyKey)
	is.NoErr(err)
	is.True(found)
	is.Equal(turn, first)

	other := n
	other.IdempotencyKey.Hash = hash("another body")
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), other)), db.Mismatch))
	is.True(db.IsKind(errOf(f.Lookup(t.Context(), other.IdempotencyKey)), db.Mismatch))
	bobs := n
	bobs.IdempotencyKey.KeyID = f.owner.UserID
	is.True(f.accept(bobs).ID != first.ID) // a form has its own keys

	f.clock.advance(24*time.Hour - time.Millisecond)
	f.again(n, true)
	f.clock.advance(time.Millisecond)
	f.again(other, false) // the key has expired, so there is no mismatch
	f.again(other, true)  // the newer request has replaced the older one
}

// TestFirstResultStays stores a second result for known requests.
func TestFirstResultStays(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	named := db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("body")}
	stored := func(k db.IdempotencyKey) string {
		id, err := f.Replay(t.Context(), k)
		is.NoErr(err)
		return id
	}
	is.NoErr(f.Remember(t.Context(), named, "first"))
	is.NoErr(f.Remember(t.Context(), named, "second"))
	is.Equal(stored(named), "first")
	f.clock.advance(24 * time.Hour)
	is.NoErr(f.Remember(t.Context(), named, "third"))
	is.Equal(stored(named), "third")

	// Without a key, the newest request counts, independent of the clock.
	retry := db.IdempotencyKey{KeyID: f.owner.KeyID, Hash: hash("body"), Retry: true}
	is.NoErr(f.Remember(t.Context(), retry, "first"))
	f.clock.advance(-time.Hour)
	is.NoErr(f.Remember(t.Context(), retry, "second"))
	is.Equal(stored(retry), "second")
}

func TestRetriesJoin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Hash: hash("body")}
	first := f.accept(n)
	second := f.accept(n)
	is.True(second.ID != first.ID) // a second request, not a retry
	retry := n
	retry.IdempotencyKey.Retry = true
	is.Equal(f.again(retry, true).ID, second.ID) // the newest turn
	f.clock.advance(10*time.Minute - time.Millisecond)
	f.again(retry, true)
	f.clock.advance(time.Millisecond)
	f.again(retry, false) // too late: the request is executed again
	retry.IdempotencyKey.Hash = hash("never seen")
	f.again(retry, false)
	retry.IdempotencyKey.KeyID = "" // a page without a key
	f.again(retry, false)
}

func TestOnceUnderConcurrency(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.WorkerID, n.NewWorker = "", &workers.NewWorker{}
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("body")}
	var wg sync.WaitGroup
	ids := make([]string, 32)
	for i := range ids {
		wg.Go(func() {
			if a, err := f.CreateTurn(context.Background(), n); err == nil {
				ids[i] = a.Turn.ID
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		is.Equal(id, ids[0])
	}
	is.True(ids[0] != "") // the turn has no ID
	is.Equal(f.count(`SELECT count(*) FROM turns`), int64(1))
	is.Equal(f.count(`SELECT count(*) FROM workers`), int64(2))
}

func TestRefusalIsNotCached(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.WorkerID = "wrk_none"
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("body")}
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), n)), db.NotFound))
	n.WorkerID = f.worker.ID
	is.Equal(f.accept(n).WorkerID, f.worker.ID)
}

func TestOnceForWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	once := db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "w", Hash: hash("body")}
	first, replayed, err := f.Workers.CreateWorker(t.Context(), f.owner.Caller, workers.NewWorker{}, once)
	is.NoErr(err)
	is.True(!replayed)
	again, replayed, err := f.Workers.CreateWorker(t.Context(), f.owner.Caller, workers.NewWorker{}, once)
	is.NoErr(err)
	is.True(replayed)
	is.Equal(again, first)
}

func TestPruneIdempotency(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	for _, once := range []db.IdempotencyKey{{Key: "a", Hash: hash("a")}, {Key: "b", Hash: hash("b")}, {Hash: hash("c")},
		{Hash: hash("d")}} {
		n := f.turn()
		n.IdempotencyKey = once
		n.IdempotencyKey.KeyID = f.owner.KeyID
		f.accept(n)
	}
	prune := func(limit int) int64 {
		n, err := f.PruneIdempotency(t.Context(), limit)
		is.NoErr(err)
		return n
	}
	is.Equal(prune(10), int64(0))
	f.clock.advance(10 * time.Minute)
	is.Equal(prune(1), int64(1)) // at most the given number
	is.Equal(prune(10), int64(1))
	f.clock.advance(24 * time.Hour)
	is.Equal(prune(10), int64(2))
	is.Equal(f.count(`SELECT count(*) FROM idempotency`), int64(0))
}
