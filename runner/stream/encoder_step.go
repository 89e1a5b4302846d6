package stream

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"journeyman/runner/view"
	"journeyman/store"
)

// step encodes the known part of a step. open means that its model call is in progress.
func (e *encoder) step(st store.Step, open bool) {
	if open && len(st.Parts) == 0 {
		return // a model call that fails before its first output leaves no step
	}
	if !store.Continues(e.snap.steps, int(st.Seq)) {
		e.put(st, slotStartStep, chunk{Type: "start-step"})
	}
	e.parts(st, open)
	if !open && e.callEnds(st) && !st.Unfinished() {
		e.put(st, slotFinishStep, chunk{Type: "finish-step"})
	}
}

// parts encodes the output of the model in a step. A text that reached the output limit
// continues in the following steps. The first step begins the text, and the last one ends it.
func (e *encoder) parts(st store.Step, open bool) {
	cut, isCut := store.CutText(e.snap.steps, int(st.Seq)) // the text that this step continues
	left, isLeft := store.OpenText(st, cut, isCut)         // the text that the next step continues
	isLeft = isLeft && !open && st.Unfinished()
	for i, p := range st.Parts {
		growing := open && i == len(st.Parts)-1
		switch {
		case p.IsCall():
			e.toolInput(st, i, p, growing)
		case p.Text == "": // some providers send empty parts that only carry provider data
		case p.Type == store.PartReasoning:
			e.text(st, i, p.Text, textPart{kind: "reasoning", id: view.PartID(st.Seq, i), open: growing})
		case p.Type == store.PartText:
			whole := store.PartPlace{Step: st.Seq, Part: i}
			begun := isCut
			if isCut {
				whole, isCut = cut, false
			}
			e.text(st, i, p.Text, textPart{kind: "text", id: view.PartID(whole.Step, whole.Part), begun: begun,
				open: growing || isLeft && whole == left})
		}
	}
	if isCut && !isLeft && !open { // the step has not continued the text, and no later step will
		e.endCutText(st, cut)
	}
}

// endCutText ends a text that was cut off. st is the last step that could have continued it.
func (e *encoder) endCutText(st store.Step, cut store.PartPlace) {
	e.put(st, slotEndCut, chunk{Type: "text-end", ID: view.PartID(cut.Step, cut.Part)})
}

// A textPart describes how a text is sent.
type textPart struct {
	kind  string // text or reasoning
	id    string
	begun bool // an earlier step has begun the text
	open  bool // more of the text will come
}

// text encodes the text of a part of a step.
func (e *encoder) text(st store.Step, part int, text string, t textPart) {
	start := e.place(st, slotParts+int64(part), 1)
	if !t.begun {
		e.putAt(start, chunk{Type: t.kind + "-start", ID: t.id})
	}
	p := start
	// A returning client continues in the middle of the text, at the end of its last event.
	for rest := text[e.bytesSent(start, len(text)):]; rest != "" && !e.full(); {
		delta := e.nextDelta(rest)
		rest = rest[len(delta):]
		p.offset = int64(1 + len(text) - len(rest))
		e.putAt(p, chunk{Type: t.kind + "-delta", ID: t.id, Delta: delta})
	}
	if !t.open {
		p.offset = endOffset
		e.putAt(p, chunk{Type: t.kind + "-end", ID: t.id})
	}
}

// bytesSent returns how many of the n bytes of a part clients have received. The part begins at
// start.
func (e *encoder) bytesSent(start position, n int) int {
	switch {
	case e.at.step == start.step && e.at.slot == start.slot:
		return int(min(max(e.at.offset-1, 0), int64(n)))
	case e.at.compare(start) > 0:
		return n
	}
	return 0
}

// maxWordwise is the maximum length of a text that is sent word by word, in bytes. A longer
// text shows that the client is catching up.
const maxWordwise = 4 << 10

// nextDelta returns the beginning of a text, to be sent as one delta. The client that sent an
// instruction gets single words. So the events that it receives do not depend on how fast it
// reads.
func (e *encoder) nextDelta(text string) string {
	if !e.byWord || len(text) > maxWordwise {
		return text
	}
	word := strings.IndexFunc(text, unicode.IsSpace)
	if word < 0 {
		return text
	}
	gap := strings.IndexFunc(text[word:], func(r rune) bool { return !unicode.IsSpace(r) })
	if gap < 0 {
		return text
	}
	return text[:word+gap]
}

// toolInput encodes the arguments of a tool call. Malformed arguments are reported as an input
// error at once. growing means that the arguments are still incomplete.
func (e *encoder) toolInput(st store.Step, part int, p store.Part, growing bool) {
	at := e.place(st, slotParts+int64(part), 1)
	end := at
	end.offset = endOffset
	if end.compare(e.at) <= 0 {
		return // checked first: building the text of long arguments is expensive
	}
	e.putAt(at, chunk{Type: "tool-input-start", ToolCallID: p.CallID, ToolName: p.ToolName, Dynamic: true})
	text := string(p.Input)
	// Complete but malformed arguments are stored as a JSON string. Clients get its text.
	if !growing {
		text = view.InputText(p.Input)
	}
	if delta := text[e.bytesSent(at, len(text)):]; delta != "" {
		at.offset = int64(1 + len(text))
		e.putAt(at, chunk{Type: "tool-input-delta", ToolCallID: p.CallID, InputTextDelta: delta})
	}
	if growing {
		return
	}
	c := chunk{Type: "tool-input-available", ToolCallID: p.CallID, ToolName: p.ToolName, Input: p.Input, Dynamic: true}
	if why := view.InputError(p.Input); why != "" {
		c.Type, c.ErrorText = "tool-input-error", why
	}
	e.putAt(end, c)
}

// callEnds encodes the ends of a step's tool calls, and reports whether all have ended. Calls
// that need a decision by a person come after all others. So the order is the same as in the
// loop, whenever people decide.
func (e *encoder) callEnds(st store.Step) bool {
	// The position never goes back, so this order must not depend on the time of the decisions.
	e.approvalRequests(st)
	if !e.endsOf(st, slotCalls, false) {
		return false
	}
	e.decisions(st)
	e.missedDecisions(st)
	return e.endsOf(st, slotDecided, true)
}

// endsOf encodes the ends of the tool calls that needed a decision by a person, or of all
// others. They are encoded in the order in which they ended. endsOf reports whether all have
// ended.
func (e *encoder) endsOf(st store.Step, slot int64, asked bool) bool {
	over := e.passed(st)
	group := slices.DeleteFunc(st.ToolCalls(), func(c store.ToolCall) bool {
		_, asks := st.Approval(c.N)
		return asks != asked
	})
	reported := e.children(st, group, slot)
	for i, call := range inOrderOfEnds(st, group) {
		a, asks := st.Approval(call.N)
		output, errorText, ended := view.CallOutcome(st, call, over)
		if !ended {
			return false
		}
		c := chunk{Type: "tool-output-available", ToolCallID: call.CallID, Output: output, Dynamic: true}
		switch {
		case e.sdk == view.SDK7 && asks && a.Kind != store.KindQuestion && a.Status != store.ApprovalApproved:
			c = chunk{Type: "tool-output-denied", ToolCallID: call.CallID}
		case errorText != "":
			c.Type, c.ErrorText = "tool-output-error", errorText
		}
		// The slots are in the order of the ends, since the position never goes back.
		if at := e.place(st, slot+group[i].N, reported); at.compare(e.at) > 0 && view.InputError(call.Input) == "" {
			e.putAt(at, c) // a call with an input error has already ended
		}
	}
	return true
}

// passed reports whether the turn has passed a step. A call of such a step without a result never ran.
func (e *encoder) passed(st store.Step) bool {
	return e.snap.turn.Status.Ended() || st.Seq < int64(len(e.snap.steps))-1 || e.snap.current != nil
}

// inOrderOfEnds returns calls of a step in the order in which they ended, and then those
// that have not ended.
func inOrderOfEnds(st store.Step, calls []store.ToolCall) []store.ToolCall {
	rank := make(map[int64]int, len(st.Calls))
	for i, c := range st.Calls {
		rank[c.Seq] = i - len(st.Calls) // negative: before the rank of calls that have not ended, which is 0
	}
	return slices.SortedStableFunc(slices.Values(calls), func(a, b store.ToolCall) int {
		return cmp.Compare(rank[a.N], rank[b.N])
	})
}

// approvalRequests encodes the requests for approval of the tool calls of a step, and its questions.
func (e *encoder) approvalRequests(st store.Step) {
	for _, a := range st.Approvals {
		if a.Kind == store.KindQuestion {
			e.put(st, slotRequests+a.Call, waitingChunk(a, store.ApprovalPending))
			continue
		}
		e.put(st, slotRequests+a.Call, approvalChunk(view.PendingStateOf(a), e.sdk))
		if e.sdk == view.SDK7 {
			c := chunk{Type: "tool-approval-request", ApprovalID: a.ID, ToolCallID: a.ToolCallID}
			e.putAt(e.place(st, slotRequests+a.Call, 1), c)
		}
	}
}

// decisions encodes the decisions on the tool calls of a step, in their order.
func (e *encoder) decisions(st store.Step) {
	decided := slices.DeleteFunc(slices.Clone(st.Approvals), func(a store.Approval) bool { return !a.Decided() })
	// The position never goes back, so decisions are ordered by their numbers.
	slices.SortFunc(decided, func(a, b store.Approval) int { return int(a.Decision - b.Decision) })
	for _, a := range decided {
		if a.Kind == store.KindQuestion {
			e.put(st, slotDecisions+a.Decision, waitingChunk(a, a.Status))
			continue
		}
		e.put(st, slotDecisions+a.Decision, approvalChunk(view.ApprovalStateOf(a), e.sdk))
		if e.sdk == view.SDK7 {
			e.putAt(e.place(st, slotDecisions+a.Decision, 1), responseChunk(a, a.Reason))
		}
	}
}

// missedDecisions encodes the approvals of a step that ended without a decision. Version 5 of the AI SDK
// shows no approvals in its messages, so the end of the call is enough for it.
func (e *encoder) missedDecisions(st store.Step) {
	if !e.passed(st) || e.sdk != view.SDK6 && e.sdk != view.SDK7 {
		return
	}
	for _, call := range st.ToolCalls() {
		a, asks := st.Approval(call.N)
		if !asks || a.Decided() || a.Kind == store.KindQuestion {
			continue
		}
		c := approvalChunk(view.ApprovalStateOf(a), e.sdk)
		if e.sdk == view.SDK7 {
			_, errorText, _ := view.CallOutcome(st, call, true)
			c = responseChunk(a, errorText)
		}
		e.put(st, slotMissed+call.N, c)
	}
}
