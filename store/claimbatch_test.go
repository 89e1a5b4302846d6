package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// queueOf accepts turns for each of a number of workers, in turns.
func (f *fixture) queueOf(who people.Identity, number, each int) {
	f.t.Helper()
	is := is.New(f.t)
	var list []workers.Worker
	for i := range number {
		list = append(list, f.newWorker(who, workers.NewWorker{Title: fmt.Sprint(who.OrganizationName, i)}))
	}
	for range each {
		for _, w := range list {
			n := store.NewTurn{Caller: who.Caller, WorkerID: w.ID, Input: "Go", Budget: store.BudgetLow}
			is.NoErr(errOf(f.CreateTurn(f.ctx(), n)))
		}
	}
}

// TestClaimTakesFewRoundTrips claims many turns at once on a server. Each further turn costs no round trip.
func TestClaimTakesFewRoundTrips(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, _ := newPair(t)
	a.accept(a.turn())
	is.Equal(len(a.claim("a", 1)), 1) // prepares the statements
	a.queueOf(a.owner, 4, 5)
	before := a.WriteStats().RoundTrips.Load()
	is.Equal(len(a.claim("a", 20)), 20)
	ordertest.AtMost(is, a.WriteStats().RoundTrips.Load()-before, int64(4))
}

// TestClaimIsFair claims turns in one call and one after the other. The order is the same: it goes round by
// organization, and there by worker.
func TestClaimIsFair(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	order := func(sizes ...int) (names []string) {
		f := newFixture(t)
		f.startRunner("r")
		sam := f.caller("Globex", "sam@globex.test", people.RoleOwner)
		f.queueOf(f.owner, 3, 4)
		f.queueOf(sam, 2, 2)
		for _, n := range sizes {
			for _, c := range f.claim("r", n) {
				names = append(names, f.titleOf(c))
			}
		}
		return names
	}
	each := order(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	is.Equal(strings.Join(each[:8], " "), "Acme0 Globex0 Acme1 Globex1 Acme2 Globex0 Acme0 Globex1")
	is.Equal(order(16, 16), each) // the first claim may leave some
	is.Equal(order(5, 2, 9), each)
}

func (f *fixture) titleOf(c store.Claim) string {
	f.t.Helper()
	w, err := f.WorkerOfTurn(f.ctx(), c.Turn)
	is.New(f.t).NoErr(err)
	return w.Title
}

// TestClaimsSideBySide claims the turns of a queue in several calls at once. Each turn is claimed once, and none is
// left.
func TestClaimsSideBySide(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	f := newFixture(t)
	f.startRunner("r")
	sam := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	f.queueOf(f.owner, 3, 10)
	f.queueOf(sam, 2, 10)
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			for f.Queued() > 0 {
				claims, err := f.ClaimTurns(context.Background(), "r", 4, 0)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, c := range claims {
					seen[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	is.Equal(len(seen), 50)
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	f.checkCounters()
}

// TestClaimPassesLockedTurns claims a turn while other writes have locked the ones before it.
func TestClaimPassesLockedTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	f := newFixture(t)
	f.startRunner("r")
	var turns []store.Turn
	for range 4 {
		turns = append(turns, f.accept(f.turn()))
	}
	locked, done := make(chan struct{}), make(chan struct{})
	go func() {
		_ = f.Write(context.Background(), func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE turns SET interruptions = 0 WHERE num IN (?, ?)`, turns[0].Num, turns[1].Num)
			close(locked)
			<-done
			return err
		})
	}()
	<-locked
	claims := f.claim("r", 2)
	close(done)
	is.Equal(len(claims), 2)
	is.Equal([]int64{claims[0].Num, claims[1].Num}, []int64{turns[2].Num, turns[3].Num})
}

// TestAnnouncedTurns queues a turn on one node for a worker on another, which has not counted it. After the
// announcement it claims the turn. What it does not find, it forgets.
func TestAnnouncedTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	a, b := newPair(t)
	b.accept(b.turn())
	is.Equal(len(b.claim("b", 1)), 1) // places the worker on b
	a.accept(a.turn())
	is.Equal(len(b.claim("b", 1)), 0)
	b.Announce(3)
	is.Equal(b.Queued(), int64(3))
	is.Equal(len(b.claim("b", 2)), 1)
	is.Equal(b.Queued(), int64(0))
}
