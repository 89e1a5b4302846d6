package store_test

import (
	"fmt"
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

// mail returns a mail from a stranger to the worker. It starts a task.
func (f *fixture) mail(id string) store.NewEmail {
	t := f.turn()
	t.Caller = people.Caller{OrganizationID: f.owner.OrganizationID, Trigger: people.TriggerEmail}
	return store.NewEmail{Worker: f.worker, Turn: &t, MessageID: id, Content: id, MailFrom: "bob@example.net", From: "bob@example.net", To: "w@x",
		ReplyTo: "bob@example.net", Subject: "Hello", Verdicts: []byte(`{}`), RemoteAddr: "127.0.0.1"}
}

// claimReplies claims the n replies that are due.
func (f *fixture) claimReplies(n int) []store.Reply {
	f.t.Helper()
	is := is.New(f.t)
	replies, err := f.Effects.ClaimReplies(f.ctx(), 10, time.Minute)
	is.NoErr(err)
	is.Equal(len(replies), n)
	return replies
}

func (f *fixture) receive(emails ...store.NewEmail) []store.Email {
	f.t.Helper()
	list, _, err := f.ReceiveEmails(f.ctx(), emails, []byte("source"), store.MailLimits{})
	is.New(f.t).NoErr(err)
	return list
}

func TestReceiveEmails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	other := f.mail("1@x")
	other.Worker = f.newWorker(f.owner, workers.NewWorker{})
	other.Turn.WorkerID = other.Worker.ID
	list, made, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{f.mail("1@x"), other, f.mail("1@x")}, []byte("source"), store.MailLimits{})
	is.NoErr(err)
	is.Equal(made, []bool{true, true, false}) // the third mail is a copy of the first
	is.Equal(list[0].ID, list[2].ID)          // and gets its id
	is.True(list[0].TaskID != list[1].TaskID) // one task per worker
	is.Equal(f.Queued(), int64(2))
	again, err := f.Effects.Email(f.ctx(), f.owner.Caller, list[0].ID)
	is.NoErr(err)
	seen, err := f.Effects.Email(f.ctx(), f.owner.Caller, list[2].CopyID)
	is.NoErr(err)
	is.Equal([]string{string(seen.Status), seen.Reason}, []string{"ignored", "a copy of the mail " + list[0].ID})
	is.True(db.IsKind(errOf(f.Releasable(f.ctx(), f.owner.Caller, seen.ID)), db.Conflict))
	is.Equal(again, list[0]) // the stored mail equals the returned mail
	source, err := f.Effects.EmailSource(f.ctx(), again)
	is.NoErr(err)
	is.Equal(string(source), "source")

	// All or none are stored.
	bad := f.mail("3@x")
	bad.Turn.Caller.OrganizationID = f.caller("Rival", "r@rival.test", people.RoleOwner).OrganizationID
	_, _, err = f.ReceiveEmails(f.ctx(), []store.NewEmail{f.mail("2@x"), bad}, []byte("source"), store.MailLimits{})
	is.True(db.IsKind(err, db.Forbidden))
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails WHERE status = 'accepted'`), int64(2))
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(3)) // the list shows the copy
	is.Equal(f.Queued(), int64(2))
	f.checkCounters()
}

func TestLargeSource(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	raw := []byte(strings.Repeat("0123456789abcdef", 10_000))
	list, _, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{f.mail("1@x")}, raw, store.MailLimits{})
	is.NoErr(err)
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails WHERE source IS NULL AND source_sha256 = ?`, sha(string(raw))), int64(1))
	e, err := f.Effects.Email(f.ctx(), f.owner.Caller, list[0].ID)
	is.NoErr(err)
	source, err := f.Effects.EmailSource(f.ctx(), e)
	is.NoErr(err)
	is.Equal(string(source), string(raw))
}

// TestReplyWithoutItsRecords makes the records of claimed replies unreadable. The replies are due again, and
// no attempt counts.
func TestReplyWithoutItsRecords(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	for _, id := range []string{"1@x", "2@x"} {
		f.receive(f.mail(id))
		f.finish(f.claimOne("run_1"))
	}
	storetest.Exec(t, f.Store, `ALTER TABLE inbound_emails RENAME TO hidden`)
	is.True(errOf(f.Effects.ClaimReplies(f.ctx(), 10, time.Minute)) != nil)
	storetest.Exec(t, f.Store, `ALTER TABLE hidden RENAME TO inbound_emails`)
	replies := f.claimReplies(2)
	for _, r := range replies {
		is.Equal(r.Attempts, int64(1))
	}
}

// damageTurn stores a value that the schema forbids, so that the row of a turn cannot be read.
func (f *fixture) damageTurn(id string) {
	f.t.Helper()
	storetest.Exec(f.t, f.Store, `PRAGMA ignore_check_constraints = 1; UPDATE turns SET own_folder = 7 WHERE id = '`+id+`'`)
}

// TestReplyWithADamagedRecord damages the turn of one reply. The other reply is claimed with its records.
func TestReplyWithADamagedRecord(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t) // a database server cannot ignore the constraints of its schema
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	f.receive(f.mail("1@x"))
	damaged := f.finish(f.claimOne("run_1"))
	f.receive(f.mail("2@x"))
	f.finish(f.claimOne("run_1"))
	f.damageTurn(damaged.ID)
	for _, want := range []int64{1, 2} { // the attempts
		replies := f.claimReplies(2)
		for _, r := range replies {
			is.Equal(r.Attempts, want)
			is.Equal(r.Unreadable != nil, r.TurnID == damaged.ID)
			is.Equal(r.Turn.OutputText == "Done", r.TurnID != damaged.ID)
			is.NoErr(f.Effects.RetryReply(f.ctx(), r, f.clock.now(), "later"))
		}
		is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE claimed = 0`), int64(2))
	}
	r := f.claimReplies(2)[0]
	is.True(r.Unreadable != nil)
	is.NoErr(f.Effects.GiveUpReply(f.ctx(), r, "given up")) // no record is needed for it
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE status = 'failed' AND error_message = 'given up'`), int64(1))
}

// TestReplyOfATurn ends turns of every trigger in every way. Only turns started by mail get a
// reply, which is in the same transaction.
func TestReplyOfATurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	e := f.receive(f.mail("1@x"))[0]
	f.finish(f.claimOne("run_1"))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE status = 'queued'`), int64(1))
	f.accept(f.turn())
	f.finish(f.claimOne("run_1"))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(1)) // not for the API turn
	waiting := f.receive(f.mail("2@x"))[0]
	is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, waiting.TaskID)))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(2)) // also for a cancelled turn
	silent := f.mail("3@x")
	silent.ReplyTo = ""
	f.receive(silent)
	f.finish(f.claimOne("run_1"))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(2)) // no address for a reply

	replies := f.claimReplies(2)
	r := replies[0]
	is.Equal([]string{r.To, r.Inbound.ID, r.TurnID, r.Turn.OutputText}, []string{"bob@example.net", e.ID, e.TurnID, "Done"})
	is.Equal(r.Attempts, int64(1))
	f.claimReplies(0) // the replies are being sent
	f.clock.advance(2 * time.Minute)
	replies, err := f.Effects.ClaimReplies(f.ctx(), 1, time.Minute)
	is.NoErr(err)
	is.Equal(replies[0].Attempts, int64(2)) // the first attempt has no recorded result
	late := replies[0]
	late.Attempts = 1
	is.NoErr(f.Effects.RetryReply(f.ctx(), late, f.clock.now(), "late"))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE claimed = 1 AND attempts = 2`), int64(1))
	is.NoErr(f.Effects.ComposeReply(f.ctx(), &replies[0], "Re: Hello", []byte("reply")))
	is.NoErr(f.Effects.EndReply(f.ctx(), replies[0], store.EmailSent, ""))
	is.NoErr(f.Effects.RetryReply(f.ctx(), replies[0], f.clock.now(), "late")) // a sent mail stays sent
	sent, err := f.Effects.Email(f.ctx(), f.owner.Caller, replies[0].ID)
	is.NoErr(err)
	is.Equal(sent.Status, store.EmailSent)
	is.NoErr(f.Effects.BounceReply(f.ctx(), workers.Worker{ID: "wrk_other"}, []string{sent.ID + "@x"}, "no"))
	is.NoErr(f.Effects.BounceReply(f.ctx(), f.worker, []string{"x@y", strings.ToUpper(sent.ID) + "@x"}, "no such user"))
	sent, err = f.Effects.Email(f.ctx(), f.owner.Caller, sent.ID)
	is.NoErr(err)
	is.Equal([]string{string(sent.Status), sent.Reason}, []string{"bounced", "no such user"})
}

func TestEmailList(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	private := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	for i := range 30 {
		n := f.mail(fmt.Sprintf("%d@x", i))
		switch i % 3 {
		case 1:
			n.Turn, n.Status, n.Reason = nil, store.EmailHeld, "a stranger"
		case 2:
			n.Turn, n.Status, n.Worker = nil, store.EmailIgnored, private
		}
		f.receive(n)
		f.clock.advance(time.Millisecond)
	}
	for _, c := range f.claim("run_1", 100) {
		f.finish(c)
		f.clock.advance(time.Millisecond)
	}
	member := f.caller("Acme", "m@acme.test", people.RoleMember)
	for name, tt := range map[string]struct {
		who  people.Caller
		q    store.EmailQuery
		want int
	}{
		"all":                {f.owner.Caller, store.EmailQuery{}, 40},
		"inbound":            {f.owner.Caller, store.EmailQuery{Direction: store.Inbound}, 30},
		"outbound":           {f.owner.Caller, store.EmailQuery{Direction: store.Outbound}, 10},
		"held":               {f.owner.Caller, store.EmailQuery{Status: store.EmailHeld}, 10},
		"queued":             {f.owner.Caller, store.EmailQuery{Status: store.EmailQueued}, 10},
		"of a worker":        {f.owner.Caller, store.EmailQuery{WorkerID: private.ID}, 10},
		"what a member sees": {member.Caller, store.EmailQuery{}, 30},
		"what others see":    {f.caller("Rival", "r@rival.test", people.RoleOwner).Caller, store.EmailQuery{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			seen, last := map[string]bool{}, "n"
			tt.q.Limit = 7
			for pages := 0; pages == 0 || tt.q.Cursor != ""; pages++ {
				list, next, err := f.Effects.Emails(f.ctx(), tt.who, tt.q)
				is.NoErr(err)
				ordertest.AtMost(is, len(list), 7) // the page is longer than its limit
				for _, e := range list {
					ordertest.Below(is, e.ID, last)
					is.True(!seen[e.ID]) // newest first, without repetition
					seen[e.ID], last = true, e.ID
				}
				tt.q.Cursor = next
				ordertest.Below(is, pages, 20) // the pages do not end
			}
			is.Equal(len(seen), tt.want)
		})
	}
	_, _, err := f.Effects.Emails(f.ctx(), f.owner.Caller, store.EmailQuery{Cursor: "x", Status: "lost", Direction: "up"})
	is.True(db.IsKind(err, db.Invalid))
	hidden, _, err := f.Effects.Emails(f.ctx(), f.owner.Caller, store.EmailQuery{WorkerID: private.ID, Limit: 1})
	is.NoErr(err)
	is.True(db.IsKind(errOf(f.Effects.Email(f.ctx(), member.Caller, hidden[0].ID)), db.Forbidden))
}

func TestSendAgain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	f.receive(f.mail("1@x"))
	f.finish(f.claimOne("run_1"))
	r := f.claimReplies(1)[0]
	in := r.Inbound
	is.NoErr(f.Effects.EndReply(f.ctx(), r, store.EmailFailed, "given up"))

	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	is.True(db.IsKind(errOf(f.Effects.SendAgain(f.ctx(), member.Caller, r.ID)), db.Forbidden))
	other := f.caller("Umbrella", "eve@umbrella.test", people.RoleOwner)
	_, err := f.Effects.SendAgain(f.ctx(), other.Caller, r.ID)
	is.True(db.IsKind(err, db.NotFound) || db.IsKind(err, db.Forbidden))
	is.True(db.IsKind(errOf(f.Effects.SendAgain(f.ctx(), f.owner.Caller, in.ID)), db.Conflict)) // a received mail

	e, err := f.Effects.SendAgain(f.ctx(), f.owner.Caller, r.ID)
	is.NoErr(err)
	is.Equal(e.Status, store.EmailQueued)
	is.Equal(e.Attempts, int64(0))
	again := f.claimReplies(1) // due at once
	is.NoErr(f.Effects.EndReply(f.ctx(), again[0], store.EmailSent, ""))
	_, err = f.Effects.SendAgain(f.ctx(), f.owner.Caller, r.ID)
	is.True(db.IsKind(err, db.Conflict)) // the mail was already delivered
}

// TestMailNeedsTheRoleOfNow demotes an Admin whose requests have already begun.
func TestMailNeedsTheRoleOfNow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	held, answered := f.mail("held@x"), f.mail("answered@x")
	held.Turn, held.Status = nil, store.EmailHeld
	list := f.receive(held, answered)
	f.finish(f.claimOne("run_1"))
	reply := f.claimReplies(1)[0]
	is.NoErr(f.Effects.EndReply(f.ctx(), reply, store.EmailFailed, "given up"))

	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	is.NoErr(errOf(f.People.ChangeRole(f.ctx(), f.owner.Caller, admin.UserID, people.RoleMember)))
	is.True(db.IsKind(errOf(f.ReleaseEmail(f.ctx(), admin.Caller, list[0].ID, *answered.Turn)), db.Forbidden))
	is.True(db.IsKind(errOf(f.Effects.SendAgain(f.ctx(), admin.Caller, reply.ID)), db.Forbidden))
}

// TestOldMailIsDeleted lets mails of every status expire, and answers a mail after its source was
// deleted.
func TestOldMailIsDeleted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	accepted := f.receive(f.mail("accepted@x"))[0]
	f.finish(f.claimOne("run_1"))
	replies := f.claimReplies(1)
	is.NoErr(f.Effects.ComposeReply(f.ctx(), &replies[0], "Re", []byte("answer")))
	kept := func(status store.EmailStatus, id string) store.NewEmail {
		n := f.mail(id)
		n.Turn, n.Status = nil, status
		return n
	}
	large := strings.Repeat("large ", 20_000)
	_, _, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{kept(store.EmailIgnored, "ignored@x"), kept(store.EmailHeld, "held@x")}, []byte(large), store.MailLimits{})
	is.NoErr(err)
	f.makeOld(sha(large), day)
	prune := func() int64 {
		n, err := f.Effects.PruneEmails(f.ctx(), 90*day, 10)
		is.NoErr(err)
		return n
	}
	source := func(e store.Email) string {
		e, err := f.Effects.Email(f.ctx(), f.owner.Caller, e.ID)
		is.NoErr(err)
		b, err := f.Effects.EmailSource(f.ctx(), e)
		is.NoErr(err)
		return string(b)
	}

	f.clock.advance(90 * day)
	f.receive(f.mail("young@x"))
	is.Equal(prune(), int64(0)) // not older than the limit
	f.clock.advance(time.Millisecond)
	is.Equal(prune(), int64(3))                                         // one of them stays in its thread
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(2))  // including the young mail
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails`), int64(1)) // the queued reply is unchanged
	is.Equal([]string{source(accepted), source(replies[0].Email)}, []string{"", "answer"})
	is.Equal(f.sweepAll(), int64(1)) // the large source

	is.NoErr(f.Effects.EndReply(f.ctx(), replies[0], store.EmailSent, ""))
	is.Equal(prune(), int64(1))
	is.Equal(source(replies[0].Email), "")
	is.Equal(prune(), int64(0))
	task, err := f.MailThread(f.ctx(), f.worker, []string{replies[0].ID + "@localhost"}, store.MemberProven,
		func(_ store.Task, secret bool) (bool, error) { return secret, nil })
	is.NoErr(err)
	is.Equal(task.ID, accepted.TaskID) // a new answer still belongs to the thread
	known, err := f.EmailKnown(f.ctx(), f.mail("accepted@x"))
	is.NoErr(err)
	is.True(known) // and a copy of the mail is still recognized
}

// TestForgettingIsBounded deletes many old mails in several steps.
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
		n, err := f.Effects.PruneEmails(f.ctx(), time.Minute, 3)
		is.NoErr(err)
		is.Equal(n, want)
	}
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(4))
}

// TestPostmasterMailIsBounded keeps the newest mails, and shows them only to members who may manage
// mail.
func TestPostmasterMailIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	f.receive(f.mail("work@x"))
	var first, last store.Email
	for i := range 1003 {
		e, err := f.ReceivePostmasterEmail(f.ctx(), store.NewEmail{MessageID: fmt.Sprint(i % 2), To: "postmaster@x", Subject: fmt.Sprint(i),
			Verdicts: []byte(`{}`)}, []byte("raw"))
		is.NoErr(err)
		if last = e; i == 3 {
			first = e
		}
	}
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails WHERE worker_id IS NULL`), int64(1000))
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(1001)) // no others are deleted
	for _, e := range []store.Email{first, last} {
		again, err := f.Effects.Email(f.ctx(), f.owner.Caller, e.ID)
		is.NoErr(err)
		is.Equal(again.Subject, e.Subject)
		for _, c := range []people.Identity{member, stranger} {
			is.True(db.IsKind(errOf(f.Effects.Email(f.ctx(), c.Caller, e.ID)), db.Forbidden))
			list, _, err := f.Effects.Emails(f.ctx(), c.Caller, store.EmailQuery{Status: store.EmailIgnored, Limit: 5})
			is.NoErr(err)
			is.Equal(len(list), 0)
		}
	}
}

// TestRepliesAfterKill claims replies and closes the folder without recording the results. The
// next process sends these replies at once, but not those with a recorded result.
func TestRepliesAfterKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.startRunner("run_1")
	for _, id := range []string{"sent@x", "cut@x", "later@x"} {
		f.receive(f.mail(id))
		f.finish(f.claimOne("run_1"))
	}
	replies, err := f.Effects.ClaimReplies(f.ctx(), 10, 10*time.Minute)
	is.NoErr(err)
	is.Equal(len(replies), 3)
	is.NoErr(f.Effects.EndReply(f.ctx(), replies[0], store.EmailSent, ""))
	is.NoErr(f.Effects.RetryReply(f.ctx(), replies[2], f.clock.now().Add(5*time.Minute), "greylisted"))
	is.NoErr(f.Close())
	s := storetest.Reopen(t, f.Dir(), store.Options{Now: f.clock.now})
	n, err := s.Effects.ReleaseReplies(t.Context())
	is.NoErr(err)
	is.Equal(n, int64(1))
	again, err := s.Effects.ClaimReplies(t.Context(), 10, 10*time.Minute)
	is.NoErr(err)
	is.Equal(len(again), 1) // neither the sent reply, nor the one that the relay has delayed
	is.Equal(again[0].ID, replies[1].ID)
	is.Equal(again[0].Attempts, int64(2)) // the attempt of the dead process counts
}
