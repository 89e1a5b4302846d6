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

// sameTool returns a step whose calls all use one tool. The step asks for an approval of each given
// call.
func sameTool(f *fixture, seq int64, calls ...int64) store.Step {
	st := asking(f, seq, len(calls), calls...)
	for i := range st.Parts {
		if st.Parts[i].Type == store.PartToolCall {
			st.Parts[i].ToolName = "tool0"
		}
	}
	return st
}

func TestAllowanceForTheRestOfATask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	st := asking(f, 0, 3, 0, 1, 2)
	st.Parts[3].ToolName = "tool0" // the first and the third call use the same tool
	is.NoErr(f.JournalStep(f.ctx(), c, st))
	is.NoErr(errOf(f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour))))
	for _, d := range []store.Decision{{RestOfTask: true}, {Answer: "x", RestOfTask: true}} {
		_, err := f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, st.Approvals[0].ID, d)
		is.True(db.IsKind(err, db.Invalid)) // only approvals can apply to the rest of a task
	}
	_, err := f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, st.Approvals[0].ID,
		store.Decision{Approved: true, RestOfTask: true})
	is.NoErr(err)
	third, err := f.Approval(f.ctx(), f.owner.Caller, c.TaskID, st.Approvals[2].ID)
	is.NoErr(err)
	is.Equal(third.Status, store.ApprovalApproved) // the third call waited for the same tool
	second, err := f.Approval(f.ctx(), f.owner.Caller, c.TaskID, st.Approvals[1].ID)
	is.NoErr(err)
	is.Equal(second.Status, store.ApprovalPending) // another tool still needs an approval
	is.NoErr(errOf(f.decide(c, second.ID, true, "")))

	again := f.claim("r", 1)[0]
	later := sameTool(f, 1, 0)
	is.NoErr(f.JournalStep(f.ctx(), again, later))
	list, suspended, err := f.SuspendTurn(f.ctx(), again, 1, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(!suspended) // no decision is needed
	is.Equal([]any{list[0].Status, list[0].DecidedByUserID}, []any{store.ApprovalApproved, f.owner.UserID})

	other := asking(f, 2, 2, 1)
	is.NoErr(f.JournalStep(f.ctx(), again, other))
	_, suspended, err = f.SuspendTurn(f.ctx(), again, 2, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended) // the allowance is for one tool only
	entries, _, err := f.People.AuditLog(f.ctx(), f.owner.Caller, people.AuditQuery{Action: "approval.approve", Limit: 10})
	is.NoErr(err)
	is.Equal(len(entries), 4) // every approval has an entry
}

// TestAllowanceAppliesToOneMember runs later turns of a task with an allowance.
func TestAllowanceAppliesToOneMember(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, st := suspended(f, 0)
	_, err := f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, st.Approvals[0].ID,
		store.Decision{Approved: true, RestOfTask: true})
	is.NoErr(err)
	f.finish(f.claimOne("r"))
	mailed := f.owner.Caller
	mailed.Trigger = people.TriggerEmail
	stranger := people.Caller{OrganizationID: f.owner.OrganizationID, Trigger: people.TriggerEmail}
	for _, tt := range []struct {
		name    string
		caller  people.Caller
		changed bool // the worker
		asks    bool
	}{
		{"member", f.owner.Caller, false, false},
		{"mail of a member", mailed, false, true},
		{"stranger", stranger, false, true},
		{"another version", f.owner.Caller, true, true},
	} {
		if tt.changed {
			_, err := f.Workers.UpdateWorker(f.ctx(), f.owner.Caller, f.worker.ID, workers.Patch{Instructions: new("Do more.")})
			is.NoErr(err)
		}
		n := f.turn()
		n.Caller, n.TaskID = tt.caller, c.TaskID
		f.accept(n)
		again := f.claimOne("r")
		later := sameTool(f, 0, 0)
		is.NoErr(f.JournalStep(f.ctx(), again, later))
		list, suspended, err := f.SuspendTurn(f.ctx(), again, 0, f.clock.now().Add(time.Hour))
		is.NoErr(err)
		if suspended != tt.asks {
			t.Errorf("%s: asks %v, want %v", tt.name, suspended, tt.asks)
		}
		if suspended {
			_, err := f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, later.Approvals[0].ID,
				store.Decision{Approved: true, RestOfTask: true})
			// A mail must approve each call separately.
			is.Equal(db.IsKind(err, db.Conflict), tt.caller.Trigger == people.TriggerEmail)
			is.NoErr(errOf(f.decide(again, later.Approvals[0].ID, true, "")))
			again = f.claimOne("r")
		} else {
			is.Equal(list[0].Status, store.ApprovalApproved)
		}
		f.finish(again)
	}
}

// TestAllowanceEndsWithItsMaker checks that an allowance ends when its author may no longer decide.
func TestAllowanceEndsWithItsMaker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	admin := f.caller("Acme", "bea@acme.test", people.RoleAdmin)
	c, st := suspended(f, 0)
	_, err := f.DecideApproval(f.ctx(), admin.Caller, c.TaskID, st.Approvals[0].ID,
		store.Decision{Approved: true, RestOfTask: true})
	is.NoErr(err)
	again := f.claim("r", 1)[0]
	is.NoErr(errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, admin.UserID)))
	is.NoErr(f.JournalStep(f.ctx(), again, sameTool(f, 1, 0)))
	_, suspended, err := f.SuspendTurn(f.ctx(), again, 1, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended) // allowances of former members do not count
}
