package offline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/model"
)

// A turn is a request in the form that the rules use: the instruction, and the tool calls so
// far.
type turn struct {
	req      *model.Request
	input    string       // text of the message that began the turn
	files    []model.Part // its attachments
	answered int          // finished model calls of the turn: index of the script's step
	done     []toolRun    // tool calls of the turn, in order
	nextCall int          // number for the next tool call of the conversation
	cutOff   textSize     // text that earlier calls produced for the current step
}

// A textSize counts the bytes of text that a model call produced.
type textSize struct{ reasoning, text int }

// A toolRun is a tool call of the turn, with its result if it has ended.
type toolRun struct {
	callID  string
	name    string
	input   json.RawMessage
	output  string
	ended   bool
	isError bool
}

func readTurn(req *model.Request) *turn {
	t := &turn{req: req, nextCall: 1, answered: req.LeftOut}
	start := t.start()
	for i := range req.Messages {
		m := &req.Messages[i]
		t.countCalls(m)
		switch {
		case i < start:
		case i == start:
			// Arguments made from the input must be valid JSON.
			t.input = strings.ToValidUTF8(joinText(m.Parts, model.PartText), "\uFFFD")
			t.files = partsOf(m.Parts, model.PartFile)
		case m.Role == model.RoleAssistant && i+1 < len(req.Messages) && req.Messages[i+1].GoesOn:
			// The output limit cut this answer off, so the script's step is not finished.
			t.cutOff.reasoning += len(joinText(m.Parts, model.PartReasoning))
			t.cutOff.text += len(joinText(m.Parts, model.PartText))
		case m.Role == model.RoleAssistant:
			t.answered, t.cutOff = t.answered+1, textSize{}
			for _, p := range partsOf(m.Parts, model.PartToolCall) {
				t.done = append(t.done, toolRun{callID: p.CallID, name: p.ToolName, input: p.Input})
			}
		case m.Role == model.RoleTool:
			t.readResults(m)
		}
	}
	return t
}

// start returns the index of the message that began the turn.
func (t *turn) start() int {
	messages := t.req.Messages
	if i := t.req.TurnStart; i >= 0 && i < len(messages) && messages[i].Role == model.RoleUser {
		return i
	}
	// Without a valid index, use the last user message.
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == model.RoleUser {
			return i
		}
	}
	return 0
}

// countCalls sets nextCall to a number after the calls of m. Counting them is not enough,
// because older messages may have been omitted.
func (t *turn) countCalls(m *model.Message) {
	for _, p := range partsOf(m.Parts, model.PartToolCall) {
		t.nextCall++
		if n, err := strconv.Atoi(strings.TrimPrefix(p.CallID, callPrefix)); err == nil {
			t.nextCall = max(t.nextCall, min(n, 1<<30)+1)
		}
	}
}

const callPrefix = "call_"

func callID(n int) string { return callPrefix + strconv.Itoa(n) }

// readResults adds the results in a message to their calls.
func (t *turn) readResults(m *model.Message) {
	for _, p := range partsOf(m.Parts, model.PartToolResult) {
		for k := len(t.done) - 1; k >= 0; k-- {
			if run := &t.done[k]; run.callID == p.CallID {
				run.output, run.isError, run.ended = p.Text, p.IsError, true
				break
			}
		}
	}
}

// last returns the output of the last finished tool call of the turn.
func (t *turn) last() string {
	for i := len(t.done) - 1; i >= 0; i-- {
		if t.done[i].ended {
			return t.done[i].output
		}
	}
	return ""
}

// hasTool reports whether the model may call the tool.
func (t *turn) hasTool(name string) bool {
	return slices.ContainsFunc(t.req.Tools, func(tool model.Tool) bool { return tool.Name == name })
}

// joinText joins the texts of the parts of one type. It excludes texts that the service has
// added (model.Part.Aside).
func joinText(parts []model.Part, typ model.PartType) string {
	var texts []string
	for _, p := range partsOf(parts, typ) {
		if !p.Aside {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func partsOf(parts []model.Part, typ model.PartType) []model.Part {
	var found []model.Part
	for _, p := range parts {
		if p.Type == typ {
			found = append(found, p)
		}
	}
	return found
}

// answer returns the reply: the next step of a script, or else the reply by rules.
func (t *turn) answer() (reply, error) {
	if block, rest, ok := cutScript(t.input); ok {
		return t.scripted(block, rest)
	}
	if block, _, ok := cutScript(t.req.Instructions); ok {
		return t.scripted(block, t.input)
	}
	return t.plain(), nil
}

// wrapUp returns the answer at a limit if there is no better one: the last tool call.
func (t *turn) wrapUp() string {
	if len(t.done) == 0 {
		return "A limit was reached before anything was done."
	}
	last := t.done[len(t.done)-1]
	calls := "1 tool call"
	if len(t.done) > 1 {
		calls = strconv.Itoa(len(t.done)) + " tool calls"
	}
	text := "A limit was reached after " + calls + "; the last, " + last.name + ", "
	switch {
	case !last.ended:
		return text + "has no result."
	case last.isError:
		return text + "failed: " + shorten(last.output, 200)
	}
	return text + "returned: " + shorten(last.output, 200)
}

// closing returns the answer after a script that ends with a tool call.
func (t *turn) closing() string {
	const short = 500
	last := strings.TrimSpace(t.last())
	var plain string
	switch {
	case last == "" || len(last) > short:
		return "Done."
	case json.Unmarshal([]byte(last), &plain) == nil && plain != "":
		return plain // a JSON string
	case json.Valid([]byte(last)):
		return "Done."
	}
	return last
}
