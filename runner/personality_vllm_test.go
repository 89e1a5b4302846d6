package runner_test

import (
	"cmp"
	"fmt"
	"io"
)

const (
	// vllmList is the list of models: vllm-project/vllm, entrypoints/openai (ModelCard).
	vllmList = `{"object":"list","data":[{"id":"s","object":"model","created":1764000000,"owned_by":"vllm",` +
		`"root":"Qwen/Qwen3-32B",` +
		`"parent":null,"max_model_len":65536,"permission":[{"id":"modelperm-8f4c","object":"model_permission",` +
		`"allow_sampling":true,` +
		`"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`
	vllmWindow = 65536
	// narrowWindow is so small that a request with the output limit of the price table does not fit.
	narrowWindow = 24576
)

// vllmServers returns servers of vLLM: one of today; one behind a proxy that forwards nothing but chat completions, with
// a smaller window; one whose parser of calls does not work in streams; and one with a model of Mistral.
func vllmServers() []personality {
	pages := listing(map[string]string{"/v1/models": vllmList})
	return []personality{
		{name: "vllm", get: pages, uncached: true, id: vllmID, refuse: vllmRefusals(vllmWindow),
			reply: vllmReply("reasoning", nil)},
		{name: "vllm-2025", get: listing(nil), uncached: true, id: vllmID, refuse: oldVLLMRefusals(narrowWindow),
			reply: oldVLLMReply},
		{name: "vllm-hermes", get: pages, uncached: true, id: vllmID, refuse: vllmRefusals(vllmWindow),
			reply: vllmReply("", hermesForm)},
		{name: "vllm-mistral", get: pages, uncached: true, id: vllmID, refuse: mistralRefusals(),
			reply: vllmReply("reasoning_content", mistralForm)},
	}
}

// vllmID returns an id of make_tool_call_id in entrypoints/chat_utils.py.
func vllmID(n int) string { return "chatcmpl-tool-" + hashOf(n)[:32] }

// vllmRefusal is the form of create_error_response in serving_engine.py.
func vllmRefusal(kind, message, param string) *said {
	return refusing(400, jsonOf(`{"error":{"message":%s,"type":%s,"param":%s,"code":400}}`, message, kind, param))
}

// vllmRefusals returns the checks of a server of today: vllm-project/vllm#42474 has the words for the window.
func vllmRefusals(window int) func(map[string]any, asked) *said {
	return func(_ map[string]any, a asked) *said {
		b, n := localAskOf(a), promptTokens(a)
		switch {
		case b.Model != "s":
			return refusing(404, jsonOf(`{"error":{"message":%s,"type":"NotFoundError","param":"model","code":404}}`,
				"The model `"+b.Model+"` does not exist."))
		case b.orderFault() != "":
			return vllmRefusal("BadRequestError", b.orderFault(), "")
		case n+b.MaxTokens > window:
			return vllmRefusal("BadRequestError", fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested "+
				"%d output tokens and your prompt contains at least %d input tokens, for a total of at least %d tokens. Please reduce "+
				"the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)",
				window, b.MaxTokens, window-b.MaxTokens+1, window+1, window-b.MaxTokens+1), "input_tokens")
		}
		return nil
	}
}

// oldVLLMRefusals returns the checks of vLLM 0.6 to 0.9. It forbids fields that it does not know, and its errors have no
// envelope: vllm-project/vllm#20409, langchain4j/langchain4j#3475.
func oldVLLMRefusals(window int) func(map[string]any, asked) *said {
	const form = `{"object":"error","message":%s,"type":"BadRequestError","param":null,"code":400}`
	known := map[string]bool{"messages": true, "model": true, "frequency_penalty": true, "logit_bias": true, "logprobs": true,
		"max_tokens": true, "n": true, "presence_penalty": true, "response_format": true, "seed": true, "stop": true, "stream": true,
		"stream_options": true, "temperature": true, "top_p": true, "tools": true, "tool_choice": true, "user": true}
	return func(body map[string]any, a asked) *said {
		b, n := localAskOf(a), promptTokens(a)
		for name := range body {
			if !known[name] {
				return refusing(400, jsonOf(form, fmt.Sprintf("[{'type': 'extra_forbidden', 'loc': ('body', '%s'), "+
					"'msg': 'Extra inputs are not permitted', 'input': 1}]", name)))
			}
		}
		if n+b.MaxTokens > window {
			return refusing(400, jsonOf(form, fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens "+
				"(%d in the messages, %d in the completion). Please reduce the length of the messages or completion.",
				window, n+b.MaxTokens, n, b.MaxTokens)))
		}
		return nil
	}
}

// mistralRefusals returns the checks of mistral_common, which vLLM calls with --tokenizer-mode mistral. The server's own
// ids do not pass them: vllm-project/vllm#9019, #12332 and #47734. mistralai/mistral-vibe#454 has the order,
// langchain-ai/langchain#21196 the texts beside calls.
func mistralRefusals() func(map[string]any, asked) *said {
	window := vllmRefusals(vllmWindow)
	return func(body map[string]any, a asked) *said {
		b := localAskOf(a)
		for i, m := range b.Messages {
			before := b.at(i - 1).Role
			if m.Role == before && m.Role != "tool" || m.Role == "user" && before == "tool" {
				return vllmRefusal("BadRequestError",
					fmt.Sprintf("Unexpected role '%s' after role '%s'", m.Role, before), "")
			}
			hasText := contentText(m.Content) != ""
			if m.Role == "assistant" && hasText == (len(m.ToolCalls) > 0) {
				return vllmRefusal("BadRequestError",
					"Assistant message must have either content or tool_calls, but not both.", "")
			}
			for _, c := range m.ToolCalls {
				if !nineLetters.MatchString(c.ID) {
					return vllmRefusal("BadRequestError",
						"Tool call id was "+c.ID+" but must be a-z, A-Z, 0-9, with a length of 9.", "")
				}
			}
		}
		if last := b.at(len(b.Messages) - 1).Role; last == "assistant" {
			return vllmRefusal("BadRequestError",
				"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant", "")
		}
		return window(body, a)
	}
}

// vllmChunks begins a stream with the role.
func vllmChunks(w io.Writer, a asked) chunker {
	c := chunker{w: w, before: `"id":"chatcmpl-` + hashOf(-a.number)[:32] + `","object":"chat.completion.chunk","created":1764000000,"model":"s",`,
		after: `,"logprobs":null`}
	c.event(`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, `,"prompt_token_ids":null`)
	return c
}

// vllmReply returns a function that writes chat_completion_stream_generator of entrypoints/openai. The field of the
// reasoning is "" without --reasoning-parser. With a form, calls are not parsed in streams and arrive as text:
// vllm-project/vllm#31871, #20028.
func vllmReply(reasoning string, form func(saidCall) string) func(w io.Writer, s said, a asked) {
	return func(w io.Writer, s said, a asked) {
		s = constrained(s, a)
		c := vllmChunks(w, a)
		unparsed := form != nil && (reasoning == "" || a.number%3 == 0)
		if unparsed && s.text == "" && len(s.calls) > 0 && localAskOf(a).offers(s.calls) {
			s = s.asText(form)
		}
		if reasoning == "" {
			s = s.inThinkTags()
		}
		c.texts(cmp.Or(reasoning, "content"), s.reasoning)
		c.texts("content", s.text)
		for i, call := range s.calls {
			c.delta(`{"tool_calls":[{"id":%s,"type":"function","index":%d,"function":{"name":%s}}]}`, call.id, i, call.name)
			for _, piece := range inTokens(call.args) {
				c.delta(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, piece)
			}
		}
		usage := ""
		if localAskOf(a).StreamOptions.IncludeUsage {
			usage = usageText(s)
		}
		c.after = `,"logprobs":null,"stop_reason":null,"token_ids":null`
		c.ends(`{"content":""}`, finishWord(s), usage, "")
	}
}

// oldVLLMReply writes all calls with the index 0, and empty ids after the first piece: InternLM/lmdeploy#3412 shows such
// a stream of vLLM.
func oldVLLMReply(w io.Writer, s said, a asked) {
	c := vllmChunks(w, a)
	s = s.inThinkTags()
	c.texts("content", s.text)
	for _, call := range s.calls {
		c.delta(`{"tool_calls":[{"index":0,"id":%s,"type":"function","function":{"name":%s,`+
			`"arguments":""}}]}`, call.id, call.name)
		for _, piece := range inTokens(call.args) {
			c.delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":%s}}]}`, piece)
		}
	}
	usage := ""
	if localAskOf(a).StreamOptions.IncludeUsage {
		usage = usageText(s)
	}
	c.ends(`{"content":"","tool_calls":[]}`, finishWord(s), usage, "")
}
