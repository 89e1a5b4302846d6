package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The lists of models of LM Studio: its documentation, "REST API v0".
const (
	studioList = `{"data":[{"id":"s","object":"model","owned_by":"organization_owner"},` +
		`{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","owned_by":"organization_owner"}],"object":"list"}`
	studioModels = `{"data":[{"id":"s","object":"model","type":"vlm","publisher":"qwen","arch":"qwen3",` +
		`"compatibility_type":"gguf",` +
		`"quantization":"Q4_K_M","state":"loaded","max_context_length":262144,"loaded_context_length":65536,` +
		`"capabilities":["tool_use"]},` +
		`{"id":"text-embedding-nomic-embed-text-v1.5","object":"model","type":"embeddings","publisher":"nomic-ai",` +
		`"arch":"nomic-bert",` +
		`"compatibility_type":"gguf","quantization":"Q4_0","state":"not-loaded","max_context_length":2048}],"object":"list"}`
	studioWindow = 65536
)

// studioServers returns LM Studio 0.4, and LM Studio 0.3.5, which counts no tokens in streams.
func studioServers() []personality {
	pages := listing(map[string]string{"/v1/models": studioList, "/api/v0/models": studioModels})
	return []personality{
		{name: "lm-studio", get: pages, uncached: true, refuse: studioRefusal, reply: studioReply, id: studioID},
		{name: "lm-studio-2024", get: listing(map[string]string{"/v1/models": studioList}), uncounted: true,
			refuse: oldStudioRefusal, reply: oldStudioReply, id: oldStudioID},
	}
}

// studioID returns nine digits: lmstudio-ai/lmstudio-bug-tracker#830.
func studioID(n int) string { return strconv.Itoa(193629320 + 7919*n) }

// oldStudioID returns nine hexadecimal digits (lmstudio-bug-tracker#261), and sometimes nothing (#830).
func oldStudioID(n int) string {
	if n%3 == 0 {
		return ""
	}
	return hashOf(n)[:9]
}

// studioFault is an error, whose form has no object in LM Studio.
func studioFault(message string) *said { return refusing(400, jsonOf(`{"error":%s}`, message)) }

// studioRefusal has the checks of LM Studio.
func studioRefusal(_ map[string]any, a asked) *said {
	b, n := localAskOf(a), promptTokens(a)
	format := string(b.ResponseFormat)
	for _, m := range b.Messages {
		if m.Role == "tool" && m.ToolCallID == "" {
			return studioFault("Invalid 'messages' in payload. Please check the structure of your 'messages' and try again")
		}
	}
	switch {
	case strings.HasPrefix(string(b.ToolChoice), "{"): // lmstudio-bug-tracker#670
		return studioFault("Invalid tool_choice type: 'object'. Supported string values: none, auto, required")
	case format != "" && !strings.Contains(format, `"json_schema"`): // lmstudio-bug-tracker#307
		return studioFault("'response_format.type' must be 'json_schema' or 'text'")
	case b.orderFault() != "":
		return studioFault("Error rendering prompt with jinja template: \"" + b.orderFault() +
			"\". This is usually an issue with the model's prompt template.")
	case n >= studioWindow: // lmstudio-bug-tracker#2322 and #546: an event of a stream with status 200
		why := fmt.Sprintf("Trying to keep the first %d tokens when context the overflows. However, the model is loaded with "+
			"context length of only %d tokens, which is not enough. Try to load the model with a larger context length, "+
			"or provide a shorter input", n, studioWindow)
		return &said{status: http.StatusOK, body: "event: error\ndata: {\"error\":{\"message\":" + quoted(why) + "}}\n\n"}
	}
	return nil
}

// oldStudioRefusal has the checks of LM Studio 0.3.5: lmstudio-bug-tracker#261 and #307.
func oldStudioRefusal(body map[string]any, a asked) *said {
	for _, m := range localAskOf(a).Messages {
		if text := string(m.Content); text == "null" || text == "" {
			return studioFault("Invalid 'content': 'content' field must be a string or an array of objects.")
		}
	}
	return studioRefusal(body, a)
}

// studioChunks returns a writer of the chunks that lmstudio-bug-tracker#649 and #723 show.
func studioChunks(w io.Writer, a asked) chunker {
	return chunker{w: w, before: `"id":"chatcmpl-` + hashOf(-a.number)[:22] + `","object":"chat.completion.chunk","created":1751032747,` +
		`"model":"qwen/qwen3-4b","system_fingerprint":"qwen/qwen3-4b",`, after: `,"logprobs":null`}
}

// studioReply writes an answer. Each delta has the role, and the later pieces of a call have an empty name.
func studioReply(w io.Writer, s said, a asked) {
	s = constrained(s, a)
	c := studioChunks(w, a)
	for _, part := range []struct{ field, text string }{{"reasoning_content", s.reasoning}, {"content", s.text}} {
		for _, piece := range inTokens(part.text) {
			c.delta(`{"role":"assistant",%s:%s}`, part.field, piece)
		}
	}
	for i, call := range s.calls {
		c.delta(`{"role":"assistant","tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,`+
			`"arguments":""}}]}`, i, call.id, call.name)
		for _, piece := range inTokens(call.args) {
			c.delta(`{"tool_calls":[{"index":%d,"type":"function","function":{"name":"","arguments":%s}}]}`, i, piece)
		}
	}
	usage := ""
	if localAskOf(a).StreamOptions.IncludeUsage {
		usage = usageText(s)
	}
	c.ends("{}", finishWord(s), usage, "")
}

// oldStudioReply writes the thinking in the text, and calls in one piece, or as the JSON of Llama's models in the text.
func oldStudioReply(w io.Writer, s said, a asked) {
	s = constrained(s, a)
	c := studioChunks(w, a)
	if len(s.calls) == 1 && s.text == "" && a.number%3 == 1 && localAskOf(a).offers(s.calls) {
		s = s.asText(llamaForm)
	}
	s = s.inThinkTags()
	c.texts("content", s.text)
	for i, call := range s.calls {
		c.delta(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,`+
			`"arguments":%s}}]}`, i, call.id, call.name, call.args)
	}
	c.ends("{}", finishWord(s), "", "")
}
