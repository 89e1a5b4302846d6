package runner_test

import (
	"fmt"
	"net/http"
	"strings"
)

// refusal returns an error of a server, in the form that all wires share.
func refusal(status int, message string) said {
	return said{status: status, body: `{"type":"error","error":{"type":"invalid_request_error","message":` + quoted(message) + `}}`}
}

// refusalOddities are refusals that mean something else than their status says.
func refusalOddities() []oddity {
	list := []oddity{
		recovers("refusal: the server is slow", "", said{status: 429, body: `{"error":{"message":"Rate limit reached. Please try again in 12ms."}}`}),
		recovers("refusal: overloaded", "", refusal(529, "Overloaded"), refusal(503, "still loading the model")),
		recovers("refusal: a page in place of an answer", "", said{status: 502, body: "<html><body>Bad gateway</body></html>"}),
		ends("refusal: wrong key", "failed: 401", 1, refusal(401, "no such key")),
		ends("refusal: template", "failed: 500", 1, refusal(500, "Error: Jinja Exception: Unknown filter tojson2")),
		ends("refusal: no such model", "failed: 404", 1, refusal(404, "The model s does not exist")),
		ends("refusal: tools", "failed: tools_refused", 1, refusal(400, "s does not support tools")),
		ends("refusal: redirect", "failed: 307", 1, said{status: 307, body: "moved"}),
		ends("refusal: a field that nobody sends", "failed: 400", 1, refusal(400, "unknown field of A")),
	}
	minute := recovers("refusal: the tokens of a minute", "",
		refusal(429, "Rate limit reached for model s on tokens per minute (TPM): Limit 6000, Used 5900. Please try again in 42.5s."))
	minute.waits = true
	again := minute
	asks := refusal(429, "slow down")
	asks.again = "45"
	again.name, again.says = "refusal: the header names the delay", recovers("", "", asks).says
	list = append(list, minute, again)
	for _, status := range []int{400, 402, 403, 429} {
		list = append(list, ends(fmt.Sprintf("refusal: no credit, %d", status), fmt.Sprintf("failed: %d", status), 1,
			refusal(status, "Your credit balance is too low to access the API.")))
	}
	for _, c := range []struct{ name, message string }{
		{"OpenAI", "This model's maximum context length is 8192 tokens. However, your messages resulted in 9999 tokens."},
		{"Anthropic", "prompt is too long: 9999 tokens > 8192 maximum"},
		{"llama.cpp", "the request exceeds the available context size. try increasing the context size or enable context shift"},
		{"Bedrock", "Input is too long for requested model."},
		{"Qwen", "Range of input length should be [1, 8192]"},
	} {
		list = append(list, ends("refusal: window at first, "+c.name, "failed: context_length", 0, refusal(400, c.message)))
	}
	for _, c := range []struct{ name, message string }{
		{"grammar", "failed to parse grammar"},
		{"schema", "Invalid schema for function 'write_file': In context=('properties', 'content'), 'maxLength' is not permitted."},
	} {
		list = append(list, recovers("refusal: "+c.name, "", refusal(400, c.message)))
	}
	for _, c := range []struct{ name, message string }{
		{"Anthropic", "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for s"},
		{"OpenAI", "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided 8000."},
		{"vLLM", "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 16384 tokens " +
			"and your request has 9000 input tokens"},
	} {
		o := recovers("refusal: room, "+c.name, "", refusal(400, c.message)).except("ollama", "its num_predict has no limit")
		if c.name != "vLLM" {
			o = o.except("responses", "its field is max_output_tokens")
		}
		list = append(list, o)
	}
	list = append(list, middle(), recovers("refusal: stream_options", "", refusal(400, "Unknown parameter: 'stream_options'.")).
		except("anthropic", hasNoField).except("responses", hasNoField).except("ollama", hasNoField))
	mistake := refusal(400, "Failed to call a function. Please adjust your prompt. tool_use_failed <function=write_file{</function>")
	unread := refusal(500, `error parsing tool call: raw='{"path": ', err=unexpected end of JSON input`)
	mistake.bill, unread.bill = "estimated", "estimated" // the model has written something
	return append(list, recovers("refusal: the server cannot read the call", "unexpected end of JSON input", unread),
		recovers("refusal: the server cannot read three calls", "adjust your prompt", mistake, mistake, mistake),
		ends("refusal: the server can never read the call", "failed: tool_call_as_text", 4, mistake),
		page("refusal: a page with status 200"))
}

// middle returns an oddity in which a conversation with a long file is refused, and then shortened.
func middle() oddity {
	words := strings.Repeat("A line of a long file.\n", 2000)
	says := []said{calling("read_file", `{"path": "a.txt"}`), refusal(400, "prompt is too long: 9999 tokens > 8192 maximum"), done}
	return oddity{name: "refusal: window in the middle", files: map[string]string{"a.txt": words}, says: says, output: "Done.",
		calls: []string{"read_file"}}
}

// page returns an oddity in which a page of a portal is the answer.
func page(name string) oddity {
	html := said{bill: "none", shape: func(string, string) string {
		return "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in</body></html>"
	}, header: http.Header{"Content-Type": {"text/html"}}}
	return ends(name, "failed: web_page", 1, html)
}

// loopOddities are models that do the same again and again.
func loopOddities() (list []oddity) {
	list1 := calling("list_files", `{}`)
	read := func(path string) said { return calling("read_file", `{"path": "`+path+`"}`) }
	for _, c := range []struct {
		name     string
		round    []said
		steps    int64
		requests int
	}{
		{"the same call", []said{list1}, 10, 8},
		{"two calls", []said{list1, read("a.txt")}, 25, 20},
		{"three calls", []said{list1, read("a.txt"), read("b.txt")}, 30, 24},
		{"an unknown tool", []said{calling("fly", `{}`)}, 10, 8},
		{"a call that fails", []said{read("missing.txt")}, 10, 8},
	} {
		o := oddity{name: "loop: " + c.name, says: c.round, repeat: len(c.round), steps: c.steps, requests: c.requests,
			end: "failed: loop", files: map[string]string{"a.txt": "a", "b.txt": "b"}}
		for i := range c.requests {
			call := c.round[i%len(c.round)].calls[0]
			name := call.name
			if name == "fly" || call.args == `{"path": "missing.txt"}` {
				name += " error"
			}
			o.calls = append(o.calls, name)
		}
		list = append(list, o)
	}
	budget := oddity{name: "loop: never the same", steps: 5, end: "incomplete: budget_exhausted", output: "Done."}
	for i := range 5 {
		budget.says = append(budget.says, read(fmt.Sprintf("%d.txt", i)))
		budget.calls = append(budget.calls, "read_file error")
	}
	budget.says = append(budget.says, done)
	return append(list, budget)
}
