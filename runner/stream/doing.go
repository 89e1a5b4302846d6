package stream

import (
	"encoding/json"

	"journeyman/store"
)

// An Activity is the current activity of a task.
type Activity struct {
	Kind  store.PartType  // the kind of the part in progress; PartToolCall for a call; "" before the first output
	Tool  string          // the name of the called tool
	Input json.RawMessage // the arguments of the call; they may be incomplete
	Step  int             // number of the step, from 1
}

// Doing returns the activities of an organization's running tasks, by task id. The result is
// small: it has one entry for each turn that runs now.
func (h *Hub) Doing(organizationID string) map[string]Activity {
	doing := map[string]Activity{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.live {
		if l.organizationID != organizationID {
			continue
		}
		if s, ok := l.look(); ok && !s.turn.Status.Ended() {
			doing[l.taskID] = s.activity()
		}
	}
	return doing
}

// activity returns the current activity of the snapshot's turn.
func (s snapshot) activity() Activity {
	a := Activity{Step: len(s.steps) + 1}
	st := s.current
	if st == nil {
		if len(s.steps) == 0 {
			return a
		}
		// Between two model calls, the calls of the last step run.
		a.Step, st = len(s.steps), &s.steps[len(s.steps)-1]
		for _, c := range st.ToolCalls() {
			if _, ended := st.Call(c.N); !ended {
				a.Kind, a.Tool, a.Input = store.PartToolCall, c.ToolName, c.Input
				break
			}
		}
		return a
	}
	if n := len(st.Parts); n > 0 {
		p := st.Parts[n-1]
		a.Kind, a.Tool, a.Input = p.Type, p.ToolName, p.Input
	}
	return a
}
