package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// alertHook adds a webhook channel for all topics.
func (f *fixture) alertHook(url string) store.AlertChannel {
	f.t.Helper()
	a, err := f.Effects.AddAlertChannel(f.t.Context(), f.owner.Caller, store.NewAlertChannel{URL: url,
		Topics: store.AlertTopics(), Frequency: store.AlertNow})
	is.New(f.t).NoErr(err)
	return a
}

// fail creates a task whose turn ends with an error.
func (f *fixture) fail(title string) (taskID string) {
	f.t.Helper()
	w, _, err := f.Workers.CreateWorker(f.t.Context(), f.owner.Caller, workers.NewWorker{Title: "A & B"},
		db.IdempotencyKey{})
	is.New(f.t).NoErr(err)
	return f.finish(store.NewTurn{WorkerID: w.ID, Input: "x", Title: title},
		store.Outcome{Status: store.Failed, Failure: &store.Failure{Code: "x", Message: "y"}})
}

// channel returns the only channel, as the store lists it.
func (f *fixture) channel() store.AlertChannel {
	f.t.Helper()
	list, err := f.Effects.AlertChannels(f.t.Context(), f.owner.Caller)
	if err != nil || len(list) != 1 {
		f.t.Fatalf("%d channels, %v", len(list), err)
	}
	return list[0]
}

// TestAlertToASlackWebhook checks the body that Slack shows. A server that echoes the path refuses
// the first attempt. The second attempt has the same id.
func TestAlertToASlackWebhook(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	refuse := make(chan bool, 1)
	refuse <- true
	r := f.receive(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-refuse:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, "Cannot POST %s", req.URL.Path)
		default:
			_, _ = w.Write([]byte("ok\n"))
		}
	})
	f.start()
	f.alertHook(r.URL + "/services/T0000/supersecret")
	taskID := f.fail("<!channel> & <https://evil.example|pay>\r\nnow\u202e @all [pay](x)")
	f.clock.advance(time.Minute)
	storetest.Eventually(f.t, "the first attempt", func() bool {
		last := f.channel().Last
		return last != nil && last.Answer != ""
	})
	last := f.channel().Last
	is.Equal(last.Status, "queued")
	is.Equal(last.Answer, "404 Not Found: Cannot POST (hidden)") // the path is a secret
	f.clock.advance(time.Minute)
	storetest.Eventually(f.t, "the second attempt", func() bool { return f.channel().Last.Status == "sent" })
	is.Equal(f.channel().Last.Answer, "200 OK: ok")
	is.Equal(len(r.all()), 2)
	is.Equal(r.got[0].header.Get("Webhook-Id"), last.ID)
	is.Equal(r.got[1].header.Get("Webhook-Id"), last.ID)
	is.Equal(string(r.got[0].body), string(r.got[1].body)) // each attempt has the same body
	var body view.Alert
	is.NoErr(json.Unmarshal(r.got[1].body, &body))
	is.Equal(body.Text, "*Acme*\n• The task <http://jm.test/tasks/"+taskID+"?organization="+f.owner.OrganizationID+
		"|“&lt;!channel&gt; &amp; &lt;https://evil.example|pay&gt; now\\u202e @\u200ball [pay]\u200b(x)”> of “A &amp; B” failed.")
	is.Equal(body.Type, "alert")
	is.Equal(body.Items[0].Event, "task.failed")
	is.Equal(*body.Items[0].WorkerTitle, "A & B")
	is.Equal(*body.Items[0].TaskID, taskID)
}

// TestAlertsAreGivenUp checks that a dead endpoint is retried for hours, and that the channel then
// shows the failure.
func TestAlertsAreGivenUp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.start()
	f.alertHook("http://127.0.0.1:1/x")
	f.fail("T")
	for attempt := int64(1); attempt <= 7; attempt++ {
		f.clock.advance(24 * time.Hour)
		storetest.Eventually(f.t, fmt.Sprintf("attempt %d", attempt), func() bool {
			last := f.channel().Last
			if last == nil || last.Attempts != attempt || last.NextAttempt == nil {
				return last != nil && last.Attempts == attempt
			}
			pause := last.NextAttempt.Sub(f.clock.now())
			return pause < 30*time.Second || pause > 2*time.Minute // the pause is not that of the lease
		})
	}
	last := f.channel().Last
	is.Equal(last.Status, "failed")
	is.Equal(last.Answer, "the endpoint refused the connection")
}

// TestAlertsAfterAKill checks that a message without a stored response is sent again with the same
// id.
func TestAlertsAfterAKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.receive(func(http.ResponseWriter, *http.Request) {})
	f.alertHook(r.URL + "/x")
	f.fail("T")
	f.clock.advance(time.Minute)
	_, err := f.Effects.MakeAlertMessages(t.Context(), 1)
	is.NoErr(err)
	list, err := f.Effects.ClaimAlertMessages(t.Context(), 1, time.Minute) // claimed by a process that crashes here
	is.NoErr(err)
	is.Equal(len(list), 1)
	f.start()
	f.clock.advance(2 * time.Minute)
	storetest.Eventually(f.t, "the message", func() bool { return len(r.all()) == 1 })
	is.Equal(r.got[0].header.Get("Webhook-Id"), list[0].ID)
	storetest.Eventually(f.t, "its end", func() bool { return f.channel().Last.Status == "sent" })
	is.Equal(f.channel().Last.Attempts, int64(2))
}

// TestAlertTest checks that a test message returns the endpoint's real response.
func TestAlertTest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.receive(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "invalid_token", http.StatusForbidden) })
	f.start()
	a := f.alertHook(r.URL + "/x")
	m, err := f.hooks.TestAlert(t.Context(), f.owner.Caller, a.ID)
	is.NoErr(err)
	is.Equal(m.Answer, "403 Forbidden: invalid_token")
	last := f.channel().Last
	is.Equal(last.Status, "failed") // a test is not retried
	is.Equal(last.Answer, m.Answer)
	is.True(strings.Contains(string(r.got[0].body), `"type":"test"`)) // programs can recognize a test
	_, err = f.hooks.TestAlert(t.Context(), f.owner.Caller, a.ID)
	is.True(db.IsKind(err, db.Limited)) // a second test at once
	other := f.owner.Caller
	other.OrganizationID = "org_other"
	_, err = f.hooks.TestAlert(context.Background(), other, a.ID)
	is.True(err != nil) // another organization's channel
}
