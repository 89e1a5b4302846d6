package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
)

// ollamaShown is the fake Ollama's description of its models: they have all capabilities.
const ollamaShown = `{"parameters":"num_ctx 131072","model_info":{"general.architecture":"x","x.context_length":131072},` +
	`"capabilities":["completion","tools","thinking","vision"]}`

// readOllama parses a request to Ollama's chat API.
func readOllama(raw []byte) (a asked) {
	var body struct {
		Messages []struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
		Tools   []json.RawMessage
		Format  json.RawMessage
		Options struct {
			NumPredict int `json:"num_predict"`
		}
	}
	_ = json.Unmarshal(raw, &body)
	a.maxTokens, a.tools, a.schema = body.Options.NumPredict, len(body.Tools), len(body.Format) > 0
	for _, m := range body.Messages {
		text := m.Content
		for _, c := range m.ToolCalls {
			text += "\ncalled " + c.Function.Name + " " + string(c.Function.Arguments)
		}
		a.bytes += len(text)
		if m.Role == "system" {
			a.system += text
			continue
		}
		a.messages = append(a.messages, count{m.Role, text, m.ToolCallID})
	}
	return a
}

// writeOllama writes a response of Ollama's chat API. The API has no form for a refusal, and
// reports the usage only at the end.
func writeOllama(w io.Writer, s said) {
	line := func(message, end string) {
		_, _ = fmt.Fprintf(w, "{\"model\":\"wired-1\",\"message\":{\"role\":\"assistant\",%s},%s}\n", message, end)
	}
	const more = `"done":false`
	if s.reasoning != "" {
		for _, piece := range pieces(s.reasoning) {
			line(`"content":"","thinking":`+quoted(piece), more)
		}
	}
	if s.text != "" {
		for _, piece := range pieces(s.text) {
			line(`"content":`+quoted(piece), more)
		}
	}
	for i, c := range s.calls { // Ollama always sends complete calls
		line(fmt.Sprintf(`"content":"","tool_calls":[{"id":%q,"function":{"index":%d,"name":%q,"arguments":%s}}]`, c.id, i, c.name, c.args), more)
	}
	if s.broken || s.hangs {
		return
	}
	reason := map[string]string{"": "stop", "length": "length", "odd": "full_moon"}[s.finish]
	line(`"content":""`, fmt.Sprintf(`"done_reason":%q,"done":true,"prompt_eval_count":%d,"eval_count":%d`, reason, s.in, s.out))
}
