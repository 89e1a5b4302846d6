package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestOldMailIsForgotten ages mail of every status, and answers one of them after
// its source is gone.
func TestOldMailIsForgotten(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	accepted := f.receive(f.mail("accepted@x"))[0]
	f.finish(f.claimOne("run_1"))
	replies, err := f.ClaimReplies(f.ctx(), 5, time.Minute)
	is.NoErr(err)
	is.NoErr(f.ComposeReply(f.ctx(), &replies[0], "Re", []byte("answer")))
	kept := func(status store.EmailStatus, id string) store.NewEmail {
		n := f.mail(id)
		n.Turn, n.Status = nil, status
		return n
	}
	large := strings.Repeat("large ", 20_000)
	_, _, err = f.ReceiveEmails(f.ctx(), []store.NewEmail{kept(store.EmailIgnored, "ignored@x"), kept(store.EmailHeld, "held@x")}, []byte(large), store.MailLimits{})
	is.NoErr(err)
	f.makeOld(sha(large), day)
	prune := func() int64 {
		n, err := f.PruneEmails(f.ctx(), 90*day, 10)
		is.NoErr(err)
		return n
	}
	source := func(e store.Email) string {
		e, err := f.Email(f.ctx(), f.owner.Caller, e.ID)
		is.NoErr(err)
		b, err := f.EmailSource(f.ctx(), e)
		is.NoErr(err)
		return string(b)
	}

	f.clock.advance(90 * day)
	f.receive(f.mail("young@x"))
	is.Equal(prune(), int64(0)) // not older than it
	f.clock.advance(time.Millisecond)
	is.Equal(prune(), int64(3))                                         // one that stays in its thread, two that leave nothing
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(2))  // with the young one
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(1)) // the queued reply as it was
	is.Equal([]string{source(accepted), source(replies[0].Email)}, []string{"", "answer"})
	is.Equal(f.sweepAll(), int64(1)) // the large source

	is.NoErr(f.EndReply(f.ctx(), replies[0], store.EmailSent, ""))
	is.Equal(prune(), int64(1))
	is.Equal(source(replies[0].Email), "")
	is.Equal(prune(), int64(0))
	task, secret, err := f.MailThread(f.ctx(), f.worker.ID, []string{replies[0].ID + "@localhost"})
	is.NoErr(err)
	is.True(secret && task.ID == accepted.TaskID) // who answers now is in the thread
	known, err := f.EmailKnown(f.ctx(), f.worker.ID, "accepted@x")
	is.NoErr(err)
	is.True(known) // and the same mail is still the same
}

// TestForgettingIsBounded has much old mail forgotten some at a time.
func TestForgettingIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	for _, id := range strings.Fields("1 2 3 4 5 6 7") {
		n := f.mail(id + "@x")
		if id > "4" {
			n.Turn, n.Status = nil, store.EmailIgnored
		}
		f.receive(n)
	}
	f.clock.advance(time.Hour)
	for _, want := range []int64{3, 3, 1, 0} {
		n, err := f.PruneEmails(f.ctx(), time.Minute, 3)
		is.NoErr(err)
		is.Equal(n, want)
	}
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(4))
}
