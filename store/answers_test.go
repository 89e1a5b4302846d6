package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
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
			member := f.caller("Acme", "mo@acme.test", store.RoleMember)
			n := f.turn()
			n.Caller = member.Caller
			n.Caller.Trigger = store.TriggerEmail
			turn := f.accept(n)
			f.startRunner("r")
			c := f.claim("r", 1)[0]
			st := asking(f, 0, 1, 0)
			st.Parts[1].Input, st.Approvals[0].Kind = []byte(`{"question":"Which?"}`), store.KindQuestion
			is.NoErr(f.JournalStep(t.Context(), c, st))
			is.NoErr(errOf(f.SuspendTurn(t.Context(), c, 0, f.clock.now().Add(time.Hour))))
			if leaves {
				is.NoErr(errOf(f.RemoveMember(t.Context(), f.owner.Caller, member.UserID)))
			}
			answer := store.NewEmail{Worker: store.Worker{ID: turn.WorkerID, OrganizationID: turn.OrganizationID},
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
	is.True(store.IsKind(errOf(f.CreateTurn(f.ctx(), f.turn())), store.Busy))
	n := f.turn()
	n.WorkerID, n.TaskID, n.Input = "", c.TaskID, "2"
	n.IdempotencyKey = store.IdempotencyKey{KeyID: f.owner.KeyID, Key: "once", Hash: hash("2")}
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
	n.IdempotencyKey = store.IdempotencyKey{}
	later, err := f.CreateTurn(f.ctx(), n)
	is.NoErr(err)
	is.Equal(later.Turn.Seq, int64(1))
	f.checkCounters()
}
