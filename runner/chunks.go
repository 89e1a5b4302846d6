package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"journeyman/store"
)

// An Event is one event of a stream.
type Event struct {
	ID   string // opaque; a reader that comes back with it gets what follows
	Data []byte // a chunk of the UI message stream, version 1, as JSON on one line
}

// A chunk is one of the UI message stream. Which fields it has follows its type;
// strict readers accept no others, and none that is null.
type chunk struct {
	Type            string          `json:"type"`
	ID              string          `json:"id,omitempty"`
	Delta           string          `json:"delta,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	MessageMetadata *messageMeta    `json:"messageMetadata,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolName        string          `json:"toolName,omitempty"`
	InputTextDelta  string          `json:"inputTextDelta,omitempty"`
	Input           json.RawMessage `json:"input,omitempty"`
	Output          json.RawMessage `json:"output,omitempty"`
	ErrorText       string          `json:"errorText,omitempty"`
	Dynamic         bool            `json:"dynamic,omitempty"`
	SourceID        string          `json:"sourceId,omitempty"`
	URL             string          `json:"url,omitempty"`
	Title           string          `json:"title,omitempty"`
	MediaType       string          `json:"mediaType,omitempty"`
	FinishReason    string          `json:"finishReason,omitempty"`
	ApprovalID      string          `json:"approvalId,omitempty"`
	Data            any             `json:"data,omitempty"`
	Transient       bool            `json:"transient,omitempty"`

	// On the worker-wide stream only.
	TaskID string `json:"taskId,omitempty"`
	TurnID string `json:"turnId,omitempty"`
}

// A view is what is known of a turn at a moment.
type view struct {
	turn     store.Turn
	steps    []store.Step // in the journal
	current  *store.Step  // in progress
	attached []store.File
	files    []store.File // published; known once the turn has ended
	sources  []store.Source
}

// A reader turns views of a turn into the events after its position.
type reader struct {
	r      *Runner
	at     position
	wide   bool // of the worker-wide stream: every chunk says its task and turn
	replay bool // of the past of a worker-wide stream: ids say so
	words  bool // texts come word by word

	// approvals says that those who read know the chunks that the AI SDK 6 has for
	// approvals. Version 5 takes them for a broken stream.
	approvals bool
	out       []Event
}

// read gives the events that lie between the reader's position and the view, and
// moves the reader on.
func (rd *reader) read(v view) []Event {
	rd.out = nil
	if rd.at.turn != v.turn.Num {
		rd.at = position{turn: v.turn.Num, step: startStep}
	}
	if rd.at.step == startStep {
		rd.prologue(v)
	}
	if rd.at.step == startStep && rd.at.slot < slotRunning {
		return rd.out
	}
	for i := max(rd.at.step, 0); i < int64(len(v.steps)); i++ {
		rd.step(v, v.steps[i], false)
	}
	if v.current != nil {
		rd.step(v, *v.current, true)
	}
	if v.turn.Status.Ended() && !rd.done() {
		if rd.at.step >= int64(len(v.steps)) && rd.at.step != endStep && rd.at.attempt != 0 {
			// The step it is in was cut off, and the turn ended without it.
			rd.restart(v, store.Step{Seq: rd.at.step})
		}
		rd.epilogue(v)
	}
	return rd.out
}

// done reports whether the reader has given all of a turn.
func (rd *reader) done() bool { return rd.at.step == endStep && rd.at.slot == slotFinalDone }

// put gives a chunk unless the reader is past it.
func (rd *reader) put(v view, step, slot int64, attempt int64, c chunk) {
	rd.putAt(v, position{v.turn.Num, step, attempt, slot, 0}, c)
}

func (rd *reader) putAt(v view, p position, c chunk) {
	if p.compare(rd.at) <= 0 {
		return
	}
	rd.at = p
	rd.emit(v, c)
}

// emit gives a chunk that ends where the reader is.
func (rd *reader) emit(v view, c chunk) {
	id := rd.at.String()
	if rd.replay {
		id += replayMark
	}
	if rd.wide {
		c.TaskID, c.TurnID = v.turn.TaskID, v.turn.ID
	}
	rd.out = append(rd.out, Event{ID: id, Data: encode(c)})
}

// encode gives v as JSON on one line, readable: < and & stay as they are.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only a field of ours that is no JSON can do it
		return fmt.Appendf(nil, `{"type":"error","errorText":%q}`, "the event cannot be shown")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// prologue is what comes before the first step.
func (rd *reader) prologue(v view) {
	rd.put(v, startStep, slotUserMessage, 0, chunk{Type: "data-user-message", Data: rd.r.userMessage(v.turn, v.attached), Transient: true})
	rd.put(v, startStep, slotPending, 0, statusChunk(store.Pending))
	if v.turn.StartedAt == nil && !v.turn.Status.Ended() {
		return
	}
	rd.put(v, startStep, slotStart, 0, chunk{Type: "start", MessageID: messageID(v.turn.ID, roleAssistant), MessageMetadata: startMeta(v.turn)})
	if v.turn.StartedAt != nil {
		rd.put(v, startStep, slotRunning, 0, statusChunk(store.Running))
	} else if rd.at.slot < slotRunning { // cancelled while it waited
		rd.at = position{turn: v.turn.Num, step: startStep, slot: slotRunning}
	}
}

type statusData struct {
	Status store.Status `json:"status"`
}

func statusChunk(s store.Status) chunk {
	return chunk{Type: "data-status", Data: statusData{s}, Transient: true}
}

// step gives a step as far as it has come. open says that its model call is still
// in progress.
func (rd *reader) step(v view, st store.Step, open bool) {
	if rd.at.step == st.Seq && rd.at.attempt != st.Attempt {
		// What the reader was given of this step came from a try that was cut off.
		rd.restart(v, st)
	}
	if open && len(st.Parts) == 0 {
		return // a call that fails before its first word leaves no step
	}
	rd.put(v, st.Seq, slotStartStep, st.Attempt, chunk{Type: "start-step"})
	for i, p := range st.Parts {
		last := open && i == len(st.Parts)-1
		switch p.Type {
		case store.PartToolCall:
			rd.toolInput(v, st, int64(i), p, last)
		case store.PartText, store.PartReasoning:
			rd.text(v, st, int64(i), p, last)
		}
	}
	if open {
		return
	}
	if ended := rd.outputs(v, st); !ended {
		return
	}
	rd.put(v, st.Seq, slotFinishStep, st.Attempt, chunk{Type: "finish-step"})
}

type restartData struct {
	StepID string `json:"stepId"`
}

// restart withdraws what was given of a step: what follows is the whole of it.
func (rd *reader) restart(v view, st store.Step) {
	rd.at = position{turn: v.turn.Num, step: st.Seq, attempt: st.Attempt}
	rd.emit(v, chunk{Type: "data-restart", Data: restartData{stepID(st.Seq)}, Transient: true})
}

func stepID(seq int64) string { return "s" + strconv.FormatInt(seq, 10) }

// partID is the id of a text or reasoning part, unique in its message.
func partID(step, part int64) string { return stepID(step) + "p" + strconv.FormatInt(part, 10) }

// text gives a text or reasoning part from where the reader is in it. An empty one
// is not shown: some models give such to carry what only they understand.
func (rd *reader) text(v view, st store.Step, part int64, p store.Part, open bool) {
	if p.Text == "" {
		return
	}
	kind, id := "text", partID(st.Seq, part)
	if p.Type == store.PartReasoning {
		kind = "reasoning"
	}
	at := position{v.turn.Num, st.Seq, st.Attempt, slotParts + part, 1}
	rd.putAt(v, at, chunk{Type: kind + "-start", ID: id})
	for delta := p.Text[rd.had(at, len(p.Text)):]; delta != ""; {
		piece := rd.piece(delta)
		delta = delta[len(piece):]
		at.offset = int64(1 + len(p.Text) - len(delta))
		rd.putAt(v, at, chunk{Type: kind + "-delta", ID: id, Delta: piece})
	}
	if !open {
		at.offset = endOffset
		rd.putAt(v, at, chunk{Type: kind + "-end", ID: id})
	}
}

// had is how many of the n bytes of the part that begins at at the reader has had.
func (rd *reader) had(at position, n int) int {
	switch {
	case rd.at.step == at.step && rd.at.slot == at.slot:
		return int(min(max(rd.at.offset-1, 0), int64(n)))
	case rd.at.compare(at) > 0:
		return n
	}
	return 0
}

// maxPieces bounds the text that is given word by word, in bytes; more is a reader
// catching up.
const maxPieces = 4 << 10

// piece is the beginning of a text to give at once: for the client that waits for
// this turn the next word, so that it sees the same events however fast it reads,
// else all of it.
func (rd *reader) piece(text string) string {
	if !rd.words || len(text) > maxPieces {
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

// toolInput gives a tool call's arguments. Arguments that no tool can run with
// are an error at once.
func (rd *reader) toolInput(v view, st store.Step, part int64, p store.Part, open bool) {
	at := position{v.turn.Num, st.Seq, st.Attempt, slotParts + part, 1}
	end := at
	end.offset = endOffset
	if end.compare(rd.at) <= 0 {
		return
	}
	rd.putAt(v, at, chunk{Type: "tool-input-start", ToolCallID: p.CallID, ToolName: p.ToolName, Dynamic: true})
	text := string(p.Input)
	if !open {
		text = inputText(p.Input)
	}
	if delta := text[rd.had(at, len(text)):]; delta != "" {
		at.offset = int64(1 + len(text))
		rd.putAt(v, at, chunk{Type: "tool-input-delta", ToolCallID: p.CallID, InputTextDelta: delta})
	}
	if open {
		return
	}
	c := chunk{Type: "tool-input-available", ToolCallID: p.CallID, ToolName: p.ToolName, Input: p.Input, Dynamic: true}
	if why := inputError(p.Input); why != "" {
		c.Type, c.ErrorText = "tool-input-error", why
	}
	rd.putAt(v, end, c)
}

// outputs gives the ends of a step's tool calls, and says whether all have ended.
// What is decided on comes after all that needed no decision, so that the order is
// that of the runner, whenever people decide.
func (rd *reader) outputs(v view, st store.Step) bool {
	rd.requests(v, st)
	if !rd.ends(v, st, slotCalls, false) {
		return false
	}
	rd.decisions(v, st)
	return rd.ends(v, st, slotDecided, true)
}

// ends gives the ends of those calls of a step that people were asked about, or of
// the others.
func (rd *reader) ends(v view, st store.Step, slot int64, asked bool) bool {
	for _, call := range toolCalls(st) {
		a, asks := st.Approval(call.n)
		if asks != asked {
			continue
		}
		c, ended := callEnd(v, st, call)
		if !ended {
			return false
		}
		if rd.approvals && asks && a.Status != store.ApprovalApproved {
			c = chunk{Type: "tool-output-denied", ToolCallID: call.CallID}
		}
		at := position{v.turn.Num, st.Seq, st.Attempt, slot + call.n, 0}
		if at.compare(rd.at) > 0 && inputError(call.Input) == "" {
			rd.putAt(v, at, c)
		}
	}
	return true
}

// callEnd is how a tool call of a step ended. In a turn that went on or ended without
// it, it did not run.
func callEnd(v view, st store.Step, call toolCall) (chunk, bool) {
	c := chunk{Type: "tool-output-error", ToolCallID: call.CallID, Dynamic: true}
	end, ended := st.Call(call.n)
	switch {
	case ended && end.State == store.CallCompleted:
		c.Type, c.Output = "tool-output-available", end.Output
	case ended:
		c.ErrorText = errorText(end)
	case v.turn.Status.Ended() || st.Seq < int64(len(v.steps))-1 || v.current != nil:
		c.ErrorText = callDidNotRun
	default:
		return c, false
	}
	return c, true
}

const callDidNotRun = "the call did not run"

// epilogue is what comes after the last step.
func (rd *reader) epilogue(v view) {
	if len(v.steps) == 0 { // readers want every message to have a part
		rd.put(v, endStep, slotEmptyStep, 0, chunk{Type: "start-step"})
		rd.put(v, endStep, slotEmptyEnd, 0, chunk{Type: "finish-step"})
	}
	for i, s := range v.sources {
		rd.put(v, endStep, slotSources+int64(i), 0, chunk{Type: "source-url", SourceID: s.ID, URL: s.URL, Title: s.Title})
	}
	for i, f := range v.files {
		rd.put(v, endStep, slotFiles+int64(i), 0, chunk{Type: "file", URL: rd.r.FileURL(f), MediaType: f.MediaType})
	}
	rd.put(v, endStep, slotUsage, 0, chunk{Type: "data-usage", Data: turnUsage(v.turn), Transient: true})
	rd.put(v, endStep, slotStatus, 0, statusChunk(v.turn.Status))
	switch v.turn.Status {
	case store.Failed:
		text := "the turn failed"
		if v.turn.Failure != nil && v.turn.Failure.Message != "" {
			text = v.turn.Failure.Message
		}
		rd.put(v, endStep, slotError, 0, chunk{Type: "error", ErrorText: text})
	case store.Aborted:
		rd.put(v, endStep, slotError, 0, chunk{Type: "abort"})
	}
	rd.put(v, endStep, slotFinish, 0, chunk{Type: "finish", FinishReason: finishReason(v.turn), MessageMetadata: finishMeta(v.turn)})
	rd.at.slot = slotFinalDone
}

// finishReason gives a turn's end in the stream's words.
func finishReason(t store.Turn) string {
	switch {
	case t.Status == store.Failed:
		return "error"
	case t.Status == store.Aborted:
		return "other"
	case t.IncompleteReason == store.ReasonBudget:
		return "length"
	}
	return "stop"
}
