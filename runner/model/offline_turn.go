package model

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A turn is a Request as the offline model sees it: what was asked, and what has
// been done about it so far.
type turn struct {
	req      *Request
	input    string    // the text of the message that began the turn
	files    []Part    // its attachments
	answered int       // finished model calls of the turn, which is the step it is on
	done     []toolRun // tool calls of the turn, in order
	nextCall int       // number of the next tool call of the conversation
}

// A toolRun is a tool call of the turn and, once it has one, its result.
type toolRun struct {
	callID  string
	name    string
	input   json.RawMessage
	output  string
	ended   bool
	isError bool
}

func readTurn(req *Request) *turn {
	t := &turn{req: req, nextCall: 1, answered: req.LeftOut}
	start := req.TurnStart
	if start < 0 || start >= len(req.Messages) || req.Messages[start].Role != RoleUser {
		start = lastUserMessage(req.Messages)
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		t.countCalls(m)
		switch {
		case i < start:
		case i == start:
			t.input = strings.ToValidUTF8(joinText(m.Parts), "\uFFFD") // arguments made of it come back so
			t.files = partsOf(m.Parts, PartFile)
		case m.Role == RoleAssistant:
			t.answered++
			t.readCalls(m)
		case m.Role == RoleTool:
			t.readResults(m)
		}
	}
	return t
}

func lastUserMessage(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == RoleUser {
			return i
		}
	}
	return 0
}

// countCalls moves the next call's number past m's. It heeds the numbers too and
// not only how many there are: older messages may have been left out.
func (t *turn) countCalls(m *Message) {
	for i := range m.Parts {
		if m.Parts[i].Type != PartToolCall {
			continue
		}
		t.nextCall++
		if n, err := strconv.Atoi(strings.TrimPrefix(m.Parts[i].CallID, callPrefix)); err == nil {
			t.nextCall = max(t.nextCall, min(n, 1<<30)+1)
		}
	}
}

const callPrefix = "call_"

func callID(n int) string { return callPrefix + strconv.Itoa(n) }

func (t *turn) readCalls(m *Message) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == PartToolCall {
			t.done = append(t.done, toolRun{callID: p.CallID, name: p.ToolName, input: p.Input})
		}
	}
}

func (t *turn) readResults(m *Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != PartToolResult {
			continue
		}
		for k := len(t.done) - 1; k >= 0; k-- {
			if run := &t.done[k]; run.callID == p.CallID {
				run.output, run.isError, run.ended = p.Text, p.IsError, true
				break
			}
		}
	}
}

// last is the last tool's output in this turn, empty if there is none.
func (t *turn) last() string {
	for i := len(t.done) - 1; i >= 0; i-- {
		if t.done[i].ended {
			return t.done[i].output
		}
	}
	return ""
}

// offers says whether the model may call the tool.
func (t *turn) offers(name string) bool {
	for i := range t.req.Tools {
		if t.req.Tools[i].Name == name {
			return true
		}
	}
	return false
}

// earlier gives what the turns before this one left: the last answer's text and
// the last attachments.
func (t *turn) earlier() (answer string, files []Part) {
	start := min(max(t.req.TurnStart, 0), len(t.req.Messages))
	for i := start - 1; i >= 0; i-- {
		m := &t.req.Messages[i]
		if m.Role == RoleAssistant && answer == "" {
			answer = joinText(m.Parts)
		}
		if m.Role == RoleUser && files == nil {
			files = partsOf(m.Parts, PartFile)
		}
	}
	return answer, files
}

func joinText(parts []Part) string {
	text, several := "", false
	for i := range parts {
		if parts[i].Type != PartText {
			continue
		}
		if several {
			text += "\n"
		}
		text += parts[i].Text
		several = true
	}
	return text
}

func partsOf(parts []Part, typ PartType) []Part {
	var found []Part
	for _, p := range parts {
		if p.Type == typ {
			found = append(found, p)
		}
	}
	return found
}

// answer decides what to say: the script's step if there is a script, else the
// plain thing.
func (t *turn) answer() (reply, error) {
	if block, rest, ok := cutScript(t.input); ok {
		return t.scripted(block, rest)
	}
	if block, _, ok := cutScript(t.req.Instructions); ok {
		return t.scripted(block, t.input)
	}
	return t.plain(), nil
}

// wrapUp is the answer when there is nothing better: what was done, in a
// sentence.
func (t *turn) wrapUp() string {
	if len(t.done) == 0 {
		return "A limit was reached before anything was done."
	}
	text := "A limit was reached after " + plural(len(t.done), "tool call") + "; "
	last := t.done[len(t.done)-1]
	if !last.ended {
		return text + "the last, " + last.name + ", has no result."
	}
	verb := " returned: "
	if last.isError {
		verb = " failed: "
	}
	return text + "the last, " + last.name + "," + verb + shorten(strings.TrimSpace(last.output), 200)
}

// closing is the answer after a script whose last line calls a tool.
func (t *turn) closing() string {
	const short = 500
	last := strings.TrimSpace(t.last())
	var said string
	switch {
	case last == "" || len(last) > short:
		return "Done."
	case json.Unmarshal([]byte(last), &said) == nil && said != "":
		return said // a JSON string
	case json.Valid([]byte(last)):
		return "Done."
	}
	return last
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
