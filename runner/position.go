package runner

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// A position is a place in the stream of a turn, and the id of the event that
// ends there. It counts in what was produced, not in events: a reader that comes
// back gets what lies after it, whether that is still in memory or only in the
// journal, and however it was cut into events the first time.
type position struct {
	turn    int64 // num of the turn; 0 before any
	step    int64 // -1 before the first step, endStep after the last
	attempt int64 // which try of the step
	slot    int64 // see the slot constants
	offset  int64 // in a part: 1 begun, 1+n after n bytes, endOffset ended
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

// The slots of a step. Part i is at slotParts+i, what is asked about tool call j at
// slotRequests+j, and its end at slotDecided+j, or where nothing is asked, at
// slotCalls+j. Decision k is at slotDecisions+k.
const (
	slotStartStep  = 1
	slotParts      = 2
	slotRequests   = 1 << 20
	slotCalls      = 1 << 21
	slotDecisions  = 1 << 22
	slotDecided    = 1 << 23
	slotFinishStep = 1 << 30
)

// The slots after the last step. A turn without one gets an empty step there.
// Source i is at slotSources+i, file j at slotFiles+j.
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

// compare orders positions of one turn; tries of a step are not ordered.
func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.turn, q.turn), cmp.Compare(p.step, q.step), cmp.Compare(p.slot, q.slot), cmp.Compare(p.offset, q.offset))
}

// String is the id of an event.
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

// replayMark ends the ids of what a worker-wide stream replays: that its reader
// has one turn up to there says nothing of the others. No number of a position ends so.
const replayMark = "~"

// parsePosition is the reverse of String, and takes ids with the replay mark too; ok
// is false for what String never gives.
func parsePosition(id string) (p position, ok bool) {
	fields := strings.SplitN(strings.TrimSuffix(id, replayMark), ".", 6)
	if len(fields) != 5 {
		return p, false
	}
	for i, dst := range []*int64{&p.turn, &p.step, &p.attempt, &p.slot, &p.offset} {
		n, err := strconv.ParseInt(fields[i], 36, 64)
		if err != nil || strconv.FormatInt(n, 36) != fields[i] {
			return position{}, false
		}
		*dst = n
	}
	begun := p.slot > 0 || p.step >= 0 // slot 0 of a step is where it was withdrawn
	return p, p.turn > 0 && p.step >= startStep && p.step <= endStep && p.attempt >= 0 && p.slot >= 0 && p.offset >= 0 && begun
}
