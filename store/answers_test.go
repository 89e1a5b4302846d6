package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestFormerMembersCannotDecide receives an answer by mail. Its author leaves the organization
// after the mail was read.
func TestFormerMembersCannotDecide(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"a member": false, "a former member": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			member := f.caller("Acme", "mo@acme.test", people.RoleMember)
			n := f.turn()
			n.Caller = member.Caller
			n.Caller.Trigger = people.TriggerEmail
			turn := f.accept(n)
			f.startRunner("r")
			c := f.claim("r", 1)[0]
			st := asking(f, 0, 1, 0)
			st.Parts[1].Input, st.Approvals[0].Kind = []byte(`{"question":"Which?"}`), store.KindQuestion
			is.NoErr(f.JournalStep(t.Context(), c, st))
			is.NoErr(errOf(f.SuspendTurn(t.Context(), c, 0, f.clock.now().Add(time.Hour))))
			if leaves {
				is.NoErr(errOf(f.People.RemoveMember(t.Context(), f.owner.Caller, member.UserID)))
			}
			answer := store.NewEmail{Worker: workers.Worker{ID: turn.WorkerID, OrganizationID: turn.OrganizationID},
				MessageID: "answer@b.test", From: "mo@acme.test", Verdicts: []byte(`{}`), Answer: &store.MailAnswer{ApprovalID: st.Approvals[0].ID, Text: "this"},
				Turn: &store.NewTurn{Caller: n.Caller, WorkerID: turn.WorkerID, TaskID: turn.TaskID, Input: "this"}}
			_, _, err := f.ReceiveEmails(t.Context(), []store.NewEmail{answer}, []byte("this"), store.MailLimits{})
			is.True(leaves || err == nil) // the answer of a member is accepted
			a, err := f.Approval(t.Context(), f.owner.Caller, turn.TaskID, st.Approvals[0].ID)
			is.NoErr(err)
			want := store.ApprovalAnswered
			if leaves {
				want = store.ApprovalPending
			}
			is.Equal(a.Status, want)
		})
	}
}

// TestMessageAnswersAQuestion checks that a message to a task is the answer to its open question, also if
// the queue is full. A repetition of the message is none, and a later message is a new turn.
func TestMessageAnswersAQuestion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{QueueLimit: 1})
	c, q := questioned(f)
	waiting := f.accept(f.turn())
	is.True(db.IsKind(errOf(f.CreateTurn(f.ctx(), f.turn())), db.Busy))
	n := f.turn()
	n.WorkerID, n.TaskID, n.Input = "", c.TaskID, "2"
	n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "once", Hash: hash("2")}
	a, err := f.CreateTurn(f.ctx(), n)
	is.NoErr(err)
	is.Equal([]any{a.Turn.ID, a.Answered.ID, a.Answered.Answer, a.WorkerCreatedAt}, []any{c.ID, q.ID, "White wine", f.worker.CreatedAt})
	is.Equal(f.task(c.TaskID).TurnCount, int64(1))
	again, err := f.CreateTurn(f.ctx(), n)
	is.NoErr(err)
	is.Equal([]any{again.Replayed, again.Turn.ID, again.Answered == nil}, []any{true, c.ID, true})
	is.Equal(len(f.claim("r", 5)), 2)
	is.Equal(f.reread(c.Turn).Status, store.Running) // it goes on
	is.Equal(f.reread(waiting).Status, store.Running)
	n.IdempotencyKey = db.IdempotencyKey{}
	later, err := f.CreateTurn(f.ctx(), n)
	is.NoErr(err)
	is.Equal(later.Turn.Seq, int64(1))
	f.checkCounters()
}

// TestQuestionsYieldToEarlierMessages suspends a turn for a question while the task has another message in
// its queue. A message of the person who is asked came before the question: it must not wait behind it.
func TestQuestionsYieldToEarlierMessages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		by      string // the author of the message that waits: "", "author" or "other"
		trigger people.Trigger
		calls   []int64
		want    []store.ApprovalStatus
	}{
		"no message": {"", "", []int64{0}, []store.ApprovalStatus{store.ApprovalPending}},
		"a message": {"author", people.TriggerAPI, []int64{0},
			[]store.ApprovalStatus{store.ApprovalCancelled}},
		"a mail": {"author", people.TriggerEmail, []int64{0},
			[]store.ApprovalStatus{store.ApprovalCancelled}},
		"a message on the page":    {"author", people.TriggerUI, []int64{0}, []store.ApprovalStatus{store.ApprovalCancelled}},
		"a message of a colleague": {"other", people.TriggerAPI, []int64{0}, []store.ApprovalStatus{store.ApprovalPending}},
		"a schedule": {"author", people.TriggerSchedule, []int64{0},
			[]store.ApprovalStatus{store.ApprovalPending}},
		"an approval as well": {"author", people.TriggerAPI, []int64{0, 1},
			[]store.ApprovalStatus{store.ApprovalCancelled, store.ApprovalPending}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			other := f.caller("Acme", "mo@acme.test", people.RoleAdmin)
			c := running(f)
			if tt.by != "" {
				n := f.turn()
				n.WorkerID, n.TaskID, n.Input = "", c.TaskID, "and in blue"
				if tt.by == "other" {
					n.Caller = other.Caller
				}
				n.Caller.Trigger = tt.trigger
				f.accept(n)
			}
			st := asking(f, 0, 2, tt.calls...)
			st.Parts[1].Input, st.Approvals[0].Kind = []byte(`{"question":"Which?"}`), store.KindQuestion
			is.NoErr(f.JournalStep(f.ctx(), c, st))
			list, suspended, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour))
			is.NoErr(err)
			is.Equal(suspended, tt.want[len(tt.want)-1] == store.ApprovalPending)
			for i, a := range list {
				is.Equal(a.Status, tt.want[i])
			}
			if suspended {
				return
			}
			is.True(says(errOf(f.answer(c, list[0].ID, "red")), "was withdrawn"))
			again, suspended, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour)) // after a crash
			is.NoErr(err)
			is.True(!suspended)
			is.Equal(again[0].Status, store.ApprovalCancelled)
			f.finish(c)
			is.Equal(f.claimOne("r").Input, "and in blue") // it waits no longer than for the turn
			f.checkCounters()
		})
	}
}

// TestQuestionsYieldToMailOfStrangers is TestQuestionsYieldToEarlierMessages for mail of people who are no
// members. Their addresses decide whether it is the same person.
func TestQuestionsYieldToMailOfStrangers(t *testing.T) {
	t.Parallel()
	for from, suspended := range map[string]bool{"bob@example.net": false, "bob@home.example": false, "eve@example.net": true} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.startRunner("r")
			first := f.mail("1@x")
			first.ReplyTo = "bob@home.example"
			task := f.receive(first)[0].TaskID
			c := f.claimOne("r")
			next := f.mail("2@x")
			next.From, next.Turn.TaskID = from, task
			f.receive(next)
			st := asking(f, 0, 1, 0)
			st.Parts[1].Input, st.Approvals[0].Kind = []byte(`{"question":"Which?"}`), store.KindQuestion
			is.NoErr(f.JournalStep(f.ctx(), c, st))
			_, waits, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour))
			is.NoErr(err)
			is.Equal(waits, suspended)
		})
	}
}

// TestMailedAnswers checks to which question the store gives the text of a mail.
func TestMailedAnswers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		names string // the question to whose mail the mail replies: "", "this", "earlier" or "unknown"
		want  string
	}{
		"a mail that names none":          {"", "White wine"},
		"a reply to the question":         {"this", "White wine"},
		"a reply to an unknown one":       {"unknown", "White wine"},
		"a reply to one that is answered": {"earlier", "2\n\n> older mail\n\n(This mail replies to an earlier question.)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c, earlier := questioned(f)
			is.NoErr(errOf(f.answer(c, earlier.ID, "no idea")))
			c = f.claimOne("r")
			st := asking(f, 1, 1, 0)
			st.Parts[1].ToolName, st.Parts[1].Input = "ask_user", []byte(`{"question":"Which?","choices":["Red wine","White wine"]}`)
			st.Approvals[0].Kind = store.KindQuestion
			is.NoErr(f.JournalStep(f.ctx(), c, st))
			is.NoErr(errOf(f.SuspendTurn(f.ctx(), c, 1, f.clock.now().Add(time.Hour))))
			caller := f.owner.Caller
			caller.Trigger = people.TriggerEmail
			id := map[string]string{"this": st.Approvals[0].ID, "earlier": earlier.ID, "unknown": db.NewID("apr",
				f.clock.now())}[tt.names]
			mail := store.NewEmail{Worker: workers.Worker{ID: c.WorkerID, OrganizationID: c.OrganizationID},
				MessageID: "answer@b.test",
				From:      "ann@acme.test", Verdicts: []byte(`{}`), Answer: &store.MailAnswer{ApprovalID: id, Text: "2",
					Quoted: "> older mail"},
				Turn: &store.NewTurn{Caller: caller, WorkerID: c.WorkerID, TaskID: c.TaskID, Input: "2", Budget: store.BudgetStandard}}
			list, _, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{mail}, []byte("2"), store.MailLimits{})
			is.NoErr(err)
			is.True(list[0].Answered != nil) // it waits in no queue
			is.Equal([]any{list[0].Answered.ID, list[0].Answered.Answer, list[0].TurnID}, []any{st.Approvals[0].ID, tt.want, c.ID})
		})
	}
}
