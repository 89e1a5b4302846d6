package stream

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// A position is a place in the stream of a turn, and the id of the event that ends there. It
// counts output of the turn, not events. So a client continues exactly after an id, even if the
// same text was split into other events before.
type position struct {
	turn    int64 // num of the turn; 0 at the very beginning
	step    int64 // startStep before the first step, endStep after the last
	attempt int64 // number of the attempt at the step
	slot    int64 // see the slot constants
	offset  int64 // in a part: 1 after its start, 1+n after n bytes, endOffset after its end
}

const (
	startStep = -1
	endStep   = math.MaxInt32
	endOffset = math.MaxInt64
)

// The slots before the first step.
const (
	slotUserMessage = 1 + iota
	slotPending
	slotStart
	slotRunning
)

// The slots of a step:
//   - Part i is at slotParts+i.
//   - The end of tool call j is at slotCalls+j, in the order in which the calls end.
//   - The end of a call j that needs a decision is at slotDecided+j.
//   - Request j is at slotRequests+j, and decision k is at slotDecisions+k. The end of request j without a
//     decision is at slotMissed+j.
//   - slotEndCut ends a text that an earlier step left open and that this step does not continue.
//   - At slotWaiting, the turn is suspended until its model answers.
const (
	slotStartStep  = 1
	slotParts      = 2
	slotEndCut     = 1<<20 - 1
	slotRequests   = 1 << 20
	slotCalls      = 1 << 21
	slotDecisions  = 1 << 22
	slotMissed     = slotDecisions + 1<<21
	slotDecided    = 1 << 23
	slotFinishStep = 1 << 30
	slotWaiting    = 1 << 31
)

// The slots after the last step. slotEmptyStep and slotEmptyEnd are an empty step, for a turn
// without steps. Source i is at slotSources+i, and file j is at slotFiles+j.
const (
	slotEmptyStep = 1
	slotEmptyEnd  = 2
	slotSources   = 3
	slotFiles     = 1 << 20
	slotUsage     = 1 << 30
	slotStatus    = slotUsage + 1
	slotError     = slotUsage + 2
	slotFinish    = slotUsage + 3
	slotFinalDone = slotUsage + 4
)

// compare orders two positions. It ignores the attempts: the attempts at one step have no
// order.
func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.turn, q.turn), cmp.Compare(p.step, q.step),
		cmp.Compare(p.slot, q.slot), cmp.Compare(p.offset, q.offset))
}

// String returns the position as the id of an event.
func (p position) String() string {
	b := make([]byte, 0, 48)
	for i, n := range [...]int64{p.turn, p.step, p.attempt, p.slot, p.offset} {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, n, 36)
	}
	return string(b)
}

// replayMark ends the ids of replayed events in a worker-wide stream. Such an id is a position
// in one turn only and does not cover the other turns. No string of a position ends with it.
const replayMark = "~"

// parsePosition returns the position of an id, with or without the replay mark. ok is
// false for an id that String never returns.
func parsePosition(id string) (p position, ok bool) {
	fields := strings.SplitN(strings.TrimSuffix(id, replayMark), ".", 6)
	if len(fields) != 5 {
		return p, false
	}
	for i, dst := range []*int64{&p.turn, &p.step, &p.attempt, &p.slot, &p.offset} {
		// Reject other spellings of a number, such as 0a for a: String never writes them.
		n, err := strconv.ParseInt(fields[i], 36, 64)
		if err != nil || strconv.FormatInt(n, 36) != fields[i] {
			return position{}, false
		}
		*dst = n
	}
	begun := p.slot > 0 || p.step >= 0 // slot 0 of a step is the position of its data-restart
	return p, p.turn > 0 && p.step >= startStep && p.step <= endStep &&
		p.attempt >= 0 && p.slot >= 0 && p.offset >= 0 && begun
}
