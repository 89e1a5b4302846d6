package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestSilence deletes a worker or archives a task while one turn runs, one waits, and a delivery and a
// reply are due. Nothing of the worker or the task is sent from then on, and nothing is tried again.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end       func(f *fixture, taskID string) error
		redeliver db.Kind
	}{
		"a deleted worker": {func(f *fixture, _ string) error { return f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID) },
			db.NotFound},
		"an archived task": {func(f *fixture, taskID string) error {
			return errOf(f.ArchiveTask(f.ctx(), f.owner.Caller, taskID, ""))
		}, db.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.startRunner("r")
			f.webhook("https://a.example/")
			mail := f.receive(f.mail("1@x"))[0]
			f.finish(f.claimOne("r"))
			d := f.due()[0]
			e := f.record(d, store.Attempt{ErrorMessage: "no answer", Retry: f.clock.now().Add(time.Minute)})
			first := f.follow(store.Turn{TaskID: mail.TaskID})
			second := f.follow(first)
			running := f.claimOne("r")
			is.Equal(running.ID, first.ID)
			is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE status = 'queued'`), int64(1))
			f.clock.advance(time.Hour)
			is.Equal(len(f.due()), 1)

			is.NoErr(tt.end(f, mail.TaskID))
			is.True(f.reread(first).AbortRequested && f.reread(second).AbortRequested)
			is.Equal(len(f.due()), 0) // the retry is given up
			f.finish(running)         // it ends before its runner has learned of the abort
			is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, mail.TaskID)))
			is.Equal(f.reread(second).Status, store.Aborted)
			is.Equal(len(f.due()), 0) // neither of them is delivered
			replies := f.claimReplies(0)
			is.Equal(len(replies), 0)
			list, _, err := f.Effects.Emails(f.ctx(), f.owner.Caller, store.EmailQuery{Direction: store.Outbound})
			is.NoErr(err)
			is.Equal([]any{len(list), list[0].Status}, []any{1, store.EmailFailed})
			_, err = f.Effects.SendAgain(f.ctx(), f.owner.Caller, list[0].ID)
			is.True(db.IsKind(err, db.Conflict))
			_, err = f.Effects.ExecutedDelivery(f.ctx(), f.owner.Caller, f.worker.ID, e.ID)
			is.True(db.IsKind(err, tt.redeliver))
			tasks, err := f.UnfinishedTasks(f.ctx(), f.worker.ID)
			is.NoErr(err)
			is.Equal(len(tasks), 0)
			f.checkCounters()
		})
	}
}

// TestRepliesOfASilentTask checks that the ends of turns that mails have started queue no reply.
func TestRepliesOfASilentTask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	archived := f.receive(f.mail("1@x"))[0]
	running := f.claimOne("r")
	is.NoErr(errOf(f.ArchiveTask(f.ctx(), f.owner.Caller, archived.TaskID, "")))
	f.finish(running)
	f.receive(f.mail("2@x"))
	running = f.claimOne("r")
	waiting := f.receive(f.mail("3@x"))[0]
	is.NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID))
	tasks, err := f.UnfinishedTasks(f.ctx(), f.worker.ID)
	is.NoErr(err)
	is.Equal(len(tasks), 2)
	f.finish(running)
	is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, waiting.TaskID)))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(0))
	f.checkCounters()
}

// TestClaimOfADeletedWorker claims a turn whose abort nobody has requested, because its acceptance and the
// deletion of its worker did not see each other. The claim only ends it.
func TestClaimOfADeletedWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	for range 2 {
		f.accept(f.turn())
	}
	is.True(!f.claim("r", 1)[0].AbortRequested)
	is.NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID))
	storetest.Exec(t, f.Store, `UPDATE turns SET abort_requested = 0`)
	is.True(f.claim("r", 1)[0].AbortRequested)
}

// TestAbortQueued ends the waiting turns of a deleted worker, in as many statements for many turns as for few. What
// runs, has run or belongs to a team is left to AbortTask.
func TestAbortQueued(t *testing.T) {
	t.Parallel()
	statements := map[int]int64{}
	for _, tasks := range []int{10, 300} {
		is := is.New(t)
		f := newFixture(t)
		f.webhook("https://a.example/")
		f.startRunner("r")
		running := f.accept(f.turn())
		is.Equal(f.claimOne("r").ID, running.ID)
		behind := f.follow(running)
		returned := f.accept(f.turn())
		storetest.Exec(t, f.Store, `UPDATE turns SET steps = 1 WHERE id = ?1`, returned.ID)
		var waiting []store.Turn
		for range tasks {
			first := f.accept(f.turn())
			waiting = append(waiting, first, f.follow(first))
		}
		mail := f.receive(f.mail("1@x"))[0]
		other := f.turn()
		other.WorkerID = f.newWorker(f.owner, workers.NewWorker{Title: "Other"}).ID
		spared := f.accept(other)

		ended, err := f.AbortQueued(t.Context(), f.worker.ID, 1000)
		is.NoErr(err)
		is.Equal(len(ended), 0) // the worker is not deleted
		is.NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID))
		before := f.EngineStats().Statements.Load()
		ended, err = f.AbortQueued(t.Context(), f.worker.ID, 1000)
		is.NoErr(err)
		statements[tasks] = f.EngineStats().Statements.Load() - before
		is.Equal(len(ended), 2*tasks+1)
		for _, v := range append(waiting, store.Turn{ID: mail.TurnID}) {
			got := f.reread(v)
			is.Equal([]any{got.Status, got.TaskStatus, got.Failure.Code, got.IncompleteReason, got.CompletedAt != nil},
				[]any{store.Aborted, store.Aborted, "aborted", store.ReasonAborted, true})
		}
		is.Equal(ended[0], summary(f.reread(ended[0])))
		for _, v := range []store.Turn{running, behind, returned, spared} {
			is.True(!f.reread(v).Status.Ended())
		}
		is.Equal(f.count(`SELECT sum(turns) FROM usage`), int64(2*tasks+1)) // they are counted
		is.Equal(len(f.due()), 0)
		is.Equal(len(f.claimReplies(0)), 0)
		left, err := f.UnfinishedTasks(t.Context(), f.worker.ID)
		is.NoErr(err)
		is.Equal(len(left), 2)
		storetest.Exec(t, f.Store, `UPDATE turns SET steps = 0`) // the test has invented the step
		f.checkCounters()
	}
	is.New(t).Equal(statements[300], statements[10])
}

// summary returns a turn with the fields that AbortQueued returns.
func summary(t store.Turn) store.Turn {
	t.Ready = false // the column keeps its last value
	t.WorkerVersion, t.OwnFolder, t.Input, t.Budget, t.CreatedAt, t.Envelope = 0, false, "", "", time.Time{}, ""
	return t
}

// TestDeletedWorkerEndsItsWaits checks that a suspended turn of a deleted worker ends, even if nobody
// aborts its task after the deletion.
func TestDeletedWorkerEndsItsWaits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := down(f)
	is.NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, f.worker.ID))
	ended, resumed, err := f.ExpireSuspended(f.ctx(), 10)
	is.NoErr(err)
	is.Equal([]any{len(ended), resumed, f.reread(c.Turn).Status}, []any{1, 0, store.Aborted})
	f.checkCounters()
}
