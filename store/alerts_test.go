package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// fail runs a new task of a worker. The task fails.
func (f *fixture) fail(worker workers.Worker) store.Turn {
	f.t.Helper()
	n := f.turn()
	n.WorkerID = worker.ID
	f.accept(n)
	turn, err := f.FinishTurn(f.ctx(), f.claimOne("r"), nil,
		store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x", Message: "y"}})
	is.New(f.t).NoErr(err)
	return turn
}

// hook adds a webhook channel for every topic.
func (f *fixture) hook(frequency store.AlertFrequency) store.AlertChannel {
	f.t.Helper()
	a, err := f.Effects.AddAlertChannel(f.ctx(), f.owner.Caller, store.NewAlertChannel{URL: "https://hook.example/secret",
		Topics: store.AlertTopics(), Frequency: frequency})
	is.New(f.t).NoErr(err)
	return a
}

// tell makes the due messages and returns those for webhooks.
func (f *fixture) tell() []store.AlertMessage {
	f.t.Helper()
	if _, err := f.Effects.MakeAlertMessages(f.ctx(), 50); err != nil {
		f.t.Fatal(err)
	}
	list, err := f.Effects.ClaimAlertMessages(f.ctx(), 50, time.Minute)
	is.New(f.t).NoErr(err)
	return list
}

// sent records that messages were delivered.
func (f *fixture) sent(list []store.AlertMessage) {
	f.t.Helper()
	for _, m := range list {
		is.New(f.t).NoErr(f.Effects.EndAlertMessage(f.ctx(), m, true, "200 OK", time.Time{}))
	}
}

// TestAlertsOfFailures lets a worker fail many times. These failures are in one message, and those
// of the next minutes are in another.
func TestAlertsOfFailures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	f.fail(f.worker) // there is no channel yet
	a := f.hook(store.AlertNow)
	is.Equal(a.Host, "hook.example")
	var last store.Turn
	for range 100 {
		last = f.fail(f.worker)
	}
	is.Equal(len(f.tell()), 0) // events at the same time are collected in one message
	f.clock.advance(5 * time.Second)
	list := f.tell()
	is.Equal(len(list), 1)
	is.Equal(len(list[0].Items), 1)
	item := list[0].Items[0]
	is.Equal(item.Event, store.EventTaskFailed)
	is.Equal(item.Count, int64(100))
	is.Equal(item.TaskID, last.TaskID)
	is.Equal(item.Worker, "Scribe")
	url, err := f.Effects.AlertURL(list[0])
	is.NoErr(err)
	is.Equal(url, "https://hook.example/secret")
	f.sent(list)
	f.fail(f.worker)
	f.fail(f.worker)
	f.clock.advance(9 * time.Minute)
	is.Equal(len(f.tell()), 0) // repeated events wait
	f.clock.advance(2 * time.Minute)
	list = f.tell()
	is.Equal(len(list), 1)
	is.Equal(list[0].Items[0].Count, int64(2))
	f.sent(list)
	f.clock.advance(time.Hour)
	is.Equal(len(f.tell()), 0) // no event is sent twice
}

// TestAlertsOfAFailingEndpoint collects events while a message cannot be delivered. The number of rows
// stays small, and the order of messages is kept.
func TestAlertsOfAFailingEndpoint(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	f.hook(store.AlertNow)
	f.fail(f.worker)
	f.clock.advance(time.Minute)
	first := f.tell()
	is.Equal(len(first), 1)
	is.NoErr(f.Effects.EndAlertMessage(t.Context(), first[0], false, "refused", f.clock.now().Add(time.Hour)))
	for i := range 120 {
		f.fail(f.newWorker(f.owner, workers.NewWorker{Title: fmt.Sprintf("W%d", i)}))
	}
	f.clock.advance(20 * time.Minute)
	is.Equal(len(f.tell()), 0)                                         // the next message waits for the first
	ordertest.AtMost(is, f.count(`SELECT count(*) FROM alerts`), 101)  // the rows have a limit
	is.Equal(f.count(`SELECT sum(count) FROM alerts`), int64(120))     // and no event is lost
	is.Equal(f.count(`SELECT count(*) FROM alert_messages`), int64(1)) // during the whole wait
	f.clock.advance(time.Hour)
	again := f.tell()
	is.Equal(len(again), 1)
	is.Equal(again[0].ID, first[0].ID) // the same id on every attempt
	is.Equal(again[0].Attempts, int64(2))
	is.NoErr(f.Effects.EndAlertMessage(t.Context(), again[0], false, "refused", time.Time{})) // the last attempt
	f.clock.advance(time.Minute)
	is.Equal(len(f.tell()), 1) // the collected events follow as soon as the channel is free
	channels, err := f.Effects.AlertChannels(t.Context(), f.owner.Caller)
	is.NoErr(err)
	is.Equal(channels[0].Pending, int64(0))
	is.Equal(channels[0].Last.Status, "queued")
}

// TestAlertsByRhythm checks alerts at the full hour, and in the morning of the server's zone.
func TestAlertsByRhythm(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Kolkata") // five and a half hours ahead
	is.New(t).NoErr(err)
	for name, tt := range map[string]struct {
		frequency store.AlertFrequency
		due       time.Time // the clock is at 23:59 UTC, which is 5:29 in the zone
	}{
		"hourly": {store.AlertHourly, time.Date(2026, 4, 1, 6, 0, 0, 0, zone)},
		"daily":  {store.AlertDaily, time.Date(2026, 4, 1, 8, 0, 0, 0, zone)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixtureWith(t, store.Options{Timezone: zone})
			f.startRunner("r")
			f.hook(tt.frequency)
			f.fail(f.worker)
			at, ok, err := f.Effects.AlertsDue(t.Context())
			is.NoErr(err)
			is.True(ok)                  // the event waits
			is.True(at.Equal(tt.due))    // until the next time of the frequency
			f.clock.advance(time.Minute) // more events follow later
			f.fail(f.worker)
			f.clock.advance(tt.due.Sub(f.clock.now()))
			list := f.tell()
			is.Equal(len(list), 1)
			is.Equal(list[0].Items[0].Count, int64(2))
		})
	}
}

// TestAlertsForMembers mails a member about the workers that they may see. After the member has
// left, no more mails are sent.
func TestAlertsForMembers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	_, err := f.Effects.AddAlertChannel(t.Context(), mo.Caller, store.NewAlertChannel{Email: "mo@acme.test",
		Topics: store.AlertTopics(), Frequency: store.AlertNow})
	is.True(db.IsKind(err, db.Forbidden)) // only Owners and Admins configure alerts
	f.caller("Other", "eve@other.test", people.RoleOwner)
	_, err = f.Effects.AddAlertChannel(t.Context(), f.owner.Caller, store.NewAlertChannel{Email: "eve@other.test",
		Topics: store.AlertTopics(), Frequency: store.AlertNow})
	is.True(db.IsKind(err, db.Invalid)) // only members get mails
	_, err = f.Effects.AddAlertChannel(t.Context(), f.owner.Caller, store.NewAlertChannel{Email: "mo@acme.test",
		Topics: []store.AlertTopic{store.TopicFailed}, Frequency: store.AlertNow})
	is.NoErr(err)
	secret := f.newWorker(f.owner, workers.NewWorker{Title: "Secret", Visibility: workers.Private})
	f.fail(secret)
	is.NoErr(f.Effects.AlertBackup(t.Context())) // a topic that the channel has not chosen
	is.Equal(f.count(`SELECT count(*) FROM alerts`), int64(0))
	f.fail(f.worker)
	f.clock.advance(time.Minute)
	is.Equal(len(f.tell()), 0) // a mail is not a message to a webhook
	replies := f.claimReplies(1)
	is.Equal(replies[0].Kind, store.ReplyAlert)
	is.Equal(replies[0].To, "mo@acme.test")
	is.Equal(replies[0].Alert.Items[0].Worker, "Scribe")
	is.NoErr(f.Effects.GiveUpReply(t.Context(), replies[0], "no such mailbox"))
	is.Equal(f.count(`SELECT count(*) FROM alerts WHERE count > 0`), int64(0)) // no alert for it
	list, err := f.Effects.AlertChannels(t.Context(), f.owner.Caller)
	is.NoErr(err)
	is.Equal(list[0].Last.Status, "failed")
	is.Equal(list[0].Last.Answer, "no such mailbox")
	is.NoErr(errOf(f.People.RemoveMember(t.Context(), f.owner.Caller, mo.UserID)))
	is.Equal(f.count(`SELECT count(*) FROM alert_channels`), int64(0))
}

// TestAlertsOfTheCap checks for one alert at 80 % of the cap, and one at the cap.
func TestAlertsOfTheCap(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.setCap(100)
	f.hook(store.AlertNow)
	spend := func(credits int64) (events []string) {
		t.Helper()
		is.NoErr(f.Effects.MeterCaller(t.Context(), f.owner.Caller, store.Usage{ModelCost: credits * db.NanosPerCredit}))
		f.clock.advance(time.Hour)
		list := f.tell()
		f.sent(list)
		for _, m := range list {
			for _, i := range m.Items {
				events = append(events, i.Event)
			}
		}
		return events
	}
	f.clock.advance(time.Hour) // into a new month: earlier spending does not count
	is.Equal(spend(79), nil)
	is.Equal(spend(2), []string{store.EventCapNear})
	is.Equal(spend(10), nil)
	is.Equal(spend(9), []string{store.EventCapReached})
	is.Equal(spend(9), nil)
	f.setCap(1000)
	is.Equal(spend(1), nil)
	f.setCap(120)
	is.Equal(spend(1), []string{store.EventCapNear}) // a lower cap is checked at once
}

// TestAlertsOfLostDeliveries checks the alert after the last attempt of a delivery to a worker's
// webhook.
func TestAlertsOfLostDeliveries(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.hook(store.AlertNow)
	is.NoErr(errOf(f.Effects.SetWebhook(t.Context(), f.owner.Caller, f.worker.ID, "https://a.example/")))
	f.accept(f.turn())
	f.runAll()
	due, err := f.Effects.DueDeliveries(t.Context(), f.worker.ID, 1)
	is.NoErr(err)
	attempt := store.Attempt{StartedAt: f.clock.now(), Retry: f.clock.now().Add(time.Second)}
	is.NoErr(errOf(f.Effects.RecordAttempt(t.Context(), due[0], attempt)))
	f.clock.advance(time.Minute)
	is.Equal(len(f.tell()), 0) // the delivery is retried
	attempt.Retry = time.Time{}
	is.NoErr(errOf(f.Effects.RecordAttempt(t.Context(), due[0], attempt)))
	f.clock.advance(time.Minute)
	list := f.tell()
	is.Equal(len(list), 1)
	is.Equal(list[0].Items[0].Event, store.EventDeliveryLost)
}

// TestAlertChannelPausedAndRemoved checks that unsent events of the channel are discarded.
func TestAlertChannelPausedAndRemoved(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	a := f.hook(store.AlertNow)
	other := f.caller("Other", "eve@other.test", people.RoleOwner)
	is.True(db.IsKind(f.Effects.RemoveAlertChannel(t.Context(), other.Caller, a.ID), db.NotFound)) // not its channel
	f.fail(f.worker)
	is.NoErr(f.Effects.PauseAlertChannel(t.Context(), f.owner.Caller, a.ID, true))
	f.fail(f.worker)
	f.clock.advance(time.Hour)
	is.Equal(len(f.tell()), 0)
	is.NoErr(f.Effects.PauseAlertChannel(t.Context(), f.owner.Caller, a.ID, false))
	f.fail(f.worker)
	f.clock.advance(time.Hour)
	list := f.tell()
	is.Equal(len(list), 1)
	is.Equal(list[0].Items[0].Count, int64(1))
	is.NoErr(f.Effects.RemoveAlertChannel(t.Context(), f.owner.Caller, a.ID))
	f.clock.advance(time.Hour)
	is.Equal(len(f.tell()), 0)       // a removed channel sends nothing
	f.clock.advance(100 * time.Hour) // its messages are deleted later
	is.NoErr(errOf(f.Effects.PruneAlerts(t.Context(), time.Hour, 10)))
	is.Equal(f.count(`SELECT count(*) FROM alert_messages`), int64(0))
	for range store.MaxAlertChannels {
		f.hook(store.AlertDaily)
	}
	_, err := f.Effects.AddAlertChannel(t.Context(), f.owner.Caller, store.NewAlertChannel{URL: "https://a.example/",
		Topics: store.AlertTopics(), Frequency: store.AlertNow})
	is.True(db.IsKind(err, db.Conflict)) // too many channels
}

// TestAlertsAfterClockSetBack sends an event while the clock is a month ahead. After the clock is
// corrected, retries and new events do not wait for a month.
func TestAlertsAfterClockSetBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("r")
	f.hook(store.AlertNow)
	const month = 30 * 24 * time.Hour
	f.fail(f.worker)
	f.clock.advance(month)
	list := f.tell()
	is.Equal(len(list), 1)
	is.NoErr(f.Effects.EndAlertMessage(f.ctx(), list[0], false, "500", f.clock.now().Add(time.Hour)))
	f.fail(f.worker)
	f.clock.advance(-month)
	is.NoErr(errOf(f.ClockSetBack(f.ctx(), month)))
	f.clock.advance(time.Hour)
	list = f.tell()
	is.Equal(len(list), 1) // the retry
	f.sent(list)
	f.clock.advance(15 * time.Minute)
	list = f.tell()
	is.Equal(len(list), 1) // the second failure
	f.sent(list)
	f.fail(f.worker)
	f.clock.advance(15 * time.Minute)
	is.Equal(len(f.tell()), 1) // a later failure
}
