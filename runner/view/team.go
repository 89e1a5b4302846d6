package view

import (
	"context"

	"journeyman/store"
	"journeyman/store/db"
)

// A TeamTurn is a turn that started another turn or was started by one.
type TeamTurn struct {
	TaskID     string       `json:"taskId"`
	TurnID     string       `json:"turnId"`
	WorkerID   string       `json:"workerId"`
	Status     store.Status `json:"status"`
	Credits    float64      `json:"credits"` // spent by the turn itself
	WaitingFor *Waiting     `json:"waitingFor"`
}

func teamTurn(t store.Turn) TeamTurn {
	return TeamTurn{TaskID: t.TaskID, TurnID: t.ID, WorkerID: t.WorkerID, Status: t.Status,
		Credits: db.Credits(t.Usage.Cost()), WaitingFor: WaitingOf(t.Wait)}
}

// addTeam adds the turn that has started a task, and the turns that the task has started.
func (b Builder) addTeam(ctx context.Context, v *Run, conv store.Conversation) error {
	// The first turn created the task, so its parent is the turn that started the task.
	parent, found, err := b.store.Parent(ctx, conv.Turns[0])
	if err != nil {
		return err
	}
	if found {
		t := teamTurn(parent)
		v.Metadata.StartedBy = &t
	}
	if !conv.HasCalls() {
		return nil // only a tool call starts a turn of another worker
	}
	children, err := b.store.TaskChildren(ctx, conv.Task)
	for _, c := range children {
		v.Metadata.Children = append(v.Metadata.Children, teamTurn(c.Turn))
	}
	return err
}
