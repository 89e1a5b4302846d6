package stream

import (
	"slices"

	"journeyman/runner/view"
	"journeyman/store"
)

// children encodes the states of the turns that calls of a step have started: each has a
// chunk for its start and one for its end. group holds the calls whose ends are encoded
// from slot on.
//
// Turns end in any order and between the ends of calls. So the offset of each position
// among those ends is a set: two bits for each turn say which of its chunks clients have.
// Bits are only added, so positions only grow. children returns the set, which the ends
// that follow have as their offset.
func (e *encoder) children(st store.Step, group []store.ToolCall, slot int64) (reported int64) {
	at := e.at
	if at.step == st.Seq && at.slot >= slot-1 && at.slot <= slot+lastCall(group) {
		reported = at.offset
	} else {
		at = e.place(st, slot-1, 0) // no call of the group has ended for the clients
	}
	n := 0
	for _, c := range e.snap.children {
		i := slices.IndexFunc(group, func(call store.ToolCall) bool { return call.N == c.Call })
		if c.Step != st.Seq || i < 0 {
			continue
		}
		begun, ended := int64(1)<<(2*n), int64(2)<<(2*n)
		// The store refuses more children of a step. This only guards the bits of the set.
		if n++; n > store.MaxChildren {
			break
		}
		put := func(bit int64, status store.Status, text string) {
			if reported&bit == 0 {
				reported |= bit
				at.offset = reported
				e.putAt(at, childChunk(c, group[i].CallID, status, text))
			}
		}
		put(begun, store.Pending, "")
		if c.Status.Ended() {
			put(ended, c.Status, view.ValidText(store.FirstRunes(c.OutputText, maxChildText)))
		}
	}
	return reported
}

// lastCall returns the number of the last of some calls, -1 without any.
func lastCall(group []store.ToolCall) int64 {
	if len(group) == 0 {
		return -1
	}
	return group[len(group)-1].N
}

// maxChildText bounds the text of a child's answer in a stream, in characters.
const maxChildText = 500

// childChunk returns the chunk that tells the status of a turn that a call has started.
func childChunk(c store.Child, toolCallID string, status store.Status, text string) chunk {
	return dataChunk("worker", struct {
		ToolCallID string       `json:"toolCallId"`
		TaskID     string       `json:"taskId"`
		TurnID     string       `json:"turnId"`
		WorkerID   string       `json:"workerId"`
		Worker     string       `json:"worker"` // its title
		Status     store.Status `json:"status"`
		Text       string       `json:"text,omitempty"` // the beginning of its answer
	}{toolCallID, c.TaskID, c.ID, c.WorkerID, c.WorkerTitle, status, text})
}
