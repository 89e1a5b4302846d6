package runner_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// argumentOddities are arguments of calls that do not fit the schema or are no JSON.
func argumentOddities() (list []oddity) {
	const complete = "Ollama's server sends arguments as an object, which it has parsed itself"
	for _, c := range []struct{ name, args string }{
		{"trailing comma", `{"path": "a.txt", "content": "hello",}`},
		{"fence", "```json\n" + helloArgs + "\n```"},
		{"single quotation marks", `{'path': 'a.txt', 'content': 'hello'}`},
		{"no quotation marks at keys", `{path: "a.txt", content: "hello"}`},
		{"a field that no tool has", `{"path": "a.txt", "content": "hello", "mode": "0644"}`},
		{"raw line break between fields", "{\n\"path\": \"a.txt\",\n\"content\": \"hello\"\n}"},
	} {
		o := works("arguments: "+c.name, calling("write_file", c.args))
		if !json.Valid([]byte(c.args)) || strings.Contains(c.args, "\n") {
			o = o.except("ollama", complete)
		}
		list = append(list, o)
	}
	list = append(list, works("arguments: doubly encoded", calling("write_file", quoted(helloArgs))))
	raw := works("arguments: raw line break in a text", calling("edit_file", "{\"path\": \"a.txt\", \"old\": \"a\nb\", \"new\": \"hello\"}"))
	raw.files, raw.calls = map[string]string{"a.txt": "a\nb"}, []string{"edit_file", "publish_file"}
	list = append(list, raw.except("ollama", complete))
	for _, c := range []struct{ name, args string }{
		{"1 as text", `{"path": "a.txt", "limit": "1"}`},
		{"1 as a float", `{"path": "a.txt", "limit": 1.0}`},
		{"true as text", `{"path": "a.txt", "source": "true"}`},
		{"null for what may be left out", `{"path": "a.txt", "limit": null, "sheet": null}`},
	} {
		o := works("arguments: "+c.name, calling("read_file", c.args))
		o.files, o.calls = map[string]string{"a.txt": "hello"}, []string{"read_file", "publish_file"}
		list = append(list, o)
	}
	for _, c := range []struct{ name, args string }{{"null", `null`}, {"empty", ``}, {"empty text", `""`}} {
		o := works("arguments: "+c.name, calling("list_files", c.args))
		o.files, o.calls = map[string]string{"a.txt": "hello"}, []string{"list_files", "publish_file"}
		if c.args == "" {
			o = o.except("ollama", complete)
		}
		list = append(list, o)
	}
	for _, c := range []struct{ name, args, tells string }{
		{"cut in a text", `{"path": "a.txt", "content": "hel`, "write_file"},
		{"ambiguous", `{"path": "a.txt" "b.txt", "content": "hello"}`, "write_file"},
		{"comment", "{\"path\": \"a.txt\", // the file\n\"content\": \"hello\"}", "write_file"},
		{"no JSON", `path a.txt, content hello`, "write_file"},
		{"a field is missing", `{"path": "a.txt"}`, "content"},
		{"no brace at the end", `{"path": "a.txt", "content": "hello"`, "write_file"},
		{"a list", `["a.txt", "hello"]`, "write_file"},
	} {
		o := recovers("arguments: "+c.name, c.tells, calling("write_file", c.args))
		o.calls = []string{"write_file error", "write_file", "publish_file"}
		if c.args[0] == 'p' || slices.Contains([]string{"cut in a text", "ambiguous", "comment", "no brace at the end"}, c.name) {
			o = o.except("ollama", complete)
		}
		list = append(list, o)
	}
	return list
}

// countFields matches the counts in the usage of every wire.
var countFields = regexp.MustCompile(`("(?:\w*_tokens|\w*eval_count)"):(\d+)`)

// nameOddities are calls whose name is no tool, or a tool with something of a template's form. Package textcall names
// the sources.
func nameOddities() (list []oddity) {
	called := func(name string) said { return said{calls: []saidCall{{"call_1", name, helloArgs}}, in: 1000, out: 50} }
	for _, name := range []string{"fly", "Write_File", "functions.fly", "mail.write_file"} {
		o := recovers("tool: "+name, "there is no tool", called(name))
		o.calls = append([]string{name + " error"}, working...)
		list = append(list, o)
	}
	for _, name := range []string{"functions.write_file", "functions:write_file", "tools.write_file",
		"default_api.write_file", "default_api:write_file", "namespace::write_file", "write_file<|channel|>json",
		"write_file<|channel|>commentary", "functions.write_file:0", "functions_write_file_0"} {
		list = append(list, works("tool: "+name, called(name)))
	}
	return list
}

// usageOddities are counts that are missing or no whole numbers.
func usageOddities() (list []oddity) {
	replace := func(with string) func(string, string) string {
		return func(_, body string) string { return countFields.ReplaceAllString(body, with) }
	}
	for _, c := range []struct{ name, with, bill string }{
		{"floats", "$1:$2.0", ""},
		{"texts", `$1:"$2"`, ""},
		{"texts of floats", `$1:"$2.0"`, ""},
		{"exponents", "$1:${2}e0", ""},
		{"null", "$1:null", "estimated"},
		{"zero", "$1:0", "estimated"},
		{"objects", "$1:{}", "estimated"},
		{"negative", "$1:-$2", "estimated"},
		{"other names", `"x":$2`, "estimated"},
		{"much too large", "$1:${2}e30", "estimated"},
	} {
		o := works("usage: "+c.name, calling("write_file", helloArgs).shaped(replace(c.with)))
		o.says[0].bill = c.bill
		list = append(list, o)
	}
	usage := regexp.MustCompile(`"usage":\{[^{}]*(\{[^{}]*\}[^{}]*)*\}`)
	for _, with := range []string{`null`, `"none"`, `[]`, `12`} {
		o := works("usage: is "+with, calling("write_file", helloArgs).shaped(func(_, body string) string {
			return usage.ReplaceAllString(body, `"usage":`+with)
		}))
		o.says[0].bill = "estimated"
		list = append(list, o.except("ollama", "its counts stand beside the message, in no object"))
	}
	each := calling("write_file", helloArgs)
	each.counted = true
	return append(list, works("usage: twice", each))
}
