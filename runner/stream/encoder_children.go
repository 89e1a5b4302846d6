package stream

import (
	"slices"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// children adds the states of the turns that calls of a step have started. Each turn has one
// chunk for its start and one for its end. group holds the calls whose ends are encoded at slot
// and the following slots.
//
// These turns end in any order, between the ends of calls. So the offset of a position among
// those ends is a bit set. Two bits for each turn record which of its two chunks clients have
// received. Bits are only added, so positions only grow. children returns the set: it is the
// offset of the ends of calls that follow.
func (e *encoder) children(st store.Step, group []store.ToolCall, slot int64) (reported int64) {
	at := e.at
	if at.step == st.Seq && at.slot >= slot-1 && at.slot <= slot+lastCall(group) {
		reported = at.offset
	} else {
		at = e.place(st, slot-1, 0) // clients have not received the end of any call of the group
	}
	n := 0
	for _, c := range e.snap.children {
		i := slices.IndexFunc(group, func(call store.ToolCall) bool { return call.N == c.Call })
		if c.Step != st.Seq || i < 0 {
			continue
		}
		begun, ended := int64(1)<<(2*n), int64(2)<<(2*n)
		// The store rejects more children per step. This check only protects the bit set.
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
			put(ended, c.Status, view.ValidText(db.FirstRunes(c.OutputText, maxChildText)))
		}
	}
	return reported
}

// lastCall returns the number of the last call in a list, -1 if the list is empty.
func lastCall(group []store.ToolCall) int64 {
	if len(group) == 0 {
		return -1
	}
	return group[len(group)-1].N
}

// maxChildText limits the text of a child's answer in a stream, in characters.
const maxChildText = 500

// childChunk returns the chunk with the status of a turn that a call has started.
func childChunk(c store.Child, toolCallID string, status store.Status, text string) chunk {
	return dataChunk("worker", struct {
		ToolCallID string       `json:"toolCallId"`
		TaskID     string       `json:"taskId"`
		TurnID     string       `json:"turnId"`
		WorkerID   string       `json:"workerId"`
		Worker     string       `json:"worker"` // the title of the worker
		Status     store.Status `json:"status"`
		Text       string       `json:"text,omitempty"` // the beginning of its answer
	}{toolCallID, c.TaskID, c.ID, c.WorkerID, c.WorkerTitle, status, text})
}
