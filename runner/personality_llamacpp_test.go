package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// The list of models and the properties of llama.cpp's server: ggml-org/llama.cpp, tools/server (server-models.cpp,
// server-context.cpp). The list names the file of the model, which is served under any name, and has it twice.
const (
	llamaList = `{"models":[{"name":"/models/Qwen3-8B-Q4_K_M.gguf","model":"/models/Qwen3-8B-Q4_K_M.gguf",` +
		`"modified_at":"",` +
		`"size":"","digest":"","type":"model","description":"","tags":[""],"capabilities":["completion"],"parameters":"",` +
		`"details":{"parent_model":"","format":"gguf","family":"","families":[""],"parameter_size":"",` +
		`"quantization_level":""}}],` +
		`"object":"list","data":[{"id":"/models/Qwen3-8B-Q4_K_M.gguf","object":"model","created":1780390177,` +
		`"owned_by":"llamacpp",` +
		`"meta":{"vocab_type":2,"n_vocab":151936,"n_ctx_train":131072,"n_embd":4096,"n_params":8190735360,` +
		`"size":5021794304}}]}`
	llamaProps = `{"default_generation_settings":{"id":0,"id_task":-1,"n_ctx":65536,"speculative":false,` +
		`"is_processing":false},` +
		`"total_slots":1,"model_alias":"","model_path":"/models/Qwen3-8B-Q4_K_M.gguf","modalities":{"vision":true,` +
		`"audio":false}}`
	llamaWindow = 65536
)

// llamaServers returns servers of llama.cpp: one of today, one of the spring of 2025, and one that cannot read the
// calls of its model.
func llamaServers() []personality {
	pages := listing(map[string]string{"/v1/models": llamaList, "/props": llamaProps})
	return []personality{
		{name: "llama.cpp", get: pages, refuse: llamaRefusals(), reply: llamaReply, id: llamaID},
		// Before ggml-org/llama.cpp#12379, calls were not streamed, and most formats had no ids.
		{name: "llama.cpp-2025", get: pages, uncached: true, refuse: oldLlamaRefusal, reply: oldLlamaReply},
		{name: "llama.cpp-raw", get: pages, uncached: true, refuse: llamaRefusals(), reply: rawLlamaReply, id: llamaID,
			mute: func(s said, n int) bool { return isUnread(s, n) }},
	}
}

// llamaID returns an id of gen_tool_call_id in server-common.cpp: 32 random letters and digits.
func llamaID(n int) string { return strings.ToUpper(hashOf(n)[:16]) + hashOf(n)[16:32] }

// llamaRefusal is the form of format_error_response in server-common.cpp.
func llamaRefusal(status int, kind, message string) *said {
	return refusing(status, jsonOf(`{"error":{"code":`+fmt.Sprint(status)+`,"message":%s,"type":%s}}`, message, kind))
}

// llamaRefusals returns the checks of one server. It loads its model when the first request arrives.
func llamaRefusals() func(map[string]any, asked) *said {
	var ready atomic.Bool
	return func(_ map[string]any, a asked) *said {
		if !ready.Swap(true) {
			return llamaRefusal(http.StatusServiceUnavailable, "unavailable_error", "Loading model")
		}
		b := localAskOf(a)
		last, before := b.at(len(b.Messages)-1), b.at(len(b.Messages)-2)
		n := promptTokens(a)
		switch {
		case grammarLimit.Match(a.raw): // lidge-jun/opencodex#2135
			return llamaRefusal(400, "invalid_request_error", "Failed to initialize samplers: failed to parse grammar")
		case last.Role == "assistant" && before.Role == "assistant": // oaicompat_chat_params_parse
			return llamaRefusal(400, "invalid_request_error", "Cannot have 2 or more assistant messages at the end of the list.")
		case last.Role == "assistant":
			return llamaRefusal(400, "invalid_request_error", "Assistant response prefill is incompatible with enable_thinking.")
		case b.orderFault() != "": // templates call raise_exception
			return llamaRefusal(500, "server_error", b.orderFault()+" at row 22, column 12: Jinja Exception")
		case n >= llamaWindow:
			return refusing(400, jsonOf(`{"error":{"code":400,"message":%s,"type":"exceed_context_size_error","n_prompt_tokens":%d,`+
				`"n_ctx":%d}}`, fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it",
				n, llamaWindow), n, llamaWindow))
		}
		return nil
	}
}

// llamaChunks begins a stream: pings while the prompt is read (ggml-org/llama.cpp#24013), and the role.
func llamaChunks(w io.Writer, a asked) chunker {
	_, _ = io.WriteString(w, ":\n\n:\n\n")
	c := chunker{w: w, before: `"created":1780390177,"id":"chatcmpl-` + llamaID(-a.number) + `","model":"Qwen3-8B-Q4_K_M.gguf",` +
		`"system_fingerprint":"b9465-23e6dab86","object":"chat.completion.chunk",`}
	c.delta(`{"role":"assistant","content":null}`)
	return c
}

const llamaTimings = `,"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.958,"prompt_per_token_ms":30.958,` +
	`"prompt_per_second":32.3,"predicted_n":35,"predicted_ms":661.064,"predicted_per_token_ms":18.9,` +
	`"predicted_per_second":52.9}`

// llamaReply writes to_json_oaicompat_chat_stream of server-task.cpp. The differences between the parsed messages are
// common_chat_msg_diff: a call begins with its name, and its arguments follow token by token.
func llamaReply(w io.Writer, s said, a asked) {
	c := llamaChunks(w, a)
	c.texts("reasoning_content", s.reasoning)
	c.texts("content", s.text)
	for i, call := range s.calls {
		c.delta(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s}}]}`, i, call.id, call.name)
		for _, piece := range inTokens(call.args) {
			c.delta(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, piece)
		}
	}
	usage := ""
	if localAskOf(a).StreamOptions.IncludeUsage {
		usage = fmt.Sprintf(`{"completion_tokens":%d,"prompt_tokens":%d,"total_tokens":%d,`+
			`"prompt_tokens_details":{"cached_tokens":%d}}`,
			s.out, s.in, s.in+s.out, s.cached)
	}
	c.ends("{}", finishWord(s), usage, llamaTimings)
}

// isUnread reports whether the server cannot read a call of its model, and ends with an error.
func isUnread(s said, n int) bool { return len(s.calls) > 0 && s.text == "" && n%4 == 2 }

// rawLlamaReply writes the answers of a server with --reasoning-format none and a template that it does not know: the
// thinking and the calls are in the text, or common_chat_parse fails on them ("Failed to parse input at pos").
func rawLlamaReply(w io.Writer, s said, a asked) {
	if !localAskOf(a).offers(s.calls) || s.text != "" && len(s.calls) > 0 {
		llamaReply(w, s, a) // such answers would be mistakes
		return
	}
	if !isUnread(s, a.number) {
		if len(s.calls) > 0 {
			s = s.asText(qwenForm)
		}
		s.cached = 0
		llamaReply(w, s.inThinkTags(), a)
		return
	}
	c := llamaChunks(w, a)
	c.texts("reasoning_content", s.reasoning)
	_, _ = fmt.Fprintf(w, "data: {\"error\":{\"code\":500,\"message\":%s,\"type\":\"server_error\"}}\n\ndata: [DONE]\n\n",
		quoted("Failed to parse input at pos 0: "+s.asText(hermesForm).text))
}

// oldLlamaRefusal is oaicompat_completion_params_parse of b4900 to b5400, in examples/server/utils.hpp.
func oldLlamaRefusal(_ map[string]any, a asked) *said {
	b := localAskOf(a)
	switch {
	case len(b.ResponseFormat) > 0: // ggml-org/llama.cpp#11847
		return llamaRefusal(500, "server_error", `Either "json_schema" or "grammar" can be specified, but not both`)
	case len(b.Tools) > 0 && b.Stream:
		return llamaRefusal(500, "server_error", "Cannot use tools with stream")
	case grammarLimit.Match(a.raw):
		return llamaRefusal(400, "invalid_request_error", "Failed to parse grammar")
	}
	return nil
}

// oldLlamaReply writes a document, as to_json_oaicompat_chat, or a stream of text. Its calls have no ids.
func oldLlamaReply(w io.Writer, s said, a asked) {
	if localAskOf(a).Stream {
		s.cached = 0
		llamaReply(w, s, a)
		return
	}
	if h, ok := w.(http.ResponseWriter); ok {
		h.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	message := `"role":"assistant","content":` + quoted(s.text)
	if s.text == "" {
		message = `"role":"assistant","content":null`
	}
	if s.reasoning != "" {
		message += `,"reasoning_content":` + quoted(s.reasoning)
	}
	var calls []string
	for _, c := range s.calls {
		calls = append(calls, fmt.Sprintf(`{"type":"function","function":{"name":%s,"arguments":%s},`+
			`"id":""}`, quoted(c.name), quoted(c.args)))
	}
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	_, _ = fmt.Fprintf(w, `{"choices":[{"finish_reason":%s,"index":0,"message":{%s}}],"created":1744000000,`+
		`"model":"gpt-3.5-turbo",`+
		`"system_fingerprint":"b5050-23106f94","object":"chat.completion","usage":%s,"id":"chatcmpl-%s"%s}`,
		quoted(finishWord(s)), message, usageText(s), llamaID(-a.number), llamaTimings)
}
