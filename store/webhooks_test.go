package store_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// webhook configures a webhook of the fixture's worker.
func (f *fixture) webhook(url string) store.Webhook {
	f.t.Helper()
	w, err := f.Effects.SetWebhook(f.ctx(), f.owner.Caller, f.worker.ID, url)
	is.New(f.t).NoErr(err)
	return w
}

// due returns the worker's due deliveries.
func (f *fixture) due() []store.Delivery {
	f.t.Helper()
	list, err := f.Effects.DueDeliveries(f.ctx(), f.worker.ID, 1000)
	is.New(f.t).NoErr(err)
	return list
}

func (f *fixture) record(d store.Delivery, a store.Attempt) store.Execution {
	f.t.Helper()
	if a.StartedAt.IsZero() {
		a.StartedAt = f.clock.now()
	}
	e, err := f.Effects.RecordAttempt(f.ctx(), d, a)
	is.New(f.t).NoErr(err)
	return e
}

func TestWebhookLife(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	owner, id := f.owner.Caller, f.worker.ID
	w, err := f.Effects.Webhook(f.ctx(), owner, id)
	is.NoErr(err)
	is.Equal(w, store.Webhook{})
	was, err := f.Effects.RemoveWebhook(f.ctx(), owner, id)
	is.NoErr(err)
	is.Equal(was, store.Webhook{})
	is.True(db.IsKind(errOf(f.Effects.RenewWebhook(f.ctx(), owner, id, db.IdempotencyKey{})), db.Conflict))

	first := f.webhook("https://a.example/")
	is.True(strings.HasPrefix(first.Token, "whk_") && len(first.Token) == 4+43)
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(first.SigningSecret, "whsec_"))
	is.NoErr(err)
	is.Equal(len(secret), 32)
	second := f.webhook("https://b.example/")
	is.Equal(second, store.Webhook{URL: "https://b.example/", Token: first.Token, SigningSecret: first.SigningSecret})

	once := db.IdempotencyKey{KeyID: owner.KeyID, Key: "k", Hash: hash("renew")}
	third, _, err := f.Effects.RenewWebhook(f.ctx(), owner, id, once)
	is.NoErr(err)
	is.Equal(third.URL, second.URL)
	// A renewed webhook must not keep its token or its secret.
	is.True(third.Token != second.Token && third.SigningSecret != second.SigningSecret)
	again, replayed, err := f.Effects.RenewWebhook(f.ctx(), owner, id, once)
	is.NoErr(err)
	is.True(replayed)
	is.Equal(again, third)

	was, err = f.Effects.RemoveWebhook(f.ctx(), owner, id)
	is.NoErr(err)
	is.Equal(was, third)
	fresh := f.webhook("https://a.example/")
	is.True(fresh.Token != third.Token) // a new webhook has the token of the old one
}

func TestWebhookIsTheCreatorsAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	f.finish(func() store.Claim { f.startRunner("r"); f.accept(f.turn()); return f.claimOne("r") }())
	e := f.record(f.due()[0], store.Attempt{Success: true, ResponseStatus: 200})
	for _, who := range []people.Identity{f.caller("Acme", "boss@acme.test", people.RoleOwner), f.caller("Rival",
		"eve@rival.test", people.RoleOwner)} {
		c, id := who.Caller, f.worker.ID
		_, err1 := f.Effects.Webhook(f.ctx(), c, id)
		_, err2 := f.Effects.SetWebhook(f.ctx(), c, id, "https://evil.example/")
		_, err3 := f.Effects.RemoveWebhook(f.ctx(), c, id)
		_, _, err4 := f.Effects.RenewWebhook(f.ctx(), c, id, db.IdempotencyKey{})
		_, _, err5 := f.Effects.Executions(f.ctx(), c, id, 1)
		_, err6 := f.Effects.Execution(f.ctx(), c, id, e.ID)
		_, err7 := f.Effects.ExecutedDelivery(f.ctx(), c, id, e.ID)
		_, err8 := f.Effects.CreateTestDelivery(f.ctx(), c, id)
		for _, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8} {
			is.True(db.IsKind(err, db.Forbidden))
		}
	}
}

// TestDeliveriesOfEveryEnd ends turns in every way.
func TestDeliveriesOfEveryEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	var told []string
	f.Effects.OnDelivery(func(workerID string) { told = append(told, workerID) })
	f.finish(running(f))
	is.Equal(len(f.due()), 0) // there was no webhook yet
	f.webhook("https://a.example/")

	completed := f.accept(f.turn())
	f.finish(f.claimOne("r"))
	failed := f.accept(f.turn())
	_, err := f.FinishTurn(f.ctx(), f.claimOne("r"), nil, store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x"}})
	is.NoErr(err)
	aborted := f.accept(f.turn())
	next := f.follow(aborted)
	is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, aborted.TaskID)))
	queued := f.accept(f.turn())
	last := f.follow(queued)
	f.finish(f.claimOne("r"))
	_, err = f.FinishTurn(f.ctx(), f.claimOne("r"), nil, store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x"}})
	is.NoErr(err)
	late := f.follow(queued)
	f.follow(queued)
	_, err = f.FinishTurn(f.ctx(), f.claimOne("r"), nil, store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x"}})
	is.NoErr(err)
	cancelled := f.claimOne("r")
	is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, queued.TaskID)))
	after := f.follow(queued) // not cancelled, and later than the delivery
	is.NoErr(errOf(f.FinishTurn(f.ctx(), cancelled, nil, store.AbortedOutcome())))
	f.finish(f.claimOne("r"))
	given := f.accept(f.turn())
	for _, dying := range []string{"r1", "r2", "r3"} {
		f.startRunner(dying)
		is.Equal(f.claimOne(dying).ID, given.ID)
	}
	f.startRunner("r4")
	want := []struct {
		turn, kind string
		status     store.Status
		turns      int64
	}{{completed.ID, store.TaskCompleted, store.Completed, 1}, {failed.ID, store.TaskFailed, store.Failed, 1},
		{next.ID, store.TaskAborted, store.Aborted, 2},                                                   // one for all turns
		{queued.ID, store.TurnCompleted, store.Pending, 2}, {last.ID, store.TaskFailed, store.Failed, 2}, // with a queued turn, and without
		{late.ID, store.TurnFailed, store.Pending, 4}, {cancelled.ID, store.TaskAborted, store.Aborted, 4}, // without later turns
		{after.ID, store.TaskCompleted, store.Completed, 5}, {given.ID, store.TaskFailed, store.Failed, 1}}
	due := f.due()
	is.Equal(len(due), len(want))
	is.Equal(len(told), len(want)) // each delivery was reported
	for i, d := range due {
		task, turn, w, err := f.Effects.DeliverySubject(f.ctx(), d)
		is.NoErr(err)
		is.Equal(turn.ID, want[i].turn) // in the order of their ends
		is.Equal(d.Type, want[i].kind)
		is.Equal(task.ID, turn.TaskID)
		is.Equal(task.Status, want[i].status) // the status at that time
		is.Equal(task.TurnCount, want[i].turns)
		is.Equal(task.CompletedAt != nil, task.Status.Ended())
		is.Equal(w.ID, f.worker.ID)
		is.Equal(d.Webhook.URL, "https://a.example/")
		is.True(!d.Test())
	}
	is.Equal(told[0], f.worker.ID)
}

// TestDeliveryIsOfTheTransaction undoes the end of a turn. Its delivery must be undone with it.
func TestDeliveryIsOfTheTransaction(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	f.Effects.OnDelivery(func(string) { t.Error("told of what is not there") })
	c := running(f)
	f.exec(`CREATE TRIGGER full BEFORE INSERT ON usage BEGIN SELECT raise(ABORT, 'no'); END`)
	is.True(errOf(f.FinishTurn(f.ctx(), c, nil, store.Outcome{Status: store.Completed})) != nil)
	is.Equal(len(f.due()), 0)
	f.exec(`DROP TRIGGER full`)
	f.Effects.OnDelivery(func(string) {})
	f.exec(`CREATE TRIGGER full BEFORE INSERT ON deliveries BEGIN SELECT raise(ABORT, 'no'); END`)
	is.True(errOf(f.FinishTurn(f.ctx(), c, nil, store.Outcome{Status: store.Completed})) != nil)
	is.Equal(f.reread(c.Turn).Status, store.Running) // nor does a turn end without a delivery
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	turn := f.finish(running(f))
	d := f.due()[0]
	retry := f.clock.now().Add(time.Minute)
	e := f.record(d, store.Attempt{ResponseStatus: 503, ErrorMessage: "status 503", Duration: 1234 * time.Microsecond, Retry: retry})
	is.Equal(e, store.Execution{ID: e.ID, WorkerID: f.worker.ID, TaskID: turn.TaskID, TaskTitle: "Go", URL: "https://a.example/",
		RequestStatus: "error", ResponseStatus: 503, ErrorMessage: "status 503", Duration: time.Millisecond, CreatedAt: f.clock.now().UTC()})
	is.Equal(len(f.due()), 0)
	at, ok, err := f.Effects.WorkerDelivery(f.ctx(), f.worker.ID)
	is.NoErr(err)
	is.True(ok && at.Equal(retry))
	f.clock.advance(time.Minute)
	d = f.due()[0]
	is.Equal(d.Attempts, int64(1))

	f.record(d, store.Attempt{Manual: true, ErrorMessage: "no response"})
	is.Equal(f.due()[0].Attempts, int64(1)) // a manual attempt does not affect the schedule
	again, err := f.Effects.ExecutedDelivery(f.ctx(), f.owner.Caller, f.worker.ID, e.ID)
	is.NoErr(err)
	is.Equal(again.ID, d.ID)
	f.record(again, store.Attempt{Manual: true, Success: true, ResponseStatus: 204})
	is.Equal(len(f.due()), 0) // unless it succeeds
	_, ok, err = f.Effects.WorkerDelivery(f.ctx(), f.worker.ID)
	is.NoErr(err)
	is.True(!ok)
	f.record(again, store.Attempt{ErrorMessage: "late", Retry: f.clock.now()})
	is.Equal(len(f.due()), 0) // an ended delivery stays ended
}

func TestRemovedWebhookGivesUp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	f.finish(running(f))
	d := f.due()[0] // it is being sent
	renewed, _, err := f.Effects.RenewWebhook(f.ctx(), f.owner.Caller, f.worker.ID, db.IdempotencyKey{})
	is.NoErr(err)
	current, ok, err := f.Effects.CurrentDelivery(f.ctx(), d)
	is.NoErr(err)
	is.True(ok)
	is.Equal(current.Webhook, renewed) // with the new settings
	e := f.record(d, store.Attempt{ErrorMessage: "no", Retry: f.clock.now()})
	is.NoErr(errOf(f.Effects.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID)))
	_, ok, err = f.Effects.CurrentDelivery(f.ctx(), d)
	is.NoErr(err)
	is.True(!ok)
	f.record(d, store.Attempt{ErrorMessage: "no", Retry: f.clock.now()})
	f.webhook("https://b.example/")
	is.Equal(len(f.due()), 0)
	is.NoErr(errOf(f.Effects.RemoveWebhook(f.ctx(), f.owner.Caller, f.worker.ID)))
	is.True(db.IsKind(errOf(f.Effects.ExecutedDelivery(f.ctx(), f.owner.Caller, f.worker.ID, e.ID)), db.Conflict))
	is.True(db.IsKind(errOf(f.Effects.CreateTestDelivery(f.ctx(), f.owner.Caller, f.worker.ID)), db.Conflict))
}

func TestTestDelivery(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	d, err := f.Effects.CreateTestDelivery(f.ctx(), f.owner.Caller, f.worker.ID)
	is.NoErr(err)
	is.True(d.Test())
	is.Equal(len(f.due()), 0) // it is not sent automatically
	_, _, w, err := f.Effects.DeliverySubject(f.ctx(), d)
	is.NoErr(err)
	is.Equal(w.ID, f.worker.ID)
	e := f.record(d, store.Attempt{Manual: true, Success: true, ResponseStatus: 200})
	is.Equal(e.TaskID+e.TaskTitle, "")
	again, err := f.Effects.ExecutedDelivery(f.ctx(), f.owner.Caller, f.worker.ID, e.ID)
	is.NoErr(err)
	is.True(again.Test())
}

func TestWaitingWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	none, err := f.Effects.WaitingWorkers(f.ctx(), "", 10)
	is.NoErr(err)
	is.Equal(len(none), 0)
	f.startRunner("r")
	var want []store.WaitingWorker
	for range 3 {
		f.worker = f.newWorker(f.owner, workers.NewWorker{})
		f.webhook("https://a.example/")
		want = append(want, store.WaitingWorker{ID: f.worker.ID, Due: f.clock.now()})
		for range 2 {
			f.accept(f.turn())
			f.finish(f.claimOne("r"))
			f.clock.advance(time.Second)
		}
	}
	for limit := 1; limit <= 4; limit++ {
		var got []store.WaitingWorker
		for after := ""; ; {
			list, err := f.Effects.WaitingWorkers(f.ctx(), after, limit)
			is.NoErr(err)
			ordertest.AtMost(is, len(list), limit)
			if len(list) == 0 {
				break
			}
			got, after = append(got, list...), list[len(list)-1].ID
		}
		is.Equal(len(got), len(want))
		for i, w := range got {
			is.Equal(w.ID, want[i].ID)        // in the order of their creation
			is.True(w.Due.Equal(want[i].Due)) // of the first delivery
		}
	}
}

func TestExecutionPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	page := func(n int64) (ids []string, total int64) {
		t.Helper()
		list, total, err := f.Effects.Executions(f.ctx(), f.owner.Caller, f.worker.ID, n)
		is.NoErr(err)
		for _, e := range list {
			ids = append(ids, e.ID)
		}
		return ids, total
	}
	ids, total := page(1)
	is.Equal(len(ids)+int(total), 0)
	f.webhook("https://a.example/")
	d, err := f.Effects.CreateTestDelivery(f.ctx(), f.owner.Caller, f.worker.ID)
	is.NoErr(err)
	var made []string
	for range 120 {
		f.clock.advance(time.Hour)
		made = append([]string{f.record(d, store.Attempt{Manual: true}).ID}, made...)
	}
	var all []string
	for n := int64(1); n <= 3; n++ {
		ids, total := page(n)
		is.Equal(total, int64(120))
		all = append(all, ids...)
	}
	is.Equal(all, made) // newest first, without repetition
	for _, n := range []int64{4, 121, 1 << 60} {
		ids, _ = page(n)
		is.Equal(len(ids), 0)
	}
	n, err := f.Effects.PruneDeliveries(f.ctx(), 100*time.Hour, 1000)
	is.NoErr(err)
	is.Equal(n, int64(19)) // the delivery is kept while its attempts are
	ids, total = page(3)
	is.Equal(total, int64(101))
	is.Equal(ids, made[100:101])
	for range 3 {
		is.NoErr(errOf(f.Effects.PruneDeliveries(f.ctx(), -time.Hour, 50)))
	}
	_, total = page(1)
	is.Equal(total, int64(0))
	is.Equal(f.count(`SELECT count(*) FROM deliveries`), int64(0))
}
