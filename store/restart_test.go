package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestRestartDoesNotWaitForLease ends a process during a turn and deliveries. The next process
// continues them at once, except those with a recorded result. TestRepliesAfterKill tests
// mails in the same way.
func TestRestartDoesNotWaitForLease(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(errOf(f.Effects.SetWebhook(f.ctx(), f.owner.Caller, f.worker.ID, "https://hooks.example.com/x")))
	is.NoErr(f.StartRunner(f.ctx(), "dead", time.Hour))
	for range 2 {
		f.accept(f.turn())
		f.finish(f.claimOne("dead"))
	}
	due, err := f.Effects.DueDeliveries(f.ctx(), f.worker.ID, 10)
	is.NoErr(err)
	is.Equal(len(due), 2)
	_, err = f.Effects.RecordAttempt(f.ctx(), due[0], store.Attempt{Success: true, ResponseStatus: 200,
		StartedAt: f.clock.now()})
	is.NoErr(err)
	f.accept(f.turn())
	cut := f.claimOne("dead")
	is.NoErr(f.Close())

	s := storetest.Reopen(t, f.Dir(), store.Options{Now: f.clock.now})
	is.NoErr(s.StartRunner(t.Context(), "next", time.Hour))
	claims, err := s.ClaimTurns(t.Context(), "next", 10, 10)
	is.NoErr(err)
	is.Equal(len(claims), 1)
	is.Equal(claims[0].ID, cut.ID)
	left, err := s.Effects.DueDeliveries(t.Context(), f.worker.ID, 10)
	is.NoErr(err)
	is.Equal(len(left), 1) // the recorded delivery is not repeated
	is.Equal(left[0].ID, due[1].ID)
}
