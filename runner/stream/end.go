package stream

import (
	"slices"

	"journeyman/store"
)

// An End waits for the end of a turn.
type End struct{ w *watcher }

// Committed returns a channel that closes when the end of the turn is committed.
func (e End) Committed() <-chan struct{} { return e.w.changed }

// Conversation returns the turn's task as the store would return it at the end of the turn. It
// returns nil if memory does not hold the complete task, and before the Committed channel
// closes. Callers share the conversation: they must not change it.
func (e End) Conversation() *store.Conversation {
	select {
	case <-e.w.changed:
		return e.w.conv
	default:
		return nil
	}
}

// maxHanded is the maximum length of the texts in a conversation that clients get from memory,
// in bytes. The limit exists because clients that read slowly keep the conversation in memory.
const maxHanded = 256 << 10

// conversation returns the conversation of a turn that has ended. It returns nil if memory does
// not hold all data that the store would return. So the turn must be the first of its task and
// must have run without interruption. Its model must have called no tool: calls can have files,
// sources, approvals and children, which only the store holds.
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
