package textcall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model/textcall"
	"journeyman/store/ordertest"
)

func TestMeant(t *testing.T) {
	t.Parallel()
	names := []string{"write_file", "read_file", "exec", "drive__search", "search", "read_2", "report", "report_1", "tools__list"}
	for name, want := range map[string]string{
		"functions.write_file": "write_file", "function.write_file": "write_file", "functions:write_file": "write_file",
		"functions/write_file": "write_file", "functions::write_file": "write_file", "tools.write_file": "write_file",
		"tool.write_file": "write_file", "tool:write_file": "write_file", "default_api.write_file": "write_file",
		"default_api:write_file": "write_file", "namespace::write_file": "write_file", "any_space::write_file": "write_file",
		"a::b::write_file": "write_file", "google:write_file": "write_file", "mcp.write_file": "write_file",
		"to=functions.write_file": "write_file", "assistant to=functions.write_file": "write_file",
		"write_file<|channel|>commentary": "write_file", "functions.write_file<|channel|>commentary": "write_file",
		"write_file<|constrain|>json": "write_file", "write_file<|channel|>commentary<|constrain|>json": "write_file",
		"write_file<｜tool▁sep｜>": "write_file", "write_file[ARGS]": "write_file", "write_file[CALL_ID]abc": "write_file",
		"write_file</tool_call>": "write_file", "write_file<arg_key>path": "write_file",
		"functions.write_file:0": "write_file", "functions.write_file:12": "write_file", "write_file:0": "write_file",
		"functions_write_file_0": "write_file", "functionswrite_file3": "write_file",
		"write_file.call": "write_file", "write_file()": "write_file", " write_file\n": "write_file", "`write_file`": "write_file",
		`"write_file"`: "write_file", "drive.search": "drive__search", "drive::search": "drive__search", "drive/search": "drive__search",
		"mcp__drive__search": "drive__search", "functions.drive__search": "drive__search", "functions.read_2": "read_2",
		"write_file": "write_file", "tools.list": "tools__list",

		// These mean no offered tool, or more than one.
		"": "", "functions.": "", "fly": "", "functions.fly": "", "write_files": "", "my.write_file": "", "my:write_file": "",
		"mail.write_file": "", "write_file{}": "", "write_file(path='a')": "", "write_file read_file": "", "<|channel|>commentary": "",
		"<|constrain|>json": "", "functions_report_1": "", "functions": "", "functions.functions": "", "xwrite_file": "", "__write_file": "",
		"functions.exec5": "", "functions.report2": "", "functions_report2": "", "functions.exec_5": "", "functions/exec5": "", "exec5": "",
		"Functions.write_file": "", "functions.write_file.read_file": "",
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, ok := textcall.Meant(name, func(n string) bool { return slices.Contains(names, n) })
			is.Equal(ok, want != "")
			if !ok {
				want = name // stays as it is
			}
			is.Equal(got, want)
		})
	}
	// The tool of a server and another tool may both be meant.
	for name, want := range map[string]string{
		"tools.list": "", "tools::list": "", "functions.tools.list": "", "mcp.search": "", "tools/list:0": "",
		"drive.search": "drive__search", "drive::search": "drive__search", "functions::drive.search": "drive__search",
		"other::search": "search", "functions.search": "search", "tools.other": "tools__other", "mcp__drive.search": "drive__search",
	} {
		offered := []string{"list", "tools__list", "search", "drive__search", "mcp__search", "tools__other"}
		got, ok := textcall.Meant(name, func(n string) bool { return slices.Contains(offered, n) })
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s means %q, %v", name, got, ok)
		}
	}
	// A name that is offered itself means nothing else.
	both := []string{"write_file", "functions.write_file", "write_file:0"}
	for _, name := range both {
		got, ok := textcall.Meant(name, func(n string) bool { return slices.Contains(both, n) })
		is.New(t).True(ok && got == name) // the full name is a tool
	}
	calls := 0
	textcall.Meant(strings.Repeat("to=", 60)+"f"+strings.Repeat(":0", 9), func(string) bool { calls++; return false })
	ordertest.Below(is.New(t), calls, 200) // the work is bounded
}

// TestNamesInTextCalls checks that calls in the text may have such names in each form.
func TestNamesInTextCalls(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"functions.read_file", "default_api:read_file", "functions:read_file", "tools.read_file",
		"ns::read_file", "functions/read_file"} {
		for _, form := range []string{
			`<tool_call>{"name":"NAME","arguments":{"path":"a"}}</tool_call>`, `{"name":"NAME","parameters":{"path":"a"}}`,
			`<|channel|>commentary to=NAME <|constrain|>json<|message|>{"path":"a"}<|call|>`, `commentary to=NAME json{"path":"a"}`,
			`[TOOL_CALLS]NAME[ARGS]{"path":"a"}`, `[NAME(path="a")]`, `call:NAME{path:<escape>a<escape>}`,
			`<tool_call>NAME<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>`, ">>>NAME\n{\"path\":\"a\"}",
			`<function=NAME>{"path":"a"}</function>`, "<function=NAME>\n<parameter=path>\na\n</parameter>\n</function>",
			`<|tool_calls_section_begin|><|tool_call_begin|>NAME:0<|tool_call_argument_begin|>{"path":"a"}<|tool_call_end|><|tool_calls_section_end|>`,
			"Thought: I read.\nAction: NAME\nAction Input: {\"path\":\"a\"}",
			"```tool_code\nprint(NAME(path=\"a\"))\n```",
		} {
			if strings.HasPrefix(form, "```") && name != "default_api.read_file" {
				continue // Gemini writes only its own namespace
			}
			t.Run(name+" "+form, func(t *testing.T) {
				is.New(t).Equal(found(strings.ReplaceAll(form, "NAME", name)), readA)
			})
		}
	}
	is := is.New(t)
	is.Equal(found(`{"name":"read_file<|channel|>commentary","arguments":{"path":"a"}}`), readA)
	is.Equal(found(`{"name":"other.read_file","arguments":{"path":"a"}}`), `told: there is no tool "other.read_file"`)
	for _, answer := range []string{"See http://read_file.example/a", "a::b is C++", "Note: call x:y", "std::read_file(a) reads"} {
		is.Equal(found(answer), "answer")
	}
}
