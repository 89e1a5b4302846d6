package runner_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"journeyman/runner/model"
)

// openRouterServer returns OpenRouter in front of a model of Anthropic that reasons.
//
// Sources: OpenRouter's documents Errors and debugging, Reasoning tokens and Usage accounting;
// OpenRouterTeam/ai-sdk-provider, src/chat/signature-roundtrip.test.ts (details of reasoning);
// charmbracelet/crush#279 (errors of providers); diegosouzapw/OmniRoute#8210, damianvtran/local-operator#223 (errors in
// the middle).
func openRouterServer() personality {
	r := &openRouter{details: map[string]string{}}
	return personality{
		name: "openrouter", kind: model.ProviderOpenRouter, host: "openrouter.ai", base: "/api/v1",
		model: "anthropic/claude-sonnet-4.6", cost: openRouterCost,
		get: modelsListed(`{"data":[{"id":"anthropic/claude-sonnet-4.6","context_length":1000000,` +
			`"pricing":{"prompt":"0.000003",` +
			`"completion":"0.000015"},"top_provider":{"context_length":1000000,"max_completion_tokens":64000},` +
			`"supported_parameters":["tools","reasoning"]}]}`),
		id:     func(n int) string { return fmt.Sprintf("toolu_bdrk_01%020d", n) },
		refuse: r.refuse,
		write:  r.write,
	}
}

// openRouterCost returns the cost of an answer in nano-dollars.
func openRouterCost(s said) int64 { return (s.in-s.cached)*3000 + s.cached*300 + s.out*15_000 }

// An openRouter knows the details of the reasoning before its calls, which must come back as they were.
type openRouter struct {
	mu      sync.Mutex
	details map[string]string // by the id of the first call of the answer
}

const openRouterFields = "model messages tools tool_choice response_format max_tokens max_completion_tokens " +
	"reasoning_effort reasoning temperature top_p stream stream_options usage session_id provider plugins user seed stop"

// openRouterError returns an error of the provider behind OpenRouter.
func openRouterError(message string) *said {
	raw := `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":` + quoted(message) + `},"request_id":"req_011CX"}`
	return refusing(http.StatusBadRequest, `{"error":{"message":"Provider returned error","code":400,`+
		`"metadata":{"raw":`+quoted(raw)+
		`,"provider_name":"Anthropic","is_byok":false}},"user_id":"user_2x"}`)
}

func (r *openRouter) refuse(body map[string]any, a asked) *said {
	if name := unknownField(body, openRouterFields); name != "" {
		return refusing(http.StatusBadRequest, `{"error":{"message":"Unrecognized key: `+name+`","code":400}}`)
	}
	if n := bytes.Count(a.raw, []byte(`"cache_control"`)); n > 4 {
		return openRouterError(fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n))
	}
	c := sentChatOf(a)
	if id := c.unpaired(); id != "" {
		return openRouterError("messages.1: `tool_use` ids were found without `tool_result` blocks immediately " +
			"after: " + id +
			". Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range c.Messages {
		if string(m.Content) == `""` {
			return openRouterError("messages: text content blocks must be non-empty")
		}
		if len(m.Calls) == 0 {
			continue
		}
		if sent := r.details[m.Calls[0].ID]; sent != "" && !sameDetails(sent, string(m.Details)) {
			return openRouterError(fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, "+
				"but found `tool_use`. "+
				"When `thinking` is enabled, a final `assistant` message must start with a thinking block", i))
		}
	}
	return nil
}

// sameDetails compares details that were sent with those that came back. Their pieces may be joined.
func sameDetails(sent, back string) bool {
	join := func(text string) (signatures, texts string) {
		var list []struct{ Type, Text, Data, Signature string }
		_ = json.Unmarshal([]byte(text), &list)
		for _, d := range list {
			signatures += d.Signature + d.Data
			texts += d.Text
		}
		return signatures, texts
	}
	signatures, texts := join(sent)
	otherSignatures, otherTexts := join(back)
	return signatures == otherSignatures && texts == otherTexts
}

// openRouterWords returns Anthropic's finish reasons for those of OpenAI.
func openRouterWords() map[string]string {
	return map[string]string{"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}
}

func (r *openRouter) write(w io.Writer, s said, n int) {
	e := chatEvents{w, `"id":"gen-1790000000-EhEx5DeV7J","object":"chat.completion.chunk","created":1790000000,` +
		`"model":"anthropic/claude-sonnet-4.6","provider":"Amazon Bedrock"`}
	_, _ = io.WriteString(w, strings.Repeat(": OPENROUTER PROCESSING\n\n", 1+n%3))
	choice := func(delta, finish string) { // with the word of the provider
		native := quoted(cmp.Or(openRouterWords()[finish], finish))
		if finish == "null" {
			native = finish
		}
		var one bytes.Buffer
		chatEvents{&one, e.head}.choice(`{"role":"assistant",`+delta+`}`, finish, "")
		_, _ = w.Write(bytes.Replace(one.Bytes(), []byte(`"logprobs":null`), []byte(`"native_finish_reason":`+native), 1))
	}
	r.think(s.thinking(), n, choice)
	if s.text != "" {
		for _, piece := range pieces(s.text) {
			choice(`"content":`+quoted(piece), "null")
		}
	}
	for i, c := range s.calls {
		choice(fmt.Sprintf(`"content":"","tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,`+
			`"arguments":""}}]`,
			i, c.id, c.name), "null")
		for _, piece := range pieces(c.args) {
			choice(fmt.Sprintf(`"content":null,"tool_calls":[{"index":%d,"type":"function",`+
				`"function":{"arguments":%s}}]`, i, quoted(piece)), "null")
		}
	}
	usage := usageWith(s, `,"cost":`+strconv.FormatFloat(float64(openRouterCost(s))/1e9, 'g', -1, 64)+`,"is_byok":false,`+
		`"cost_details":{"upstream_inference_cost":null,"upstream_inference_prompt_cost":0.001},`+
		`"completion_tokens_details":{"reasoning_tokens":1}`)
	if s.counted {
		e.usage(usage)
	}
	if s.hangs {
		return
	}
	if s.broken {
		_, _ = fmt.Fprintf(w, "data: {%s,\"error\":{\"code\":502,\"message\":\"Provider returned error\","+
			"\"metadata\":{\"error_type\":"+
			"\"provider_unavailable\"}},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},"+
			"\"finish_reason\":\"error\"}]}\n\n", e.head)
		return
	}
	choice(`"content":""`, finishWord(s))
	_, _ = io.WriteString(w, ": OPENROUTER PROCESSING\n\n")
	_, _ = fmt.Fprintf(w, "data: {%s,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"+
		"\"finish_reason\":null,"+
		"\"native_finish_reason\":null}],\"usage\":%s}\n\n", e.head, usage)
	e.done()
}

// think writes the reasoning with its signature, and before each call a part that is encrypted.
func (r *openRouter) think(s said, n int, choice func(delta, finish string)) {
	var sent []string
	detail := func(text, fields string) {
		index := 1
		if strings.Contains(fields, "text") {
			index = 0
		}
		d := fmt.Sprintf(`{%s,"format":"anthropic-claude-v1","index":%d}`, fields, index)
		sent = append(sent, d)
		choice(`"content":"",`+text+`"reasoning_details":[`+d+`]`, "null")
	}
	if s.reasoning != "" {
		for _, piece := range pieces(s.reasoning) {
			detail(`"reasoning":`+quoted(piece)+`,`, `"type":"reasoning.text","text":`+quoted(piece))
		}
		detail("", `"type":"reasoning.text","text":"","signature":"c2lnbmVk`+fmt.Sprint(n)+`"`)
	}
	if len(s.calls) == 0 {
		return
	}
	if n%2 == 0 {
		detail("", `"type":"reasoning.encrypted","data":"ZW5jcnlwdGVk`+fmt.Sprint(n)+`"`)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.details[s.calls[0].id] = `[` + strings.Join(sent, ",") + `]`
}
