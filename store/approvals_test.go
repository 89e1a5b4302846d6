package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// asking returns a step of n calls. The given calls need approval.
func asking(f *fixture, seq int64, n int, calls ...int64) store.Step {
	st := store.Step{Seq: seq, Attempt: 1, Finish: "tool-calls", Model: "m", StartedAt: f.clock.now().UTC(), CompletedAt: f.clock.now().UTC()}
	st.Parts = append(st.Parts, store.Part{Type: store.PartText, Text: "I will try."})
	for i := range n {
		st.Parts = append(st.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint("c", i), ToolName: fmt.Sprint("tool", i), Input: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	for _, c := range calls {
		st.Approvals = append(st.Approvals, store.Approval{ID: db.NewID("apr", f.clock.now()), Call: c})
	}
	return st
}

// suspended returns a turn that is suspended for the given calls of its first step.
func suspended(f *fixture, calls ...int64) (store.Claim, store.Step) {
	f.t.Helper()
	is := is.New(f.t)
	c := running(f)
	st := asking(f, 0, 3, calls...)
	is.NoErr(f.JournalStep(f.ctx(), c, st))
	_, suspended, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended)
	return c, st
}

func (f *fixture) decide(c store.Claim, id string, approved bool, reason string) (store.Approval, error) {
	return f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, id, store.Decision{Approved: approved, Reason: reason})
}

func TestSuspendedTurnHasNoRunner(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, st := suspended(f, 0, 2)
	is.Equal(f.reread(c.Turn).Status, store.Running) // clients see the turn as running
	is.Equal(f.task(c.TaskID).Status, store.Running)
	next := f.follow(c.Turn)
	is.Equal(len(f.claim("r", 5)), 0) // neither the suspended turn nor the next turn of its task
	is.NoErr(f.StopRunner(t.Context(), "r"))
	f.startRunner("r2") // another process
	is.NoErr(f.RenewLease(t.Context(), "r2", time.Minute))
	is.Equal(f.reread(c.Turn).Status, store.Running)
	is.Equal(len(f.claim("r2", 5)), 0)
	f.checkCounters()
	// The old claim is void.
	is.Equal(f.JournalStep(t.Context(), c, asking(f, 1, 0)), store.ErrClaimLost)
	is.Equal(errOf(f.FinishTurn(t.Context(), c, nil, store.Outcome{Status: store.Completed})), store.ErrClaimLost)
	is.Equal(errOf(f.SuspendTurn(t.Context(), c, 0, f.clock.now())), store.ErrClaimLost)
	is.Equal(f.BeginApproved(t.Context(), c, st.Approvals[0].ID), store.ErrClaimLost)

	a, err := f.decide(c, st.Approvals[1].ID, false, "not this one")
	is.NoErr(err)
	is.Equal([]any{a.Status, a.Reason, a.ToolName, a.ToolCallID, string(a.Input), a.Call, a.Decision, a.DecidedByUserID, a.TaskID, a.TurnID},
		[]any{store.ApprovalDenied, "not this one", "tool2", "c2", `{"n":2}`, int64(2), int64(0), f.owner.UserID, c.TaskID, c.ID})
	is.Equal(len(f.claim("r2", 5)), 0) // one approval is still pending
	a, err = f.decide(c, st.Approvals[0].ID, true, "")
	is.NoErr(err)
	is.Equal(a.Decision, int64(1))
	f.checkCounters()
	again := f.claimOne("r2")
	is.Equal([]any{again.ID, again.Claims}, []any{c.ID, int64(2)})
	journal, err := f.Journal(t.Context(), c.Turn)
	is.NoErr(err)
	is.Equal(len(journal[0].Approvals), 2)
	is.Equal(journal[0].Approvals[0].StartedAt, nil)
	is.NoErr(f.BeginApproved(t.Context(), again, journal[0].Approvals[0].ID))
	journal, err = f.Journal(t.Context(), c.Turn)
	is.NoErr(err)
	is.True(journal[0].Approvals[0].StartedAt != nil)
	_, known := journal[0].Approval(1)
	is.True(!known)
	f.finish(again)
	is.Equal(f.claimOne("r2").ID, next.ID)
	f.checkCounters()
	is.Equal(f.count(`SELECT count(*) FROM audit_log WHERE action IN ('approval.approve', 'approval.deny') AND user_id = ? AND api_key_id = ?
		AND detail LIKE '%"toolName":"tool%'`, f.owner.UserID, f.owner.KeyID), int64(2))
}

func TestDecisionsBeforeTheRest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	st := asking(f, 0, 2, 0, 1)
	is.NoErr(f.JournalStep(t.Context(), c, st))
	for _, a := range st.Approvals {
		is.NoErr(errOf(f.decide(c, a.ID, true, "")))
	}
	is.Equal(f.Queued(), int64(0)) // the turn is not queued, because its runner still has it
	approvals, suspended, err := f.SuspendTurn(t.Context(), c, 0, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(!suspended)
	is.Equal([]any{len(approvals), approvals[0].Status, approvals[1].Status}, []any{2, store.ApprovalApproved, store.ApprovalApproved})
	f.finish(c)
	f.checkCounters()
}

func TestDecidingTwiceAndTooLate(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, st := suspended(f, 0, 1, 2)
	refused := func(id string, approved bool, kind db.Kind) {
		t.Helper()
		_, err := f.decide(c, id, approved, "x")
		if !db.IsKind(err, kind) {
			t.Errorf("%v, want kind %d", err, kind)
		}
	}
	first, err := f.decide(c, st.Approvals[0].ID, true, "fine")
	is.NoErr(err)
	f.clock.advance(time.Second)
	again, err := f.decide(c, st.Approvals[0].ID, true, "other words")
	is.NoErr(err)
	is.Equal(again, first) // the first decision remains
	refused(st.Approvals[0].ID, false, db.Conflict)
	refused("apr_none", true, db.NotFound)
	other := f.accept(f.turn())
	_, err = f.DecideApproval(t.Context(), f.owner.Caller, other.TaskID, st.Approvals[1].ID, store.Decision{Approved: true})
	is.True(db.IsKind(err, db.NotFound)) // the approval belongs to another task
	_, err = f.DecideApproval(t.Context(), f.owner.Caller, c.TaskID, st.Approvals[1].ID, store.Decision{Reason: strings.Repeat("é", store.MaxReason+1)})
	is.True(db.IsKind(err, db.Invalid))
	_, err = f.DecideApproval(t.Context(), f.owner.Caller, c.TaskID, st.Approvals[1].ID, store.Decision{Reason: strings.Repeat("é", store.MaxReason)})
	is.NoErr(err)
	_, running, err := f.AbortTask(t.Context(), f.owner.Caller, c.TaskID)
	is.NoErr(err)
	is.Equal(len(running), 0) // no runner must stop
	refused(st.Approvals[2].ID, true, db.Conflict)
	refused(st.Approvals[1].ID, true, db.Conflict)
	is.Equal(f.count(`SELECT count(*) FROM audit_log WHERE action LIKE 'approval.%'`), int64(2))
}

func TestIdempotentDecision(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, st := suspended(f, 0, 1)
	d := store.Decision{Approved: true, IdempotencyKey: db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k",
		Hash: hash("one")}}
	for range 2 {
		is.NoErr(errOf(f.DecideApproval(t.Context(), f.owner.Caller, c.TaskID, st.Approvals[0].ID, d)))
	}
	d.IdempotencyKey.Hash = hash("two")
	_, err := f.DecideApproval(t.Context(), f.owner.Caller, c.TaskID, st.Approvals[1].ID, d)
	is.True(db.IsKind(err, db.Mismatch))
}

func TestSuspendedTurnTimesOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end    func(is *is.I, f *fixture, c store.Claim)
		status store.Status
		code   string
		left   store.ApprovalStatus
	}{
		"cancelled": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, c.TaskID)))
		}, store.Aborted, "aborted", store.ApprovalCancelled},
		"too late": {func(is *is.I, f *fixture, c store.Claim) {
			f.clock.advance(time.Hour - time.Millisecond)
			ended, _, err := f.ExpireSuspended(f.ctx(), 10)
			is.NoErr(err)
			is.Equal(len(ended), 0)
			f.clock.advance(time.Millisecond)
			ended, _, err = f.ExpireSuspended(f.ctx(), 10)
			is.NoErr(err)
			is.Equal(len(ended), 1)
			is.Equal(ended[0].ID, c.ID)
		}, store.Failed, "approval_timeout", store.ApprovalExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := running(f)
			st := asking(f, 0, 2, 0, 1)
			st.StartedAt = st.StartedAt.Add(-3 * time.Second)
			is.NoErr(f.JournalStep(t.Context(), c, st))
			_, suspended, err := f.SuspendTurn(t.Context(), c, 0, f.clock.now().Add(time.Hour))
			is.NoErr(err)
			is.True(suspended)
			is.NoErr(errOf(f.decide(c, st.Approvals[0].ID, true, "")))
			next := f.follow(c.Turn)
			if name == "too late" {
				tt.end(is, f, c)
				is.Equal(f.claimOne("r").ID, next.ID) // the next turn can run
			} else {
				tt.end(is, f, c)
				is.Equal(f.reread(next).Status, store.Aborted)
			}
			ended := f.reread(c.Turn)
			is.Equal([]any{ended.Status, ended.Failure.Code, ended.OutputText, ended.Duration}, []any{tt.status, tt.code, "I will try.", 3 * time.Second})
			list, next1, err := f.Approvals(t.Context(), f.owner.Caller, store.ApprovalQuery{TaskID: c.TaskID, Limit: 10})
			is.NoErr(err)
			is.Equal([]any{next1, list[0].Status, list[1].Status}, []any{"", tt.left, store.ApprovalApproved})
			is.True(list[0].DecidedAt != nil)
			is.True(db.IsKind(errOf(f.decide(c, st.Approvals[1].ID, true, "")), db.Conflict))
			f.checkCounters()
			is.Equal(f.count(`SELECT count(*) FROM turns WHERE suspended_until IS NOT NULL`), int64(0))
		})
	}
}

// TestCancelledBeforeResume cancels a turn between its last decision and its next claim, and
// after a crash. The turn's output so far is kept.
func TestCancelledBeforeResume(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(f *fixture, c store.Claim, st store.Step) error{
		"decided": func(f *fixture, c store.Claim, st store.Step) error {
			if _, _, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour)); err != nil {
				return err
			}
			return errOf(f.decide(c, st.Approvals[0].ID, true, ""))
		},
		"interrupted": func(f *fixture, _ store.Claim, _ store.Step) error { return f.StartRunner(f.ctx(), "r2", time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := running(f)
			st := asking(f, 0, 1, 0)
			st.StartedAt = st.StartedAt.Add(-time.Second)
			is.NoErr(f.JournalStep(t.Context(), c, st))
			is.NoErr(wait(f, c, st))
			is.Equal(f.reread(c.Turn).Status, store.Pending)
			is.NoErr(errOf(f.AbortTask(t.Context(), f.owner.Caller, c.TaskID)))
			ended := f.reread(c.Turn)
			is.Equal([]any{ended.Status, ended.OutputText, ended.Duration}, []any{store.Aborted, "I will try.", time.Second})
			is.Equal(f.count(`SELECT count(*) FROM approvals WHERE status = 'pending'`), int64(0))
			f.checkCounters()
		})
	}
}

// TestAbortDuringSuspend cancels and suspends a turn at once. In either order, the turn ends.
func TestAbortDuringSuspend(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, asking(f, 0, 1, 0)))
	_, running, err := f.AbortTask(t.Context(), f.owner.Caller, c.TaskID)
	is.NoErr(err)
	is.Equal(running, []string{c.ID})
	is.Equal(errOf(f.SuspendTurn(t.Context(), c, 0, f.clock.now().Add(time.Hour))), store.ErrAbortRequested)
	c.Settings.ApprovalTools = []string{"tool0"}
	is.NoErr(errOf(f.FinishTurn(t.Context(), c, nil, store.AbortedOutcome())))
	is.Equal(f.count(`SELECT count(*) FROM approvals WHERE status = 'cancelled'`), int64(1))
}

// TestKillWithPendingApprovals ends a runner before the suspension: the next runner claims the turn.
// After three deaths, the approvals expire.
func TestKillWithPendingApprovals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, asking(f, 0, 1, 0)))
	for i := range 3 {
		f.startRunner(fmt.Sprint("r", i))
		if i < 2 {
			is.Equal(f.claimOne(fmt.Sprint("r", i)).ID, c.ID)
		}
	}
	is.Equal(f.reread(c.Turn).Failure.Code, "interrupted")
	is.Equal(f.count(`SELECT count(*) FROM approvals WHERE status = 'cancelled'`), int64(1))
}

func TestWhoDecides(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	creator := f.caller("Acme", "carl@acme.test", people.RoleMember)
	invited := f.caller("Acme", "ivy@acme.test", people.RoleMember)
	people := map[string]struct {
		who      people.Identity
		sees     db.Kind
		decides  db.Kind
		pendings int
	}{
		"creator":  {creator, 0, 0, 1},
		"invited":  {invited, 0, db.Forbidden, 1},
		"member":   {f.caller("Acme", "mo@acme.test", people.RoleMember), db.Forbidden, db.Forbidden, 0},
		"admin":    {f.caller("Acme", "ada@acme.test", people.RoleAdmin), 0, 0, 1},
		"owner":    {f.owner, 0, 0, 1},
		"stranger": {f.caller("Globex", "sam@globex.test", people.RoleOwner), db.Forbidden, db.Forbidden, 0},
	}
	for name, tt := range people {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := f.newWorker(creator, workers.NewWorker{Visibility: workers.Private})
			_, err := f.Workers.AddWorkerMember(t.Context(), creator.Caller, w.ID, invited.UserID)
			is.NoErr(err)
			n := f.turn()
			// The author of a turn need not have the right to decide.
			n.WorkerID, n.Caller = w.ID, invited.Caller
			f.accept(n)
			f.startRunner("r")
			c := f.claimOne("r")
			st := asking(f, 0, 1, 0)
			is.NoErr(f.JournalStep(t.Context(), c, st))
			check := func(want db.Kind, err error) {
				t.Helper()
				if want == 0 && err != nil || want != 0 && !db.IsKind(err, want) {
					t.Errorf("%v, want kind %d", err, want)
				}
			}
			list, _, err := f.Approvals(t.Context(), tt.who.Caller, store.ApprovalQuery{TaskID: c.TaskID, Limit: 10})
			check(tt.sees, err)
			if tt.sees == 0 {
				is.Equal([]any{len(list), list[0].MayDecide, list[0].ToolName}, []any{1, tt.decides == 0, "tool0"})
			}
			list, _, err = f.Approvals(t.Context(), tt.who.Caller, store.ApprovalQuery{Limit: 10})
			is.NoErr(err)
			is.Equal(len(list), tt.pendings)
			_, err = f.DecideApproval(t.Context(), tt.who.Caller, c.TaskID, st.Approvals[0].ID, store.Decision{Approved: true})
			check(tt.decides, err)
			c.Settings.ApprovalTools = []string{"tool0"}
			f.finish(c)
			is.NoErr(f.DeleteWorker(t.Context(), creator.Caller, w.ID))
		})
	}
}

func TestApprovalPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	for seq := range int64(3) {
		is.NoErr(f.JournalStep(t.Context(), c, asking(f, seq, 2, 0, 1)))
	}
	for _, q := range []store.ApprovalQuery{{TaskID: c.TaskID, Limit: 4}, {Limit: 4}} {
		list, next, err := f.Approvals(t.Context(), f.owner.Caller, q)
		is.NoErr(err)
		is.Equal([]int{len(list), int(list[0].Step), int(list[3].Step)}, []int{4, 2, 1})
		q.Cursor = next
		list, next, err = f.Approvals(t.Context(), f.owner.Caller, q)
		is.NoErr(err)
		is.Equal([]any{len(list), list[1].Step, next}, []any{2, int64(0), ""})
	}
	_, _, err := f.Approvals(t.Context(), f.owner.Caller, store.ApprovalQuery{Cursor: "nonsense", Limit: 1})
	is.True(db.IsKind(err, db.Invalid))
}
