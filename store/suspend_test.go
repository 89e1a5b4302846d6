package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// downUntil returns a wait for a provider that is asked again at the given time. The wait expires
// an hour later.
func downUntil(at time.Time) store.Wait {
	return store.Wait{For: store.WaitForModel, Reason: "503: overloaded: try later", RetryAt: &at, Until: at.Add(time.Hour)}
}

// down returns a turn that waits a minute for its provider.
func down(f *fixture) store.Claim {
	f.t.Helper()
	c := running(f)
	is.New(f.t).NoErr(f.SuspendForModel(f.ctx(), c, downUntil(f.clock.now().Add(time.Minute)), store.Outage{Since: f.clock.now(), Calls: 3}))
	return c
}

// resumeDue resumes the due turns, and returns their number.
func (f *fixture) resumeDue() (n int, next *time.Time) {
	f.t.Helper()
	n, next, err := f.ResumeDue(f.ctx(), 10)
	is.New(f.t).NoErr(err)
	return n, next
}

func TestTurnWaitsForModel(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := down(f)
	since, at := f.clock.now(), f.clock.now().Add(time.Minute)
	turn := f.reread(c.Turn)
	is.Equal(turn.Status, store.Running)
	is.Equal([]any{turn.Wait.For, turn.Wait.Reason, turn.Wait.RetryAt.Equal(at), turn.Wait.Until.Equal(at.Add(time.Hour)), turn.FailedCalls, turn.FailingSince.Equal(since)},
		[]any{store.WaitForModel, "503: overloaded: try later", true, true, int64(3), true})
	is.Equal(f.task(c.TaskID).Wait, turn.Wait) // also with queued turns behind it
	f.follow(c.Turn)
	is.Equal(f.task(c.TaskID).Wait, turn.Wait)
	waits, err := f.Suspended(f.ctx())
	is.NoErr(err)
	is.Equal(waits, map[store.WaitFor]int64{store.WaitForModel: 1, store.WaitForPerson: 0, store.WaitForWorker: 0})
	f.startRunner("r2") // another process finds the same state

	n, next := f.resumeDue()
	is.Equal(n, 0)
	is.True(next.Equal(at))
	is.Equal(len(f.claim("r2", 5)), 0)
	f.clock.advance(time.Minute)
	n, next = f.resumeDue()
	is.Equal(n, 1)
	is.Equal(next, nil)
	is.Equal(f.task(c.TaskID).Wait, nil)
	f.checkCounters()
	again := f.claimOne("r2")
	is.Equal([]any{again.ID, again.FailedCalls, again.FailingSince.Equal(since)}, []any{c.ID, int64(3), true})

	// The outage continues, and then ends with a successful call.
	f.clock.advance(time.Minute)
	is.NoErr(f.SuspendForModel(f.ctx(), again, downUntil(f.clock.now()), store.Outage{Since: f.clock.now(), Calls: 1}))
	turn = f.reread(c.Turn)
	is.Equal([]any{turn.FailedCalls, turn.FailingSince.Equal(since)}, []any{int64(4), true})
	f.resumeDue()
	last := f.claimOne("r2")
	is.NoErr(f.JournalStep(f.ctx(), last, toolStep(f, 0)))
	turn = f.reread(c.Turn)
	is.Equal([]any{turn.FailedCalls, turn.FailingSince}, []any{int64(0), (*time.Time)(nil)})
	is.Equal(f.SuspendForModel(f.ctx(), c, downUntil(f.clock.now()), store.Outage{}), store.ErrClaimLost) // the old claim is void
}

// TestWaitsForAModelEnd ends the wait in every way.
func TestWaitsForAModelEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end    func(f *fixture, c store.Claim) error
		status store.Status
		code   string
	}{
		"patience ends": {func(f *fixture, c store.Claim) error {
			f.clock.advance(2 * time.Hour)
			ended, _, err := f.ExpireSuspended(f.ctx(), 5)
			if err == nil && len(ended) != 1 {
				err = fmt.Errorf("%d turns ended", len(ended))
			}
			return err
		}, store.Failed, "503"},
		"a person cancels": {func(f *fixture, c store.Claim) error {
			return errOf(f.AbortTask(f.ctx(), f.owner.Caller, c.TaskID))
		}, store.Aborted, "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := down(f)
			is.NoErr(tt.end(f, c))
			turn := f.reread(c.Turn)
			is.Equal(turn.Status, tt.status)
			is.Equal(turn.Failure.Code, tt.code)
			if tt.code == "503" {
				is.Equal(*turn.Failure, store.Failure{Code: "503", Message: "overloaded: try later", Retryable: true})
			}
			is.Equal([]any{turn.Wait, f.task(c.TaskID).Wait}, []any{(*store.Wait)(nil), (*store.Wait)(nil)})
			n, next := f.resumeDue()
			is.Equal([]any{n, next}, []any{0, (*time.Time)(nil)})
			f.checkCounters()
		})
	}
}

// TestRetryNow resumes only turns that wait for their model.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	asked, _ := suspended(f, 0)
	c := down(f)
	is.NoErr(f.RetryNow(f.ctx(), []string{c.ID, asked.ID, "trn_none"}))
	n, _ := f.resumeDue()
	is.Equal(n, 1)
	is.Equal(f.claimOne("r").ID, c.ID)
	is.Equal(f.reread(asked.Turn).Wait.For, store.WaitForPerson)
	// A turn with a requested cancellation is not suspended, because it could not be stopped then.
	again := running(f)
	is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, again.TaskID)))
	is.Equal(f.SuspendForModel(f.ctx(), again, downUntil(f.clock.now()), store.Outage{}), store.ErrAbortRequested)
}
