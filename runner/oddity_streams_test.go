package runner_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Reasons why a wire cannot express an oddity.
const (
	linesOnly  = "its answer is lines of JSON, not events"
	hasBlocks  = "its calls are numbered blocks"
	hasNoField = "it has no such field"
)

// streamOddities are answers in other forms than the documents of their wires describe.
func streamOddities() []oddity {
	write := calling("write_file", helloArgs)
	var list []oddity
	for _, c := range []struct {
		name  string
		shape func(wire, body string) string
		lines bool // the wire of lines has it, too
	}{
		{"byte order mark", func(_, body string) string { return "\ufeff" + body }, true},
		{"CRLF", func(_, body string) string { return strings.ReplaceAll(body, "\n", "\r\n") }, true},
		{"comments", func(_, body string) string { return ": here\n\n" + strings.ReplaceAll(body, "\n\n", "\n\n: on\n\n") }, false},
		{"blank lines", func(_, body string) string { return "\n\n" + strings.ReplaceAll(body, "\n", "\n\n\n") }, true},
		{"no space after data", func(_, body string) string { return strings.ReplaceAll(body, "data: ", "data:") }, false},
		{"ids and retry times", func(_, body string) string {
			return "retry: 100\n" + strings.ReplaceAll(body, "data: ", "id: 7\ndata: ")
		}, false},
		{"data of several lines", func(_, body string) string { return strings.ReplaceAll(body, "data: {", "data: {\ndata: ") }, false},
		{"no names of events", func(_, body string) string { return regexp.MustCompile(`event: .*\n`).ReplaceAllString(body, "") }, false},
		{"unknown events", func(_, body string) string {
			return strings.ReplaceAll(body, "\n\n", "\n\nevent: odd\ndata: {\"type\":\"odd\",\"x\":1}\n\n")
		}, false},
		{"unknown fields", func(_, body string) string { return strings.ReplaceAll(body, `"model":`, `"odd":{"a":[1]},"model":`) }, true},
		{"no end mark", withoutEnd, false},
	} {
		o := works("stream: "+c.name, write.shaped(c.shape))
		if !c.lines {
			o = o.except("ollama", linesOnly)
		}
		list = append(list, o)
	}
	last := &list[len(list)-1]
	*last = last.except("responses", "without the end its answer is incomplete").except("anthropic", "the same")
	smile := telling("123456\uE000\uE001 and on").shaped(func(_, body string) string {
		return strings.NewReplacer("\uE000", `\ud83d`, "\uE001", `\ude00`).Replace(body)
	})
	return append(append(list, oddity{name: "stream: halves of a character", says: []said{smile}, output: "123456😀 and on"}),
		append(brokenStreams(write), callOddities(write)...)...)
}

// withoutEnd returns a body without the mark of its end.
func withoutEnd(wire, body string) string {
	mark := map[string]string{"openai": "data: [DONE]", "anthropic": "event: message_stop", "responses": "event: response.completed"}
	if wire == "ollama" {
		body = strings.TrimSuffix(body, "\n")
		return body[:strings.LastIndex(body, "\n")+1]
	}
	return body[:strings.LastIndex(body, mark[wire])]
}

// asDocument returns a shape in which the whole answer is one document.
func (s said) asDocument() said {
	return s.shaped(func(wire, _ string) string { return wholeAnswer(wire, s) })
}

// wholeAnswer returns an answer as the document that a server without streams sends.
func wholeAnswer(wire string, s said) string {
	type object = map[string]any
	var calls, blocks, items []any
	if s.text != "" {
		blocks = append(blocks, object{"type": "text", "text": s.text})
		items = append(items, object{"type": "message", "role": "assistant", "content": []any{object{"type": "output_text", "text": s.text}}})
	}
	for _, c := range s.calls {
		args := json.RawMessage(c.args)
		call := object{"name": c.name, "arguments": c.args}
		if wire == "ollama" {
			call["arguments"] = args
		}
		calls = append(calls, object{"id": c.id, "type": "function", "function": call})
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.name, "input": args})
		items = append(items, object{"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.args})
	}
	message := object{"role": "assistant", "content": s.text, "tool_calls": calls}
	stop := map[bool]string{true: "tool_use", false: "end_turn"}[len(calls) > 0]
	body, err := json.Marshal(map[string]any{
		"openai": object{"model": "wired-1", "choices": []any{object{"index": 0, "message": message, "finish_reason": "stop"}},
			"usage": object{"prompt_tokens": s.in, "completion_tokens": s.out}},
		"anthropic": object{"type": "message", "role": "assistant", "model": "wired-1", "content": blocks, "stop_reason": stop,
			"usage": object{"input_tokens": s.in, "output_tokens": s.out}},
		"responses": object{"object": "response", "status": "completed", "model": "wired-1", "output": items,
			"usage": object{"input_tokens": s.in, "output_tokens": s.out}},
		"ollama": object{"model": "wired-1", "message": message, "done": true, "done_reason": "stop", "prompt_eval_count": s.in, "eval_count": s.out},
	}[wire])
	if err != nil {
		panic(err) // the test itself is wrong
	}
	return string(body)
}

// failure returns the event of an error within the stream of a wire.
func failure(wire, message string) string {
	switch wire {
	case "anthropic":
		return fmt.Sprintf("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":%q}}\n\n", message)
	case "responses":
		return fmt.Sprintf("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":%q}\n\n", message)
	case "ollama":
		return fmt.Sprintf("{\"error\":%q}\n", message)
	}
	return fmt.Sprintf("data: {\"error\":{\"message\":%q,\"code\":502}}\n\n", message)
}

// failing returns a shape that ends with an error, after half of the stream if later is set.
func (s said) failing(message string, later bool) said {
	return s.shaped(func(wire, body string) string {
		end := "\n\n"
		if wire == "ollama" {
			end = "\n"
		}
		if !later {
			return failure(wire, message)
		}
		events := strings.SplitAfter(body, end)
		return strings.Join(events[:max(len(events)/2, 1)], "") + failure(wire, message)
	})
}

// brokenStreams are answers that end early, or have nothing in them.
func brokenStreams(write said) []oddity {
	free := func(s said, bill string) said { s.bill = bill; return s }
	text := telling("It begins well, but then it ends.")
	ended := func(s said) said { return s.shaped(withoutEnd) }
	return []oddity{
		recovers("stream: no end", "", free(ended(telling("It begins well")), "estimated")).
			except("openai", "the finish reason ends its answer").except("anthropic", "the stop reason ends its answer"),
		recovers("stream: empty body", "", free(write.shaped(func(string, string) string { return "" }), "none")),
		recovers("stream: blank body", "", free(write.shaped(func(string, string) string { return "\n\n\n" }), "none")),
		recovers("stream: no JSON", "", free(write.shaped(func(string, string) string { return "data: {\"a\n\n" }), "none")),
		recovers("stream: an error at first", "", free(write.failing("the backend died", false), "none")),
		recovers("stream: an error in a text", "", free(text.failing("the backend died", true), "estimated")),
		recovers("stream: an error in a call", "", free(write.failing("the backend died", true), "estimated")),
		recovers("stream: the connection breaks in a text", "", said{text: "It begins", broken: true, bill: "estimated"}),
		recovers("stream: the connection breaks in a call", "", said{calls: write.calls, broken: true, bill: "estimated"}),
		recovers("stream: the connection breaks in a call as text", "", said{text: badCall, broken: true, bill: "estimated"}),
		recovers("stream: the connection breaks at first", "", said{lost: true}),
		recovers("stream: nothing said", "", telling("")),
		recovers("stream: only blanks said", "", telling(" \n\n")),
		works("stream: a document", write.asDocument()),
		{name: "stream: a document with text", says: []said{telling("It is 4.").asDocument()}, output: "It is 4."},
	}
}

// callOddities are calls in other forms.
func callOddities(write said) []oddity {
	both := said{in: 1000, out: 50, calls: []saidCall{{"call_1", "write_file", helloArgs}, {"call_1", "publish_file", `{"path": "a.txt"}`}}}
	pair := func(name string, s said) oddity {
		return oddity{name: name, says: []said{s, done}, output: "Done.", calls: working}
	}
	noIDs := both
	noIDs.calls = []saidCall{{"", "write_file", helloArgs}, {"", "publish_file", `{"path": "a.txt"}`}}
	long := both
	long.calls = []saidCall{{strings.Repeat("x", 300), "write_file", helloArgs}, {"a b/ü", "publish_file", `{"path": "a.txt"}`}}
	replaced := func(s said, pattern, with string) said {
		return s.shaped(func(_, body string) string { return regexp.MustCompile(pattern).ReplaceAllString(body, with) })
	}
	chat := func(o oddity) oddity {
		return o.except("anthropic", hasBlocks).except("responses", hasBlocks).except("ollama", "its calls are whole")
	}
	odd := telling("Done.")
	odd.finish = "odd"
	oddWrite := write
	oddWrite.finish = "odd"
	return []oddity{
		pair("call: the same id twice", both), pair("call: no ids", noIDs), pair("call: long and foreign ids", long),
		pair("call: a document with two", both.asDocument()),
		chat(works("call: no index", replaced(write, `"index":\d+,("id"|"function")`, "$1"))),
		chat(pair("call: two without index", replaced(long, `"index":\d+,("id"|"function")`, "$1"))),
		chat(works("call: the index is null", replaced(write, `"index":\d+,("id"|"function")`, `"index":null,$1`))),
		chat(works("call: the name in pieces", replaced(write, `"name":"write_file","arguments":""}}\]\},"finish_reason":null\}\]\}`,
			`"name":"write_","arguments":""}}]},"finish_reason":null}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"file"}}]},"finish_reason":null}]}`))),
		chat(works("call: the name in each piece", replaced(write, `"function":\{"arguments"`, `"function":{"name":"write_file","arguments"`))),
		chat(works("call: the id in each piece", replaced(write, `"function":\{"arguments"`, `"id":"call_write_file","function":{"arguments"`))),
		chat(works("call: content is null", replaced(write, `"content":""`, `"content":null`))),
		works("call: finish reason stop", replaced(write, `"(tool_calls|tool_use)"(,"stop_sequence|\}\]\})`, `"stop"$2`)).
			except("responses", hasNoField),
		works("call: unknown finish reason", oddWrite).except("responses", hasNoField),
		{name: "text: unknown finish reason", says: []said{odd}, output: "Done.", not: map[string]string{"responses": hasNoField}},
	}
}
