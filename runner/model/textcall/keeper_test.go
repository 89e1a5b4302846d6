package textcall_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model/textcall"
	"journeyman/store/ordertest"
)

// shownBy returns what is shown of a text that arrives in pieces of n bytes.
func shownBy(t *testing.T, text string, n int, data bool) string {
	t.Helper()
	k, shown := textcall.Keeper{Data: data}, 0
	for at := 0; at < len(text); at += n {
		now := k.Shown(text[:min(at+n, len(text))])
		if now < shown || now > min(at+n, len(text)) {
			t.Fatalf("%d bytes are shown after %d, of %d", now, shown, at+n)
		}
		shown = now
	}
	return text[:shown]
}

// TestKeeper checks what is shown of texts before they are complete, in whatever pieces they arrive.
func TestKeeper(t *testing.T) {
	t.Parallel()
	const call = `{"name":"read_file","arguments":{"path":"a"}}`
	long := strings.Repeat("x", 400)
	for name, tt := range map[string]struct{ text, want string }{
		"text":                   {"The answer is 4.\nYes.\n", "The answer is 4.\nYes.\n"},
		"white space":            {" \n\n", ""},
		"Hermes":                 {"<tool_call>\n" + call, ""},
		"Hermes, after lines":    {"\n\n<tool_call>", ""},
		"after words":            {"I read it.\n<tool_call>" + call, "I read it.\n"},
		"after words, in a line": {"I read it: <tool_call>" + call, "I read it: "},
		"after code":             {"Use `a` <function=a>", "Use `a` "},
		"unknown namespace":      {"So.\n<my_tool_call>" + call, "So.\n"},
		"DeepSeek":               {"So.\n<｜tool▁calls▁begin｜><｜tool", "So.\n"},
		"Mistral":                {"So.\n[TOOL_CALLS]read_file", "So.\n"},
		"harmony":                {"So.\n<|channel|>commentary to=functions.x json", "So.\n"},
		"harmony, whole header":  {"<|start|>assistant<|channel|>commentary to=read_file", ""},
		"Llama, not closed":      {"<function=read_file{\"path\"", ""},
		"invoke":                 {"So.\n<invoke name=\"read_file\"", "So.\n"},
		"Phi-4":                  {"functools[" + call + "]", ""},
		"Gemma":                  {"```tool_code\nprint(x)", ""},
		"Gemma, after words":     {"So.\n```tool_call\n{}", "So.\n"},
		"JSON":                   {call, ""},
		"JSON, long":             {`{"name": "write_file", "arguments": {"content": "` + long, ""},
		"JSON, raw line break":   {"{\"name\": \"write_file\", \"arguments\": {\"content\": \"a\nb", ""},
		"JSON after words":       {"I read it:\n  " + call, "I read it:\n"},
		"JSON of OpenAI":         {`{"tool_calls":[{"id":"1"`, ""},
		"list":                   {"[\n" + call + "]", ""},
		"fence":                  {"```json\n" + call + "\n```", ""},
		"fence of a mark":        {"```\n<tool_call>" + call + "\n```", ""},
		"fence after lines":      {"\n \n```json\n\n " + call, ""},
		"arguments first":        {`{"arguments":{},"name":"list_files"}`, ""},
		"members before":         {`{"id":"1","type":"function","index":0,"name":"read_file","parameters":{`, ""},
		"single marks":           {`{'name': 'read_file', 'arguments': {'path': 'a'}}`, ""},
		"keys without marks":     {`{name: "read_file", args: {path: "a"}}`, ""},
		"function around":        {`{"type":"function","function":{"name":"list_files"},"parameters":{}}`, ""},
		"white space within":     {"{\n\n  \"name\" :\n\"read_file\" ,\r\n \"arguments\"  : {", ""},
		"two, no arguments":      {"{\"name\":\"Ada\"}\n" + call, "{\"name\":\"Ada\"}\n"},

		"names":                   {`[{"id":1,"name":"Ada"},{"id":2,"name":"Bob"},{"id":3,"na`, `[{"id":1,"name":"Ada"},{"id":2,"name":"Bob"},{"id":3,"na`},
		"names in lines":          {"[\n  {\n    \"id\": 1,\n    \"name\": \"Ada\"\n  },\n  {\n    \"id\": 2", "[\n  {\n    \"id\": 1,\n    \"name\": \"Ada\"\n  },\n"},
		"JSONL":                   {"{\"name\":\"Ada\",\"type\":\"cat\"}\n{\"name\":\"Bob\",\"type\":\"dog\"}\n", "{\"name\":\"Ada\",\"type\":\"cat\"}\n{\"name\":\"Bob\",\"type\":\"dog\"}\n"},
		"JSONL, open":             {"{\"name\":\"Ada\",\"type\":\"cat\"}\n{\"name\":\"B", "{\"name\":\"Ada\",\"type\":\"cat\"}\n"},
		"names in a fence":        {"```json\n{\"id\":1,\"name\":\"x\"}\n{\"id\":2,\"name\":\"y\"}\n```\nSo.", "```json\n{\"id\":1,\"name\":\"x\"}\n{\"id\":2,\"name\":\"y\"}\n```\nSo."},
		"list in a fence":         {"\n```json\n[\n {\"id\":1,\"name\":\"x\"},\n {\"id\":2", "\n```json\n[\n {\"id\":1,\"name\":\"x\"},\n {\"id\":2"},
		"empty fence":             {"```\n```\nSo.", "```\n```\nSo."},
		"white space in a fence":  {"```\n\n\n\nx\n```\n", "```\n\n\n\nx\n```\n"},
		"broken names":            {"{\"name\", \"b\"} is a set.", "{\"name\", \"b\"} is a set."},
		"a long name":             {`{"name": "` + long, `{"name": "` + long},
		"a function, as a text":   {`{"function":"sin","type":"real"} rest`, `{"function":"sin","type":"real"} rest`},
		"an object as a name":     {`{"name":{"first":"Ada"`, `{"name":{"first":"Ada"`},
		"empty object":            {"{}\n{ }\n[{}]", "{}\n{ }\n[{}]"},
		"Go":                      {"{ return x }\n{type: a, b}", "{ return x }\n{type: a, b}"},
		"other JSON":              {`{"name":"Ada","age":36}`, `{"name":"Ada","age":36}`},
		"other JSON, long":        {`{"text":"` + long, `{"text":"` + long},
		"Python":                  {`{'name': 1}`, `{'name': 1}`},
		"list of numbers":         {"[1, 2]", "[1, 2]"},
		"link":                    {"[read_file](https://example.com) reads.", "[read_file](https://example.com) reads."},
		"task list":               {"- [ ] one\n- [x] two\n", "- [ ] one\n- [x] two\n"},
		"fence of code":           {"```go\nx := a<b\n```\nSo it is.", "```go\nx := a<b\n```\nSo it is."},
		"example in a fence":      {"So:\n```xml\n<tool_call>" + call + "</tool_call>\n```\nEnd.", "So:\n```xml\n<tool_call>" + call + "</tool_call>\n```\nEnd."},
		"JSON example in a fence": {"So:\n```json\n" + call + "\n```\nEnd.", "So:\n```json\n" + call + "\n```\nEnd."},
		"example in code":         {"Write `<tool_call>` so.", "Write `<tool_call>` so."},
		"comparison":              {"a < b and c<d, so <b>x</b>.", "a < b and c<d, so <b>x</b>."},
		"long link":               {"<https://example.com/" + long + ">", "<https://example.com/" + long + ">"},
		"template":                {"{{.Name}} is it.", "{{.Name}} is it."},
		"words like marks":        {"functional print commentary", "functional print commentary"},
		"words with the sign":     {"to=ann@example.com", "to=ann@example.com"},
		"the beginning of a mark": {"So it is <too", "So it is "},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			for _, n := range []int{1, 2, 3, 7, 64, len(tt.text)} {
				is.Equal(shownBy(t, tt.text, n, false), tt.want)
			}
		})
	}
	is := is.New(t)
	is.Equal(shownBy(t, call, 5, true), call) // the schema of the answer may describe it
	is.Equal(shownBy(t, "```json\n"+call, 5, true), "```json\n"+call)
}

// TestCallsAreNotShown has all orders of the members of a call, in all frames around it. Nothing of it is shown.
func TestCallsAreNotShown(t *testing.T) {
	t.Parallel()
	tools := []textcall.Tool{{Name: "f"}}
	for _, args := range []string{`"arguments":{"a":1}`, `"parameters": {}`, `"args":{"a":{}}`, `"input":{}`, `"action_input":{}`} {
		for _, members := range [][]string{{`"name":"f"`, args}, {args, `"tool":"f"`}, {`"id": "1"`, `"name":"f"`, args},
			{args, `"index":0`, `"action" : "f"`}, {`"type":"function"`, args, `"name":"f"`}, {`"name":"f"`, `"call_id":null`, args}} {
			for _, frame := range []string{"%", "[%]", "\n [\n%\n]", "```json\n%\n```", " ```\n\n[%,%]\n```", "%\n%", "%; %",
				`{"tool_calls":[%]}`, `{"tool_calls": [{"id":"1","type":"function","function":%}]}`, `{"function_call":%}`} {
				object := "{" + strings.Join(members, ", ") + "}"
				for _, text := range []string{strings.ReplaceAll(frame, "%", object),
					strings.ReplaceAll(frame, "%", strings.ReplaceAll(object, `"`, "'"))} {
					calls, why := textcall.Find(text, tools)
					is := is.New(t)
					ordertest.Above(is, len(calls), 0)
					is.Equal(why, "") // it is a call
					for _, n := range []int{1, 5, len(text)} {
						if shown := shownBy(t, text, n, false); shown != "" {
							t.Errorf("%q is shown of %q", shown, text)
						}
					}
				}
			}
		}
	}
}

// TestFormsAreKept checks that nothing is shown of a text in any form with a mark, and of JSON.
func TestFormsAreKept(t *testing.T) {
	t.Parallel()
	unmarked := []string{"functionary 3.2", "functionary, no mark", "Groq, no beginning", "Python", "Python, one", "harmony, no namespace",
		"Gemma, no mark", "ReAct", "Command R, action", "Cline", "element of a function"}
	for name, tt := range forms() {
		for _, n := range []int{1, 2, 7, len(tt.text)} {
			if shown := shownBy(t, tt.text, n, false); (shown != "") != slices.Contains(unmarked, name) {
				t.Errorf("%s: %q is shown", name, shown)
			}
		}
	}
}

func FuzzKeeper(f *testing.F) {
	for _, text := range []string{"a\n<tool_call>{}", "```json\n{\"name\":\"a\",\"arguments\":{}}\n```", " [{\"name\":", "<｜tool▁calls▁begin｜>",
		"a `b` <function=c>", "{\"tool_calls\":[", "```tool_code\nx", "[{\"id\":1,\"name\":\"read_file\"},{'name':'b'}]",
		"\n```\n\n{name: \"read_file\", args: {}}", "{\"name\":\"a\"}\n{\"name\":\"read_file\",\"input\":{}}"} {
		f.Add(text, 1, false)
	}
	f.Fuzz(func(t *testing.T, text string, n int, data bool) {
		if n = max(n, 1); len(text) > 1<<12 {
			return
		}
		whole := textcall.Keeper{Data: data}
		if shown := shownBy(t, text, min(n, len(text)+1), data); len(shown) < whole.Shown(text) {
			t.Fatalf("only %q is shown of a text that arrives in pieces", shown)
		} else if found(text) != "answer" && isBareCall(text) && strings.TrimSpace(shown) != "" {
			t.Fatalf("%q is shown of a call", shown)
		}
	})
}

// isBareCall reports whether a text is JSON whose objects have only the members of a call.
func isBareCall(text string) bool {
	var list []map[string]json.RawMessage
	if json.Unmarshal([]byte("["+strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")+"]"), &list) != nil {
		return false
	}
	for _, members := range list {
		for key := range members {
			if !slices.Contains([]string{"name", "id", "type", "index", "arguments", "parameters", "input"}, key) {
				return false
			}
		}
	}
	return len(text) < 256
}
