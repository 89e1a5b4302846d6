package store_test

import (
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
)

// watched makes numbered envelopes. It returns the facts passed to them and the folders that were
// read.
func (f *fixture) watched() (occasions *[]store.EnvelopeFacts, looked *[]store.Folder) {
	var mu sync.Mutex
	occasions, looked = new([]store.EnvelopeFacts), new([]store.Folder)
	f.UseEnvelopes(store.Envelopes{
		Look: func(folder store.Folder) store.Listing {
			mu.Lock()
			defer mu.Unlock()
			*looked = append(*looked, folder)
			return store.Listing{Folder: folder, Names: []string{path.Join(folder.WorkerID, folder.TaskID)}}
		},
		Compose: func(o store.EnvelopeFacts) string {
			*occasions = append(*occasions, o)
			return "envelope " + strings.Repeat("x", len(*occasions))
		}})
	return occasions, looked
}

func TestEnvelopeOfEachDoor(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	zone, err := time.LoadLocation("Asia/Tokyo")
	is.NoErr(err)
	f := newFixtureWith(t, store.Options{Timezone: zone})
	seen, looked := f.watched()
	check := func(turnID string, channel store.Channel, author, zone string, names ...string) {
		t.Helper()
		is := is.New(t)
		o := (*seen)[len(*seen)-1]
		is.Equal(o.Channel, channel)
		is.Equal(o.AuthorEmail, author)
		is.Equal(o.At.Location().String(), zone)
		is.Equal(o.Workspace.Names, names)
		turn, err := f.Turn(f.ctx(), turnID)
		is.NoErr(err)
		is.Equal(turn.Envelope, "envelope "+strings.Repeat("x", len(*seen))) // in the row
	}
	shared := f.worker.ID

	first := f.accept(f.turn())
	check(first.ID, "api", "ann@acme.test", "Asia/Tokyo", shared)
	n := f.turn()
	n.TaskID, n.Channel = first.TaskID, store.ChannelMCP
	check(f.accept(n).ID, store.ChannelMCP, "ann@acme.test", "Asia/Tokyo", shared)

	f.schedule(store.When{Type: store.CronType, Cron: "CRON_TZ=Europe/Berlin * * * * *"})
	f.clock.advance(2 * time.Minute)
	check(f.fireDue()[0], "schedule", "ann@acme.test", "Europe/Berlin", shared)
	is.Equal((*seen)[len(*seen)-1].Schedule.When.Cron, "CRON_TZ=Europe/Berlin * * * * *")
	other := f.schedule(store.When{Type: store.Interval, IntervalSeconds: 3600})
	ran, err := f.RunSchedule(f.ctx(), f.owner.Caller, f.worker.ID, other.ID, db.IdempotencyKey{})
	is.NoErr(err)
	check(ran.Turn.ID, "schedule", "ann@acme.test", "Asia/Tokyo", shared)

	// A stranger's task has its own, new folder, so the shared folder is not read.
	mail := f.mail("1@x")
	mail.Turn.Mail = &store.MailNote{Subject: "Lunch"}
	before := len(*looked)
	list := f.receive(mail)
	check(list[0].TurnID, "email", "", "Asia/Tokyo")
	is.Equal((*seen)[len(*seen)-1].Mail.Subject, "Lunch")
	is.Equal(len(*looked), before)

	// For the next mail of the task, the task's folder is read.
	again := f.mail("2@x")
	again.Turn.Caller, again.Turn.TaskID = mail.Turn.Caller, list[0].TaskID
	list = f.receive(again)
	check(list[0].TurnID, "email", "", "Asia/Tokyo", shared+"/"+list[0].TaskID)
}

// TestLookTakesNoPath checks that a worker id cannot refer to another folder.
func TestLookTakesNoPath(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, looked := f.watched()
	for _, id := range []string{"../../etc", "/etc", "", "wrk_x", f.worker.ID + "/.."} {
		n := f.turn()
		n.WorkerID = id
		is.True(errOf(f.CreateTurn(f.ctx(), n)) != nil) // the worker does not exist
		_, err := f.RunSchedule(f.ctx(), f.owner.Caller, id, "sch_x", db.IdempotencyKey{})
		is.True(err != nil) // nor does a schedule of it
	}
	is.Equal(len(*looked), 0)
}
