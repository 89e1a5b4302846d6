package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// strangersTurn returns a turn that somebody who is no member asks the fixture's worker for.
func (f *fixture) strangersTurn(w workers.Worker) store.NewTurn {
	return store.NewTurn{Caller: people.Caller{OrganizationID: w.OrganizationID, Trigger: people.TriggerEmail},
		WorkerID: w.ID, Input: "Please", Budget: store.BudgetLow}
}

// TestStrangersQueue fills the part of the queue that strangers may use. Members and the strangers of
// another organization still have their places.
func TestStrangersQueue(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 8, QueueTotal: 12})
	sam := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	theirs := f.newWorker(sam, workers.NewWorker{})
	create := func(n store.NewTurn) error { return errOf(f.CreateTurn(t.Context(), n)) }
	for range 2 {
		is.NoErr(create(f.strangersTurn(f.worker)))
	}
	err := create(f.strangersTurn(f.worker)) // a quarter of 8
	is.True(db.IsKind(err, db.Busy) && says(err, "people who are not members"))
	is.NoErr(create(f.strangersTurn(theirs)))
	is.True(db.IsKind(create(f.strangersTurn(theirs)), db.Busy)) // a quarter of 12
	for range 6 {
		is.NoErr(create(f.turn()))
	}
	is.True(says(create(f.turn()), "the organization's queue is full"))
	f.checkCounters()

	is.NoErr(f.Recount(t.Context())) // as after a restart
	f.checkCounters()
	is.True(says(create(f.strangersTurn(theirs)), "people who are not members"))
	f.startRunner("r")
	f.claim("r", 9)
	is.NoErr(create(f.strangersTurn(f.worker))) // the place is free again
	f.checkCounters()
}

// TestStrangersAreClaimed claims turns of members and strangers. The runner says how many strangers' turns
// it takes. While members wait, at most each fourth claim is a stranger's.
func TestStrangersAreClaimed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	for range 10 {
		f.accept(f.strangersTurn(f.worker))
	}
	claims, err := f.ClaimTurns(t.Context(), "r", 5, 0)
	is.NoErr(err)
	is.Equal(len(claims), 0) // only strangers wait
	for range 10 {
		f.accept(f.turn())
	}
	pattern := func(n, strangers int) (p string) {
		t.Helper()
		claims, err := f.ClaimTurns(t.Context(), "r", n, strangers)
		is.NoErr(err)
		for _, c := range claims {
			if c.Stranger() {
				p += "s"
			} else {
				p += "m"
			}
		}
		return p
	}
	is.Equal(pattern(5, 5), "mmmsm")
	is.Equal(pattern(3, 0), "mmm")
	is.Equal(pattern(2, 5), "sm") // strangers have waited for four claims
	is.Equal(pattern(4, 1), "mms")
	is.Equal(pattern(9, 2), "ss")
	is.Equal(pattern(9, 9), "sssss")
	f.checkCounters()
}

// TestStrangersWaitBehindTheirShare accepts turns while the runner has a slot for members only.
func TestStrangersWaitBehindTheirShare(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.slotRunner(2)
	sl := r.slots("r")
	take := sl.Take
	sl.Take = func(stranger bool) bool { return !stranger && take(stranger) }
	f.UseSlots(sl)
	f.accept(f.strangersTurn(f.worker))
	is.Equal([]int{len(r.take()), r.left()}, []int{0, 2})
	f.accept(f.turn()) // it does not wait behind the stranger's
	is.Equal([]int{len(r.take()), r.left()}, []int{1, 1})
	f.checkCounters()
}
