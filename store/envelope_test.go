package store_test

import (
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// watched makes envelopes that are numbered, and returns the occasions that they tell of
// and the folders that were looked at.
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
		is.Equal(turn.Envelope, "envelope "+strings.Repeat("x", len(*seen))) // it is in the row
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
	ran, err := f.RunSchedule(f.ctx(), f.owner.Caller, f.worker.ID, other.ID, store.IdempotencyKey{})
	is.NoErr(err)
	check(ran.Turn.ID, "schedule", "ann@acme.test", "Asia/Tokyo", shared)

	// A stranger's task has a folder of its own, which is new: nobody looks at the shared one.
	mail := f.mail("1@x")
	mail.Turn.Mail = &store.MailNote{Subject: "Lunch"}
	before := len(*looked)
	list := f.receive(mail)
	check(list[0].TurnID, "email", "", "Asia/Tokyo")
	is.Equal((*seen)[len(*seen)-1].Mail.Subject, "Lunch")
	is.Equal(len(*looked), before)

	// The next mail of the task finds the task's folder.
	again := f.mail("2@x")
	again.Turn.Caller, again.Turn.TaskID = mail.Turn.Caller, list[0].TaskID
	list = f.receive(again)
	check(list[0].TurnID, "email", "", "Asia/Tokyo", shared+"/"+list[0].TaskID)
}

// TestLookTakesNoPath checks that the id of a worker cannot name another folder.
func TestLookTakesNoPath(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, looked := f.watched()
	for _, id := range []string{"../../etc", "/etc", "", "wrk_x", f.worker.ID + "/.."} {
		n := f.turn()
		n.WorkerID = id
		_, err := f.CreateTurn(f.ctx(), n)
		is.True(err != nil) // there is no such worker
		_, err = f.RunSchedule(f.ctx(), f.owner.Caller, id, "sch_x", store.IdempotencyKey{})
		is.True(err != nil) // nor a schedule of one
	}
	is.Equal(len(*looked), 0)
}
