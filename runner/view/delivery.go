package view

import (
	"context"
	"slices"
	"strings"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// maxDelivery is the maximum size of a delivery's body in bytes. Longer bodies lose parts.
const maxDelivery = 256 << 10

// maxDeliveredInput is the limit of the input in such a shortened body, in characters.
const maxDeliveredInput = 10_000

// A Delivery is the body of a webhook delivery.
type Delivery struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CreatedAt string `json:"createdAt"`
	Test      bool   `json:"test,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	Waiting   *Asked `json:"waiting,omitempty"` // of task.waiting
	Task      Task   `json:"task"`
	Turn      Turn   `json:"turn"`
	Worker    Run    `json:"worker"`
}

// Asked lists the approvals that a turn waits for.
type Asked struct {
	Approvals []PendingApproval `json:"approvals"`
}

// Delivery returns the JSON body of a delivery. It shows the turn, its task and its worker as they
// were when the turn ended or began to wait. So each attempt sends the same body.
func (b Builder) Delivery(ctx context.Context, d store.Delivery) ([]byte, error) {
	if d.Test() {
		return b.testDelivery(ctx, d)
	}
	conv, err := b.store.Effects.DeliveredConversation(ctx, d)
	if err != nil {
		return nil, err
	}
	v := Delivery{ID: d.ID, Type: d.Type, CreatedAt: Timestamp(d.CreatedAt)}
	turn := conv.Turns[len(conv.Turns)-1]
	if d.Waiting() {
		turn = atWait(&conv, d.CreatedAt)
		v.Waiting = &Asked{Approvals: pendingApprovals(conv)}
	}
	v.Worker = b.newRun(d.WorkerID, d.WorkerCreatedAt)
	b.complete(&v.Worker, conv, SDK5)
	return v.body(b, conv.Task, turn)
}

// testDelivery returns the body of a test, which belongs to a worker only.
func (b Builder) testDelivery(ctx context.Context, d store.Delivery) ([]byte, error) {
	_, _, wrk, err := b.store.Effects.DeliverySubject(ctx, d)
	if err != nil {
		return nil, err
	}
	v := Delivery{ID: d.ID, Type: d.Type, CreatedAt: Timestamp(d.CreatedAt), Test: true, Worker: b.WorkerRun(wrk)}
	task, turn := sample(d, wrk)
	v.Worker.describe(task, turn)
	return v.body(b, task, turn)
}

// body completes the delivery with its task and turn, and returns it as JSON.
func (v *Delivery) body(b Builder, task store.Task, turn store.Turn) ([]byte, error) {
	v.Worker.setStatus(task.Status)
	v.Task, v.Turn = b.Task(task), TurnOf(turn)
	return v.marshal()
}

// marshal returns the delivery as JSON. If the body is too long, marshal first removes the texts of
// the worker. If that is not enough, it also removes all other fields without a limit.
func (v *Delivery) marshal() ([]byte, error) {
	body, err := Marshal(v)
	if err != nil || len(body) <= maxDelivery {
		return body, err
	}
	v.Truncated = true
	w := &v.Worker
	w.Messages, w.Output, w.OutputText, w.StructuredOutput = []Message{}, []OutputItem{}, "", nil
	v.Turn.OutputText, v.Turn.StructuredOutput = "", nil
	if body, err = Marshal(v); err != nil || len(body) <= maxDelivery {
		return body, err
	}
	w.Files, w.Sources = []File{}, []Source{}
	if v.Waiting != nil {
		for i := range v.Waiting.Approvals {
			v.Waiting.Approvals[i].Input = nil // the arguments of a tool may be very long
		}
		w.Metadata.PendingApprovals = v.Waiting.Approvals
	}
	v.Turn.Input = db.FirstRunes(v.Turn.Input, maxDeliveredInput)
	return Marshal(v)
}

// atWait restores a conversation to the state when its last turn began to wait for a user. It
// returns that turn. So all attempts of a delivery have the same body, even if users have decided
// since then.
func atWait(conv *store.Conversation, at time.Time) store.Turn {
	t := &conv.Turns[len(conv.Turns)-1]
	// The turn may have continued or ended since then: reset these fields to their earlier values.
	t.Status, t.CompletedAt, t.TaskStatus, t.Failure, t.Duration = store.Running, nil, "", nil, 0
	t.OutputText, t.StructuredOutput, t.IncompleteReason, t.IncompleteLimit = "", nil, "", ""
	t.Wait, t.Usage = &store.Wait{For: store.WaitForPerson}, store.Usage{}
	steps := conv.Steps[t.Num]
	for i, st := range steps {
		steps[i] = stepAtWait(st, at)
		t.Usage = t.Usage.Add(steps[i].Usage).Add(store.Usage{Steps: 1})
		for _, c := range steps[i].Calls {
			t.Usage.ToolCost += c.Cost
		}
		t.Model = st.Model
		// The turn waited at this step, so it had no later ones.
		if slices.ContainsFunc(steps[i].Approvals, isPending) {
			steps = steps[:i+1]
			break
		}
	}
	conv.Steps[t.Num] = steps
	conv.Files = slices.DeleteFunc(conv.Files, func(f store.File) bool {
		return f.TurnNum == t.Num && f.CreatedAt.After(at)
	})
	// An id begins with the time of its creation.
	begins := db.NewID("src", at)[:len("src_")+10]
	conv.Sources = slices.DeleteFunc(conv.Sources, func(s store.Source) bool {
		return s.TurnNum == t.Num && s.ID[:min(len(begins), len(s.ID))] > begins
	})
	return *t
}

func isPending(a store.Approval) bool { return a.Status == store.ApprovalPending }

// stepAtWait returns a step without the decisions after a time, and without the results of the
// decided calls.
func stepAtWait(st store.Step, at time.Time) store.Step {
	st.Approvals, st.Calls = slices.Clone(st.Approvals), slices.Clone(st.Calls)
	for i, a := range st.Approvals {
		if a.DecidedAt != nil && a.DecidedAt.Before(at) {
			continue
		}
		a.Status, a.Reason, a.Answer, a.DecidedAt = store.ApprovalPending, "", "", nil
		st.Approvals[i] = a
		// A call that waits for a decision has not ended yet.
		st.Calls = slices.DeleteFunc(st.Calls, func(c store.Call) bool { return c.Seq == a.Call })
	}
	return st
}

// sample returns an invented task and turn for a test of a webhook. Their ids are derived from the
// delivery's id, so that they are the same in each attempt.
func sample(d store.Delivery, wrk workers.Worker) (store.Task, store.Turn) {
	idOf := func(prefix string) string { return strings.Replace(d.ID, "evt", prefix, 1) }
	turn := store.Turn{ID: idOf("trn"), TaskID: idOf("tsk"), WorkerID: wrk.ID,
		WorkerVersion: wrk.Version, Status: store.Completed, Input: "This is a test of the webhook.",
		OutputText: "It works.", TriggeredBy: people.TriggerAPI, Budget: store.BudgetStandard,
		CreatedAt: d.CreatedAt, CompletedAt: &d.CreatedAt}
	task := store.Task{ID: turn.TaskID, OrganizationID: wrk.OrganizationID, WorkerID: wrk.ID,
		Title: "Test of the webhook", Status: store.Completed, TriggeredBy: people.TriggerAPI, TurnCount: 1,
		CreatedAt: d.CreatedAt, CompletedAt: &d.CreatedAt}
	return task, turn
}
