package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// sent returns the messages of the n-th request, each as its role and what it contains.
func sent(t *testing.T, p *provider, n int) (all []string) {
	t.Helper()
	for _, one := range p.got(t, n).body["messages"].([]any) {
		m := one.(map[string]any)
		text, _ := json.Marshal(m["content"])
		_, calls := m["tool_calls"]
		all = append(all, m["role"].(string)+map[bool]string{true: "+calls"}[calls]+" "+string(text))
	}
	return all
}

// TestOpenAIAnswersWithLess checks that a request for too many tokens is repeated with what is left.
func TestOpenAIAnswersWithLess(t *testing.T) {
	t.Parallel()
	vllm := func(prompt, asked string) string {
		return "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (" + prompt +
			" in the messages, " + asked + " in the completion). Please reduce the length of the messages or completion."
	}
	for name, tt := range map[string]struct {
		refusals []string
		asked    []float64 // max_tokens of each request
		window   int64
	}{
		"both numbers": {[]string{vllm("5000", "4000")}, []float64{4000, 3192}, 8192},
		"a prompt that is counted late": {[]string{
			"This model's maximum context length is 8192 tokens. However, you requested 4000 output tokens and your prompt contains at least 4193 input tokens, for a total of at least 8193 tokens.",
			"This model's maximum context length is 8192 tokens. However, you requested 2000 output tokens and your prompt contains at least 6193 input tokens, for a total of at least 8193 tokens."},
			[]float64{4000, 2000, 1000}, 8192},
		"a lower bound without its word": {[]string{vllm("4193", "4000")}, []float64{4000, 2000}, 8192},
		"a lower bound far above": {[]string{"This model's maximum context length is 8192 tokens. However, you requested 4000 output tokens and your prompt contains at least 7000 input tokens, for a total of at least 11000 tokens."},
			[]float64{4000, 1192}, 8192},
		"a limit of the model": {[]string{"max_tokens is too large: 4000. This model supports at most 2048 completion tokens, whereas you provided 4000."}, []float64{4000, 2048}, 0},
		"Groq's limit":         {[]string{"`max_tokens` must be less than or equal to `1024`, the maximum value for `max_tokens` is less than the `context_window` for this model"}, []float64{4000, 1024}, 0},
		"DeepSeek's limit":     {[]string{"Invalid max_tokens value, the valid range of max_tokens is [1, 3000]"}, []float64{4000, 3000}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var all []http.HandlerFunc
			for _, r := range tt.refusals {
				all = append(all, refuses(400, r, ""))
			}
			p := newProvider(t, append(all, fine)...)
			m := openAIAt(t, p.URL, quick())
			resp := answered(t, m, Request{MaxTokens: 4000, Messages: []Message{user("hi")}})
			is.Equal(resp.Window, tt.window) // the runner narrows its window
			is.Equal(p.count(), len(tt.asked))
			for n, want := range tt.asked {
				is.Equal(p.got(t, n).body["max_tokens"], want)
			}
			answered(t, m, Request{MaxTokens: 4000, Messages: []Message{user("hi")}})
			if tt.window == 0 { // the limit of the model is remembered; what is left is not
				is.Equal(p.got(t, len(tt.asked)).body["max_tokens"], tt.asked[1])
			}
		})
	}
	t.Run("from any limit", func(t *testing.T) {
		t.Parallel()
		for _, asked := range []int{1 << 20, 200_000, 128_000, 64_000, 32_768, 20_000, 16_384, 9000} {
			is := is.New(t)
			var all []http.HandlerFunc
			var want []float64
			for n := asked; n > 512 && len(all) < 6; n = min(n/2, 8192) { // each room is one token too small
				want = append(want, float64(n))
				all = append(all, refuses(400, fmt.Sprintf("This model's maximum context length is 2000000 tokens. However, you requested %d output tokens and "+
					"your prompt contains at least %d input tokens, for a total of at least 2000001 tokens.", n, 2_000_001-n), ""))
			}
			p := newProvider(t, append(all, fine)...)
			answered(t, openAIAt(t, p.URL, quick()), Request{MaxTokens: asked, Messages: []Message{user("hi")}})
			ordertest.AtMost(is, p.count(), 7)
			for n, tokens := range want {
				is.Equal(p.got(t, n).body["max_tokens"], tokens)
			}
			least, _ := p.got(t, p.count()-1).body["max_tokens"].(float64)
			ordertest.AtMost(is, least, 512) // small enough for every prompt that fits
		}
	})
	t.Run("the Responses API", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses(400, vllm("5000", "4000"), ""), streams(sse(responsesDone(``))))
		resp, err := responsesAt(t, p.URL, quick()).Generate(t.Context(), Request{MaxTokens: 4000, Messages: []Message{user("hi")}}, nil)
		is.NoErr(err)
		is.Equal(resp.Window, int64(8192))
		is.Equal(p.got(t, 1).body["max_output_tokens"], float64(3192))
	})
	for _, wire := range []string{"openai", "responses"} {
		t.Run("a prompt that is never counted, "+wire, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var all []http.HandlerFunc
			limits := []int{4096, 2048, 1024, 512, 256}
			for _, n := range limits {
				all = append(all, refuses(400, fmt.Sprintf("This model's maximum context length is 8192 tokens. However, you requested %d output tokens and your prompt contains at least %d input tokens, for a total of at least 8193 tokens.", n, 8193-n), ""))
			}
			p := newProvider(t, all...)
			e := failure(t, wires()[wire].at(t, p.URL, quick()), Request{MaxTokens: 4096, Messages: []Message{user("hi")}})
			is.True(e.TooLong()) // the runner shortens the conversation
			is.Equal(p.count(), len(limits))
			for n, most := range limits {
				is.True(strings.Contains(p.got(t, n).raw, fmt.Sprintf(`tokens":%d`, most)))
			}
		})
	}
	for name, refusal := range map[string]string{
		"almost nothing":    vllm("8100", "4000"),
		"the limit's name":  "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 8000 input tokens (1000 > 8192 - 8000). None",
		"the limit's other": "'max_output_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 8000 input tokens (1000 > 8192 - 8000).",
		"less than nothing": "'max_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 9000 input tokens (1000 > 8192 - 9000).",
	} {
		for _, wire := range []string{"openai", "responses"} {
			t.Run(name+" is left, "+wire, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, refuses(400, refusal, ""))
				e := failure(t, wires()[wire].at(t, p.URL, quick()), Request{MaxTokens: 1000, Messages: []Message{user("hi")}})
				is.True(e.TooLong()) // the runner shortens the conversation
				is.Equal(e.Window, int64(8192))
				is.Equal(p.count(), 1)
			})
		}
	}
}

// TestOpenAIWithoutSystem checks that instructions go into the first user message if the model knows no system
// messages, and that later calls do so at once.
func TestOpenAIWithoutSystem(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]http.HandlerFunc{
		"vLLM":        refuses(400, "System role not supported", ""),
		"llama.cpp":   refuses(500, "\n------------\nWhile executing CallExpression at line 1, column 64 in source:\n{{ raise_exception('System role not supported') }}\nError: Jinja Exception: System role not supported", ""),
		"OpenAI":      refuses(400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", "messages[0].role"),
		"Google":      refuses(400, "Developer instruction is not enabled for models/gemma-3-27b-it", ""),
		"Ministral":   refuses(500, "Error: Jinja Exception: Only user, assistant and tool roles are supported, got system.", ""),
		"in a stream": streams(sse(`{"error":{"message":"Error rendering prompt with jinja template: \"System role not supported\".","code":500}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, refusal, fine)
			m := openAIAt(t, p.URL, quick())
			req := callAnd("read")
			req.Preamble, req.Instructions = "P", "I"
			want := []string{`user "P\n\nI\n\ngo"`, `assistant+calls null`, `tool "read"`}
			for range 2 {
				answered(t, m, req)
			}
			is.Equal(p.count(), 3)
			is.Equal(sent(t, p, 1), want)
			is.Equal(sent(t, p, 2), want)
		})
	}
}

// TestOpenAIWithoutToolRole checks that calls and results become text if the model knows only users and assistants.
func TestOpenAIWithoutToolRole(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, refuses(500, "Error: Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...", ""),
		refuses(400, "System role not supported", ""), fine)
	m := openAIAt(t, p.URL, quick())
	req := callAnd("read")
	req.Instructions = "I"
	req.Messages = append(req.Messages, user("more"))
	want := []string{`user "I\n\ngo"`, `assistant "\u003ctool_call\u003e\n{\"name\": \"read_file\", \"arguments\": {\"path\":\"x\"}}\n\u003c/tool_call\u003e"`,
		`user "\u003ctool_response\u003e\nread\n\u003c/tool_response\u003e\n\nmore"`}
	for range 2 {
		answered(t, m, req)
	}
	is.Equal(p.count(), 4) // the second call is right at once
	is.Equal(sent(t, p, 2), want)
	is.Equal(sent(t, p, 3), want)
}

// TestOpenAICallIDsAreAdapted checks that ids of another server's calls are changed as the server demands.
func TestOpenAICallIDsAreAdapted(t *testing.T) {
	t.Parallel()
	const foreign = "functions.read_file:0-chatcmpl-tool-5f3a9b71c2d84e6fa0b1"
	for name, tt := range map[string]struct {
		status  int
		refusal string
		want    string
	}{
		"Mistral":             {400, "Tool call id was " + foreign + " but must be a-z, A-Z, 0-9, with a length of 9.", `^[a-zA-Z0-9]{9}$`},
		"template of Mistral": {500, "Error: Jinja Exception: Tool call IDs should be alphanumeric strings with length 9!", `^[a-zA-Z0-9]{9}$`},
		"OpenAI":              {400, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 56 instead.", `^[a-zA-Z0-9_-]{1,40}$`},
		"results at OpenAI":   {400, "Invalid 'messages[2].tool_call_id': string too long. Expected a string with maximum length 40, but got a string with length 56 instead.", `^[a-zA-Z0-9_-]{1,40}$`},
		"Anthropic":           {400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", `^[a-zA-Z0-9_-]{1,64}$`},
		"Bedrock":             {400, "Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", `^[a-zA-Z0-9_-]{1,64}$`},
		"Bedrock, length":     {400, "Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must have length less than or equal to 64", `^.{1,64}$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, refuses(tt.status, tt.refusal, ""), fine)
			m := openAIAt(t, p.URL, quick())
			req := callAnd("read")
			req.Messages[1].Parts[0].CallID, req.Messages[2].Parts[0].CallID = foreign, foreign
			second := Part{Type: PartToolCall, CallID: foreign + "b", ToolName: "read_file", Input: json.RawMessage(`{}`)}
			req.Messages[1].Parts = append(req.Messages[1].Parts, second)
			req.Messages[2].Parts = append(req.Messages[2].Parts, Part{Type: PartToolResult, CallID: foreign + "b", Text: "b"})
			for range 2 {
				answered(t, m, req)
			}
			if tt.status+len(foreign) > 0 && name == "Bedrock, length" { // the id is short enough
				return
			}
			is.Equal(p.count(), 3) // the second call is right at once
			for n := 1; n < 3; n++ {
				messages := p.got(t, n).body["messages"].([]any)
				calls := messages[1].(map[string]any)["tool_calls"].([]any)
				first, other := calls[0].(map[string]any)["id"].(string), calls[1].(map[string]any)["id"].(string)
				is.True(regexp.MustCompile(tt.want).MatchString(first))
				is.True(first != other)
				is.Equal(messages[2].(map[string]any)["tool_call_id"], first)
				is.Equal(messages[3].(map[string]any)["tool_call_id"], other)
			}
		})
	}
	t.Run("an id that fits stays", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		is.Equal(mistralIDs.apply("aB3dE6gH9"), "aB3dE6gH9")
		is.Equal(idRule{most: 40}.apply("functions.f:0"), "functions.f:0") // Kimi reads its own ids
		is.Equal(idRule{}.apply(foreign), foreign)
	})
}

// TestOpenAIOrder checks that messages come in an order that every server takes.
func TestOpenAIOrder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, fine)
	picture := Part{Type: PartFile, Path: "a.png", MediaType: "image/png", Size: 3, Open: func() ([]byte, error) { return []byte("png"), nil }}
	req := callAnd("read")
	req.Messages[1].Parts = append(req.Messages[1].Parts, Part{Type: PartToolCall, CallID: "call_2", ToolName: "view_image", Input: json.RawMessage(`{}`)})
	req.Messages[2].Parts = append(req.Messages[2].Parts, Part{Type: PartToolResult, CallID: "call_2", ToolName: "view_image", Text: "a.png", Images: []Part{picture}})
	req.Messages = append(req.Messages,
		Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "one"}}},
		Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "two"}, {Type: PartToolCall, CallID: "call_3", ToolName: "f", Input: json.RawMessage(`{}`)}}},
		Message{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "call_3", ToolName: "f", Text: "3"}}},
		user("The budget is used up."))
	answered(t, openAIAt(t, p.URL, quick()), req)
	ollama := newProvider(t, answers(200, "application/x-ndjson", ollamaHello+ollamaEnd))
	answered(t, ollamaAt(t, ollama.URL, quick()), req)
	after := sent(t, ollama, 0)
	is.Equal(after[len(after)-3:], []string{`tool "3"`, `assistant "I have the results."`, `user "The budget is used up."`})
	got := sent(t, p, 0)
	is.Equal(len(got), 10)
	is.Equal(got[:5], []string{`user "go"`, `assistant+calls null`, `tool "read"`, `tool "a.png"`, `assistant "I have the results."`})
	is.True(strings.HasPrefix(got[5], `user [{"text":"Images that view_image`)) // after all results
	is.Equal(got[6:], []string{`assistant+calls "one\n\ntwo"`, `tool "3"`, `assistant "I have the results."`, `user "The budget is used up."`})
}

// TestOpenAIMistakes checks that a tool call that the server could not read is the model's mistake.
func TestOpenAIMistakes(t *testing.T) {
	t.Parallel()
	const failed = `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=read_file{\"path\": \"a.txt\"</function>"}}`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   []string
	}{
		"Groq":             {answers(400, "application/json", failed), []string{"Failed to call a function", `<function=read_file{"path": "a.txt"</function>`}},
		"Groq, validation": {answers(400, "application/json", `{"error":{"message":"tool call validation failed: parameters for tool f did not match schema: errors: [`+"`/domain`"+`: expected array, but got string]","type":"invalid_request_error","code":"tool_use_failed"}}`), []string{"expected array, but got string"}},
		"in a stream":      {streams(sse(chunk(`{"reasoning":"Hm"}`), failed)), []string{"<function=read_file"}},
		"llama.cpp":        {answers(500, "application/json", `{"error":{"code":500,"message":"Failed to parse input at pos 12: <tool_call>{\"name\": f</tool_call>","type":"server_error"}}`), []string{"<tool_call>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, tt.answer)
			resp, err := openAIAt(t, p.URL, quick()).Generate(t.Context(), Request{Messages: []Message{user("hi")}}, nil)
			is.NoErr(err) // no outage, and no end of the turn
			for _, words := range tt.says {
				is.True(strings.Contains(resp.Mistake, words))
			}
			is.Equal(len(resp.Parts), 0)
			ordertest.Above(is, resp.Usage.InputTokens, 0)
			is.Equal(p.count(), 1)
		})
	}
}

// TestOpenAIErrorsOfChoices checks that the words of an error inside a choice reach the user.
func TestOpenAIErrorsOfChoices(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event, code, says string
		retryable         bool
	}{
		"OpenRouter":          {`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"Upstream went away"}}]}`, "502", "Upstream went away", true},
		"without a reason":    {`{"choices":[{"index":0,"delta":{},"finish_reason":null,"error":{"code":"400","message":"Bad picture"}}]}`, "400", "Bad picture", false},
		"a text":              {`{"choices":[{"index":0,"error":"Boom"}]}`, "500", "Boom", true},
		"the provider's word": {`{"choices":[{"index":0,"delta":{},"finish_reason":"error","native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}`, "stream", "MALFORMED_FUNCTION_CALL", true},
		"beside the choice":   {`{"error":{"code":503,"message":"No host"},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, "503", "No host", true},
		"in the message":      {`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}],"message":"Out of slots"}`, "500", "Out of slots", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			for _, answer := range []http.HandlerFunc{streams(sse(chunk(`{"content":"a"}`), tt.event, done)), answers(200, "application/json", tt.event)} {
				_, err := openAIAt(t, newProvider(t, answer).URL, quick()).Generate(t.Context(), Request{Messages: []Message{user("hi")}}, nil)
				e := asFailure(t, err)
				is.Equal(e.Code, tt.code)
				is.True(strings.Contains(e.Message, tt.says))
				is.Equal(e.Retryable, tt.retryable)
			}
		})
	}
}
