package runner_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// localServers returns llama.cpp, vLLM and LM Studio, each in several versions or settings.
func localServers() (list []personality) {
	for _, versions := range [][]personality{llamaServers(), vllmServers(), studioServers()} {
		for i := range versions {
			versions[i].turn, versions[i].every = i, len(versions)
		}
		list = append(list, versions...)
	}
	return list
}

// A localAsk is what local servers read of a request.
type localAsk struct {
	Model         string
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages       []localMessage
	Tools          []localTool
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat json.RawMessage `json:"response_format"`
	MaxTokens      int             `json:"max_tokens"`
}

type localTool struct {
	Function struct {
		Name       string
		Parameters json.RawMessage
	}
}

type localMessage struct {
	Role       string
	Content    json.RawMessage
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// localAskOf reads a request.
func localAskOf(a asked) (b localAsk) {
	_ = json.Unmarshal(a.raw, &b)
	return b
}

// offers reports whether the request offers all the tools that are called.
func (b localAsk) offers(calls []saidCall) bool {
	for _, c := range calls {
		if !slices.ContainsFunc(b.Tools, func(t localTool) bool { return t.Function.Name == c.name }) {
			return false
		}
	}
	return true
}

// promptTokens returns how many tokens the server counts in a request.
func promptTokens(a asked) int { return len(a.raw) / 4 }

// at returns the message at an index, which may be negative or too large.
func (b localAsk) at(i int) localMessage {
	if i < 0 || i >= len(b.Messages) {
		return localMessage{}
	}
	return b.Messages[i]
}

// listing answers GET requests for pages, by path.
func listing(pages map[string]string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		page, ok := pages[r.URL.Path]
		if !ok {
			http.Error(w, `{"error":"Unexpected endpoint or method."}`, http.StatusNotFound)
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, page)
		return true
	}
}

// hashOf returns hexadecimal digits that depend on n.
func hashOf(n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return hex.EncodeToString(sum[:])
}

// inTokens splits text into pieces of a few characters, as models produce it.
func inTokens(text string) (list []string) {
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), 2+len(list)%4)
		list, runes = append(list, string(runes[:n])), runes[n:]
	}
	return list
}

// A chunker writes the events of a stream of chat completions.
type chunker struct {
	w      io.Writer
	before string // fields of each event, before its choices
	after  string // fields of each choice, after its delta
}

// event writes an event with these choices, and perhaps more fields.
func (c chunker) event(choices, more string) {
	_, _ = fmt.Fprintf(c.w, "data: {%s\"choices\":[%s]%s}\n\n", c.before, choices, more)
}

// delta writes a piece of the answer.
func (c chunker) delta(form string, arguments ...any) {
	c.event(`{"index":0,"delta":`+jsonOf(form, arguments...)+c.after+`,"finish_reason":null}`, "")
}

// texts writes a text token by token in a field of the deltas.
func (c chunker) texts(field, text string) {
	for _, piece := range inTokens(text) {
		c.delta(`{%s:%s}`, field, piece)
	}
}

// ends writes the finish reason, the usage if it is not empty, and the end mark.
func (c chunker) ends(delta, reason, usage, more string) {
	c.event(`{"index":0,"delta":`+delta+c.after+`,"finish_reason":`+quoted(reason)+`}`, "")
	if usage != "" {
		c.event("", `,"usage":`+usage+more)
	}
	_, _ = io.WriteString(c.w, "data: [DONE]\n\n")
}

// usageText returns the usage without details.
func usageText(s said) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, s.in, s.out, s.in+s.out)
}

// asText returns an answer whose calls are in its text, in the form of a family of models.
func (s said) asText(form func(c saidCall) string) said {
	var list []string
	for _, c := range s.calls {
		list = append(list, form(c))
	}
	s.text, s.calls = strings.Join(list, "\n"), nil
	return s
}

// The forms in which models write calls as text.
func hermesForm(c saidCall) string {
	return "<tool_call>\n{\"name\": " + quoted(c.name) + ", \"arguments\": " + c.args + "}\n</tool_call>"
}

func mistralForm(c saidCall) string { return "[TOOL_CALLS]" + c.name + "[ARGS]" + c.args }

func llamaForm(c saidCall) string {
	return `{"name": ` + quoted(c.name) + `, "parameters": ` + c.args + `}`
}

// qwenForm is the form of Qwen3-Coder, in which texts stand as they are.
func qwenForm(c saidCall) string {
	var args map[string]json.RawMessage
	_ = json.Unmarshal([]byte(c.args), &args)
	text := "<tool_call>\n<function=" + c.name + ">\n"
	for _, name := range slices.Sorted(maps.Keys(args)) {
		value := string(args[name])
		var plain string
		if json.Unmarshal(args[name], &plain) == nil {
			value = plain
		}
		text += "<parameter=" + name + ">\n" + value + "\n</parameter>\n"
	}
	return text + "</function>\n</tool_call>"
}

// inThinkTags returns an answer whose thinking is in its text.
func (s said) inThinkTags() said {
	if s.reasoning != "" {
		s.text, s.reasoning = "<think>\n"+s.reasoning+"\n</think>\n\n"+s.text, ""
	}
	return s
}

// grammarLimit matches repetitions that llama.cpp's grammars refuse.
var grammarLimit = regexp.MustCompile(`"(?:max|min)(?:Length|Items)":(?:2000|\d{5,})\b|"pattern":"`)

// orderFault returns the first fault in the order of messages that strict servers refuse: results without their calls,
// calls without results, or a system message that is not the first. It is "" if there is none.
func (b localAsk) orderFault() string {
	open := map[string]bool{}
	for i, m := range b.Messages {
		switch {
		case m.Role == "system" && i > 0:
			return "System message must be at the beginning."
		case m.Role == "tool" && !open[m.ToolCallID]:
			return fmt.Sprintf("Tool message at %d has no call %q", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
		case len(open) > 0:
			return fmt.Sprintf("Not the same number of function calls and responses before message %d", i)
		}
		for _, c := range m.ToolCalls {
			if open[c.ID] {
				return fmt.Sprintf("The id %q is used twice", c.ID)
			}
			open[c.ID] = true
		}
	}
	return ""
}
