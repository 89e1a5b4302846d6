package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A slotRunner is a runner with slots. It stores the claims that the store reports.
type slotRunner struct {
	mu     sync.Mutex
	free   int
	claims []store.Claim
}

// slots returns n slots of a runner that does not store claims.
func slots(runner string, n int) store.Slots { return (&slotRunner{free: n}).slots(runner) }

func (r *slotRunner) slots(runner string) store.Slots {
	return store.Slots{RunnerID: runner,
		Take: func(bool) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.free == 0 {
				return false
			}
			r.free--
			return true
		},
		Release: func(bool) { r.set(r.left() + 1) }}
}

func (r *slotRunner) set(free int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = free
}

func (r *slotRunner) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free
}

// take returns the claims that were reported since the last call.
func (r *slotRunner) take() []store.Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	claims := r.claims
	r.claims = nil
	return claims
}

// slotRunner registers the runner "r" with n free slots.
func (f *fixture) slotRunner(n int) *slotRunner {
	f.t.Helper()
	f.startRunner("r")
	r := &slotRunner{free: n}
	f.OnClaimed(func(c store.Claim) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.claims = append(r.claims, c)
	})
	f.UseSlots(r.slots("r"))
	return r
}

// TestClaimAtAcceptanceEqualsQueuedClaim compares a claim by CreateTurn with a claim of the same turn
// by ClaimTurns.
func TestClaimAtAcceptanceEqualsQueuedClaim(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.UseEnvelopes(store.Envelopes{Look: func(store.Folder) store.Listing { return store.Listing{} },
		Compose: func(store.EnvelopeFacts) string { return envelope }})
	careful := f.newWorker(f.owner, workers.NewWorker{Instructions: "Be careful.", Workspace: workers.TaskWorkspace,
		OutputSchema: []byte(`{"type":"object"}`), Settings: workers.Settings{Model: "openai:x",
			ApprovalTools: []string{"shell"}, MCPTools: []string{"a.b"}, Tools: workers.ToolRules{{Tool: "read_file"}},
			StrangerTools: workers.ToolRules{}}})
	r := f.slotRunner(100)
	var first store.Turn
	for _, tt := range []struct {
		name string
		turn func(n *store.NewTurn)
	}{
		{"plain", func(*store.NewTurn) {}},
		{"follow-up", func(n *store.NewTurn) { n.WorkerID, n.TaskID = "", first.TaskID }},
		{"settings", func(n *store.NewTurn) { n.WorkerID, n.TaskID = careful.ID, "mine" }},
		{"new worker", func(n *store.NewTurn) {
			n.WorkerID, n.NewWorker = "", &workers.NewWorker{Instructions: "New."}
		}},
		{"attachment", func(n *store.NewTurn) { n.Attachments = []store.File{{Path: "a.txt", SHA256: sha("a")}} }},
		{"secret", func(*store.NewTurn) {
			is.NoErr(errOf(f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{Name: "K", Value: "12345678"})))
		}},
	} {
		n := f.turn()
		tt.turn(&n)
		turn := f.accept(n)
		claims := r.take()
		is.Equal(len(claims), 1)       // of the accepted turn
		is.Equal(turn, claims[0].Turn) // Accepted contains the running turn
		is.Equal(f.reread(turn), turn) // and so does the database
		is.Equal(f.Queued(), int64(0)) // the turn has never waited
		is.Equal(f.reread(turn).Claims, int64(1))
		f.checkCounters()
		// Undo the claim in the database, so that ClaimTurns can claim the turn.
		f.exec(`UPDATE turns SET status = 'pending', runner_id = NULL, claims = 0, started_at = NULL WHERE num = ?`, turn.Num)
		f.exec(`UPDATE tasks SET running = 0 WHERE id = ?`, turn.TaskID)
		is.NoErr(f.Recount(t.Context()))
		c := f.claimOne("r")
		is.Equal(c, claims[0]) // tt.name
		is.Equal(len(r.take()), 1)
		if f.finish(c); first.ID == "" {
			first = turn
		}
		f.checkCounters()
	}
}

// TestMailIsClaimedAtAcceptance receives mails for two workers, with one free slot. A mail that is undone
// takes no slot.
func TestMailIsClaimedAtAcceptance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.slotRunner(1)
	other := f.mail("1@x")
	other.Worker = f.newWorker(f.owner, workers.NewWorker{})
	other.Turn.WorkerID = other.Worker.ID
	other.Turn.Attachments = []store.File{{WorkerID: other.Worker.ID, TaskID: "other", Path: "a.txt", SHA256: sha("a")}}
	_, _, err := f.ReceiveEmails(t.Context(), []store.NewEmail{f.mail("1@x"), other}, []byte("raw"), store.MailLimits{})
	is.True(db.IsKind(err, db.Conflict)) // the file is in another folder
	is.Equal([]int{r.left(), len(r.take())}, []int{1, 0})

	other.Turn.Attachments = nil
	list := f.receive(f.mail("1@x"), other)
	is.Equal([]bool{list[0].Claimed, list[1].Claimed}, []bool{true, false}) // there was one slot
	claims := r.take()
	is.Equal(len(claims), 1)
	is.Equal(claims[0].ID, list[0].TurnID)
	is.Equal(f.reread(claims[0].Turn), claims[0].Turn)
	is.Equal(f.receive(f.mail("1@x"))[0].TurnID, list[0].TurnID) // the same mail takes no slot
	r.set(1)
	is.Equal(f.receive(f.mail("2@x"))[0].Claimed, false) // the turn of the other worker has waited longer
	is.Equal([]int{r.left(), len(r.take())}, []int{1, 0})
	f.finish(claims[0])
	is.Equal(f.claimReplies(1)[0].Inbound.ID, list[0].ID)
	f.checkCounters()
}

// TestOnlyAFreeRunnerClaimsAtAcceptance accepts turns that must wait in the queue.
func TestOnlyAFreeRunnerClaimsAtAcceptance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	r := f.slotRunner(0)
	waiting := f.accept(f.turn())
	is.Equal(waiting.Status, store.Pending) // no slot is free
	r.set(5)
	is.Equal(f.accept(f.turn()).Status, store.Pending) // another turn has waited longer
	is.Equal(r.left(), 5)
	claims := f.claim("r", 5)
	is.Equal(len(claims), 2)
	behind := f.follow(claims[0].Turn)
	is.Equal([]any{behind.Status, behind.Ready}, []any{store.Pending, false}) // the task runs
	is.Equal(r.left(), 5)
	r.take()
	now := f.accept(f.turn())
	is.Equal(now.Status, store.Running) // the queued turn waits for its own task, not for a slot
	is.Equal(r.left(), 4)
	f.checkCounters()

	child, err := f.StartChild(t.Context(), store.CallPlace{Turn: now, RunnerID: "r"}, f.turn())
	is.NoErr(err)
	is.Equal(child.Turn.Status, store.Pending) // the parent is stored after the child
	is.Equal(len(f.claim("r", 5)), 1)
	is.True(f.Gate.BeginMaintenance())
	a, err := f.CreateTurn(gate.DuringMaintenance(t.Context()), f.turn())
	is.NoErr(err)
	is.Equal(a.Turn.Status, store.Pending) // no turn begins during maintenance
	is.True(f.Gate.EndMaintenance())
	is.Equal(r.left(), 4)
	f.checkCounters()
}

// TestRolledBackClaimReleasesSlot makes writes fail after they have taken a slot.
func TestRolledBackClaimReleasesSlot(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t) // the test blocks the only writer
	for name, opt := range map[string]store.Options{"once": {}, "repeated": {RepeatWrites: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixtureWith(t, opt)
			r := f.slotRunner(3)
			n := f.turn()
			n.Attachments = []store.File{{WorkerID: n.WorkerID, TaskID: "other", Path: "a.txt", SHA256: sha("a")}}
			is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), n)), db.Conflict)) // the file is in another folder
			is.Equal(r.left(), 3)

			release := hold(t, f.Store)
			failed := make(chan error, 2)
			go func() {
				failed <- errOf(f.CreateTurn(context.Background(), f.turn()))
			}()
			storetest.Eventually(t, "the turn to be queued", func() bool { return f.Waiting() == 1 })
			go func() { failed <- f.Write(context.Background(), violate) }()
			storetest.Eventually(t, "the culprit to be queued", func() bool { return f.Waiting() == 2 })
			release()
			is.True(<-failed != nil)
			is.True(<-failed != nil) // the whole transaction fails
			is.Equal(r.left(), 3)
			is.Equal(len(r.take()), 0)

			n = f.turn()
			n.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "k", Hash: hash("k")}
			turn := f.accept(n)
			is.Equal(f.accept(n), turn) // a repeated request takes no slot
			is.Equal(r.left(), 2)
			is.Equal(len(r.take()), 1)
			f.checkCounters()
		})
	}
}

// TestClaimsAtAcceptanceKeepFairOrder fills the slots with turns of one organization. The next claim
// is for the other organization.
func TestClaimsAtAcceptanceKeepFairOrder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	sam := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	theirs := store.NewTurn{Caller: sam.Caller, WorkerID: f.newWorker(sam, workers.NewWorker{}).ID, Input: "Go",
		Budget: store.BudgetLow}
	r := f.slotRunner(1)
	for _, n := range []store.NewTurn{f.turn(), theirs, f.turn()} {
		r.set(1)
		first := f.accept(n)
		is.Equal(first.Status, store.Running)
		f.accept(f.turn())
		f.accept(theirs)
		is.True(f.claim("r", 1)[0].OrganizationID != first.OrganizationID)
		is.Equal(len(f.claim("r", 2)), 1)
	}
	f.checkCounters()
}

// TestStopReturnsClaimsAtAcceptance stops the runner with a turn that it has not begun. Then it
// crashes the runner in the same state.
func TestStopReturnsClaimsAtAcceptance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.slotRunner(1)
	turn := f.accept(f.turn())
	is.NoErr(f.StopRunner(t.Context(), "r"))
	is.Equal(f.reread(turn).Status, store.Pending)
	is.Equal(f.count(`SELECT interruptions FROM turns`), int64(0))
	f.startRunner("next")
	is.Equal(f.claimOne("next").ID, turn.ID)
	f.startRunner("last")
	is.Equal(f.count(`SELECT interruptions FROM turns`), int64(1))
	f.clock.advance(time.Second)
	c := f.claimOne("last")
	is.Equal(c.Claims, int64(3))
	is.True(c.StartedAt.Before(f.clock.now())) // of the first claim
	f.checkCounters()
}
