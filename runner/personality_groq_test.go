package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// groqServer returns Groq with a model that reasons.
//
// Sources: vercel/ai, packages/groq/src/__fixtures__ (recorded streams, json mode with tools); groq-python,
// types/chat/chat_completion_chunk.py (x_groq); karthink/gptel#774, vercel/ai#8057, tashfeenahmed/freellmapi#1070
// (thinking in the conversation); fanenr/chatbot#21 (store); gptme/gptme#375 (system as a list);
// langchain-ai/langchain#23629 (response_format with a stream).
func groqServer() personality {
	const name = "qwen/qwen3.8-27b"
	return personality{
		name: "groq", host: "api.groq.com", base: "/openai/v1", model: name, priced: "groq.com:" + name,
		get: modelsListed(`{"object":"list","data":[{"id":"` + name + `","object":"model","created":1790000000,` +
			`"owned_by":"Alibaba Cloud",` +
			`"active":true,"context_window":131072,"public_apps":null,"max_completion_tokens":16384}]}`),
		id:     func(n int) string { return fmt.Sprintf("tk%07d", n) },
		refuse: groqRefuses,
		write:  func(w io.Writer, s said, n int) { writeGroq(w, s.thinking(), n, name) },
	}
}

// groqError returns an error of Groq.
func groqError(message, more string) *said {
	body := `{"error":{"message":` + quoted(message) + `,"type":"invalid_request_error"` + more + `}}`
	return refusing(http.StatusBadRequest, body)
}

const groqFields = "model messages tools tool_choice response_format max_tokens max_completion_tokens " +
	"reasoning_effort temperature top_p stream stream_options seed stop parallel_tool_calls service_tier user"

func groqRefuses(body map[string]any, a asked) *said {
	if name := unknownField(body, groqFields); name != "" {
		return groqError(fmt.Sprintf("property '%s' is unsupported, did you mean 'stop'?", name), "")
	}
	c := sentChatOf(a)
	for i, m := range c.Messages {
		if m.Role == "system" && !strings.HasPrefix(string(m.Content), `"`) {
			return groqError(fmt.Sprintf("'messages.%d' : for 'role:system' the following must be "+
				"satisfied[('messages.%d.content' : "+
				"value must be a string)]", i, i), "")
		}
		name := unknownField(m.fields, "role content name tool_calls tool_call_id")
		switch {
		case name == "":
		case name == "reasoning" && len(a.raw)%2 == 0:
			return groqError(fmt.Sprintf("messages[%d].reasoning: reasoning is not supported with this model", i), "")
		default:
			hint := map[bool]string{true: ", did you mean 'role'?"}[name == "reasoning"]
			return groqError(fmt.Sprintf("'messages.%d' : for 'role:%s' the following must be satisfied[('messages.%d' : "+
				"property '%s' is "+
				"unsupported%s)]", i, m.Role, i, name, hint), "")
		}
	}
	switch most, _ := body["max_tokens"].(float64); {
	case most > 16384:
		return groqError("`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is "+
			"less than the "+
			"`context_window` for this model", `,"param":"max_tokens"`)
	case c.Format != nil && len(c.Tools) > 0:
		return groqError("json mode cannot be combined with tool/function calling", `,"param":"response_format"`)
	case c.Format != nil && body["stream"] == true:
		return groqError("`response_format` does not support streaming", "")
	}
	if id := c.unpaired(); id != "" {
		return groqError("tool call "+id+" has no result", "")
	}
	return nil
}

// writeGroq writes an answer of Groq. The last event has the usage in x_groq, of older models only there.
func writeGroq(w io.Writer, s said, n int, name string) {
	e := chatEvents{w, `"id":"chatcmpl-b610d559","object":"chat.completion.chunk","created":1790000000,` +
		`"model":"` + name +
		`","system_fingerprint":"fp_f8b414701e"`}
	usage := usageWith(s, `,"queue_time":0.041520249,"prompt_time":0.010407901,"completion_time":0.046601227,`+
		`"total_time":0.057009128,`+
		`"completion_tokens_details":{"reasoning_tokens":1}`)
	content := map[bool]string{true: "null", false: `""`}[len(s.calls) > 0]
	e.choice(`{"role":"assistant","content":`+content+`}`, "null", `,"x_groq":{"id":"req_01kh52nj5y","seed":689520654}`)
	if s.reasoning != "" {
		for _, piece := range pieces(s.reasoning) {
			e.choice(`{"reasoning":`+quoted(piece)+`,"channel":"analysis"}`, "null", "")
		}
	}
	if s.text != "" {
		for _, piece := range pieces(s.text) {
			e.choice(`{"content":`+quoted(piece)+`}`, "null", "")
		}
	}
	for i, c := range s.calls { // some come whole, and some in two pieces
		half := firstHalf(c.args)
		if i%2 == 0 {
			half = c.args
		}
		e.choice(fmt.Sprintf(`{"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%s},`+
			`"index":%d}]}`,
			c.id, c.name, quoted(half), i), "null", "")
		if rest := c.args[len(half):]; rest != "" {
			e.choice(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(rest)), "null", "")
		}
	}
	if s.counted {
		e.usage(usage)
	}
	if s.broken || s.hangs {
		return
	}
	more := `,"x_groq":{"id":"req_01kh52nj5y","usage":` + usage + `}`
	if n%2 == 0 {
		more += `,"usage":` + usage
	}
	e.choice(`{}`, finishWord(s), more)
	e.done()
}
