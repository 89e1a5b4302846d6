package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// readResponses parses a request to the Responses API.
func readResponses(raw []byte) (a asked) {
	var body struct {
		Instructions string
		Input        []struct {
			Type, Role, Name, Arguments string
			Content, Output             json.RawMessage
			CallID                      string `json:"call_id"`
			Encrypted                   string `json:"encrypted_content"`
		}
		MaxTokens int `json:"max_output_tokens"`
		Tools     []json.RawMessage
		Text      struct{ Format json.RawMessage }
	}
	_ = json.Unmarshal(raw, &body)
	a.system, a.bytes = body.Instructions, len(body.Instructions)
	a.maxTokens, a.tools, a.schema = body.MaxTokens, len(body.Tools), len(body.Text.Format) > 0
	open := false // the last message is the assistant's and may be extended
	for _, item := range body.Input {
		text := contentText(item.Content) + contentText(item.Output)
		a.bytes += len(text) + len(item.Arguments)
		switch item.Type {
		case "message":
			a.messages = append(a.messages, count{item.Role, text, ""})
		case "function_call":
			// The API sends each call of a step as an item. In the common form they are one
			// message.
			if !open {
				a.messages = append(a.messages, count{role: "assistant"})
			}
			a.messages[len(a.messages)-1].text += "\ncalled " + item.Name + " " + item.Arguments
		case "function_call_output":
			a.messages = append(a.messages, count{"tool", text, item.CallID})
		case "reasoning":
			a.thoughts = append(a.thoughts, item.Encrypted)
		}
		open = item.Type == "function_call" || item.Role == "assistant"
	}
	return a
}

// writeResponses writes a response of the Responses API.
func writeResponses(w io.Writer, s said) {
	event := func(kind, body string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, body)
	}
	event("response.created", `"response":{"object":"response","status":"in_progress","model":"wired-1"}`)
	index := 0
	item := func(kind, start, end, pieceKind, text string) {
		event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"type":%q,"id":"i%d"%s}`, index, kind, index, start))
		for _, piece := range pieces(text) {
			event("response."+pieceKind+".delta", fmt.Sprintf(`"output_index":%d,"item_id":"i%d","delta":%s`, index, index, quoted(piece)))
		}
		if !s.broken && !s.hangs && s.finish != "length" {
			event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":{"type":%q,"id":"i%d"%s}`, index, kind, index, end))
		}
		index++
	}
	if s.reasoning != "" {
		item("reasoning", `,"summary":[]`, fmt.Sprintf(`,"summary":[{"type":"summary_text","text":%s}],"encrypted_content":%s`,
			quoted(s.reasoning), quoted("sealed "+s.reasoning)), "reasoning_summary_text", s.reasoning)
	}
	if s.text != "" {
		item("message", `,"role":"assistant","content":[]`, fmt.Sprintf(`,"content":[{"type":"output_text","text":%s}]`, quoted(s.text)), "output_text", s.text)
	}
	for _, c := range s.calls {
		call := fmt.Sprintf(`,"call_id":%q,"name":%q,"arguments":`, c.id, c.name)
		item("function_call", call+`""`, call+quoted(c.args), "function_call_arguments", c.args)
	}
	if s.finish == "refused" && s.why != "" {
		item("message", ``, fmt.Sprintf(`,"content":[{"type":"refusal","refusal":%s}]`, quoted(s.why)), "refusal", s.why)
	}
	usage := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":%d,"input_tokens_details":{"cached_tokens":%d}}`, s.in, s.out, s.cached)
	switch {
	case s.broken && s.counted: // a server that fails still reports its usage
		event("response.failed", `"response":{"object":"response","status":"failed","error":{"code":"server_error","message":"it broke"},`+usage+`}`)
	case s.broken, s.hangs:
	case s.finish == "" || s.finish == "refused":
		event("response.completed", `"response":{"object":"response","status":"completed","model":"wired-1",`+usage+`}`)
	default:
		reason := map[string]string{"length": "max_output_tokens", "filter": "content_filter"}[s.finish]
		event("response.incomplete", fmt.Sprintf(`"response":{"object":"response","status":"incomplete","model":"wired-1","incomplete_details":{"reason":%q},%s}`,
			strings.ToLower(reason), usage))
	}
}

// TestReasoningSurvivesKill kills a turn between two steps. The resumed turn sends the same
// encrypted reasoning to the model.
func TestReasoningSurvivesKill(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	again := make(chan struct{}, 1)
	w := newWire(t, func(a asked) said {
		switch a.number {
		case 0:
			return said{reasoning: "First the list.", calls: []saidCall{{"call_1", "list_files", `{}`}}, in: 10, out: 5}
		case 1:
			again <- struct{}{}
			return said{reasoning: "Now", hangs: true}
		}
		return said{text: "Done.", in: 20, out: 5}
	})
	f := newFixture(t, withModel(w.openModel(t, "responses:m")))
	turn := f.accept("go")
	until(t, again, "the model is asked again")
	f = f.crash()
	f.start()
	is.Equal(f.wait(turn).OutputText, "Done.")
	asked := w.seen()
	is.Equal(len(asked), 3)
	is.Equal(asked[1].thoughts, []string{"sealed First the list."})
	is.Equal(asked[2], renumbered(asked[1], 2)) // the provider's cache contains it
	next := f.accept("more")
	is.Equal(f.wait(next).OutputText, "Done.")
	is.Equal(len(w.seen()[3].thoughts), 0) // another task does not get the reasoning
}

func renumbered(a asked, number int) asked {
	a.number = number
	return a
}
