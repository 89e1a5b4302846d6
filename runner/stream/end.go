package stream

import (
	"slices"

	"journeyman/store"
)

// An End is the end of a turn, for which its caller waits.
type End struct{ w *watcher }

// Committed returns a channel that closes when the end of the turn is committed.
func (e End) Committed() <-chan struct{} { return e.w.changed }

// Conversation returns the turn's task as the store would return it at the end of the turn. It
// returns nil if memory does not hold all of that, and before Committed is closed. Callers share
// the conversation: they must not change it.
func (e End) Conversation() *store.Conversation {
	select {
	case <-e.w.changed:
		return e.w.conv
	default:
		return nil
	}
}

// maxHanded is the limit of the texts in a conversation that clients get from memory, in
// bytes. Clients that read slowly hold it for as long as they read.
const maxHanded = 256 << 10

// conversation returns the conversation of a turn that has ended. It returns nil unless memory
// holds all of that as the store would return it. So the turn is the first of its task, it ran
// at once and in one piece, and its model called no tool: calls have files, sources, approvals
// and children.
func (l *Live) conversation(t store.Turn, last *store.Step) *store.Conversation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded || t.Seq > 0 || t.Claims > 1 {
		return nil
	}
	steps := l.known.steps
	if last != nil {
		steps = append(slices.Clip(steps), *last)
	}
	conv := &store.Conversation{Task: store.Task{ID: t.TaskID, Status: t.TaskStatus}, Turns: []store.Turn{t},
		Steps: map[int64][]store.Step{t.Num: steps}, Files: l.known.attached}
	if conv.HasCalls() || textBytes(t, steps) > maxHanded {
		return nil
	}
	return conv
}

// textBytes returns the length of the texts of a turn.
func textBytes(t store.Turn, steps []store.Step) int {
	n := len(t.Input) + len(t.OutputText) + len(t.StructuredOutput)
	for _, st := range steps {
		for _, p := range st.Parts {
			n += len(p.Text)
		}
	}
	return n
}
