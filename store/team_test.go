package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// TestFormerMembersCannotRunWorkers removes the author of a running turn. Then the turn cannot start
// other workers.
func TestFormerMembersCannotRunWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	n := f.turn()
	n.Caller = mo.Caller
	f.accept(n)
	f.startRunner("run_1")
	c := f.claimOne("run_1")
	start := func(call int64) error {
		caller, err := f.TurnCaller(f.ctx(), c.Turn)
		is.NoErr(err)
		_, err = f.StartChild(f.ctx(), store.CallPlace{Turn: c.Turn, RunnerID: "run_1", Call: call},
			store.NewTurn{Caller: caller, WorkerID: f.worker.ID, Input: "part", Budget: store.BudgetLow})
		return err
	}
	is.NoErr(start(0))
	is.NoErr(errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, mo.UserID)))
	is.True(db.IsKind(start(1), db.Forbidden)) // a new turn
	is.NoErr(start(0))                         // the earlier turn remains
}
