package textcall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model/textcall"
)

func offered() []textcall.Tool {
	return []textcall.Tool{
		{Name: "read_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"all":{"type":"boolean"}}}`)},
		{Name: "write_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`)},
		{Name: "list_files"},
	}
}

// found returns the result of Find as text.
func found(text string) string {
	calls, why := textcall.Find(text, offered())
	if why != "" {
		return "told: " + why
	}
	if len(calls) == 0 {
		return "answer"
	}
	var list []string
	for _, c := range calls {
		list = append(list, c.Name+string(c.Arguments))
	}
	return strings.Join(list, " ")
}

const (
	readA  = `read_file{"path":"a"}`
	listed = `list_files{}`
)

// A form is a text that consists of calls.
type form struct{ text, want string }

// forms returns texts in all known forms.
func forms() map[string]form {
	return map[string]form{
		"Hermes":                 {"<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>", readA},
		"Hermes, two":            {"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>\n<tool_call>{\"name\":\"list_files\",\"arguments\":{}}</tool_call>", readA + " " + listed},
		"Hermes, no end":         {"<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n", readA},
		"Hermes, end token":      {"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call><|im_end|>", readA},
		"Qwen3 Coder":            {"<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call>", `read_file{"limit":3,"path":"a"}`},
		"Qwen3 Coder, bare":      {"<function=read_file>\n<parameter=path>\n12\n</parameter>\n<parameter=all>\nTrue\n</parameter>\n</function>", `read_file{"all":true,"path":"12"}`},
		"Llama 3":                {`{"name": "read_file", "parameters": {"path": "a"}}`, `read_file{"path": "a"}`},
		"Llama 3.2":              {`{"type":"function","name":"read_file","parameters":{"path":"a"}}`, readA},
		"Llama 3, two":           {`{"name":"read_file","parameters":{"path":"a"}}; {"name":"list_files","parameters":{}}`, readA + " " + listed},
		"Llama, python tag":      {`<|python_tag|>{"name":"read_file","parameters":{"path":"a"}}<|eom_id|>`, readA},
		"Llama, Python":          {`<|python_tag|>read_file.call(path="a")`, readA},
		"functionary 3.1":        {`<function=read_file>{"path":"a"}</function>`, readA},
		"functionary 3.2":        {">>>read_file\n{\"path\":\"a\"}", readA},
		"functionary, no mark":   {"read_file\n{\"path\":\"a\"}", readA},
		"Groq, equals sign":      {`<function=read_file={"path": "a"}</function>`, `read_file{"path": "a"}`},
		"Groq, comma":            {`<function=read_file,{"path": "a"}</function>`, `read_file{"path": "a"}`},
		"Groq, no beginning":     {`read_file{"path": "a"}</function>`, `read_file{"path": "a"}`},
		"Groq, tool-use":         {"<tool-use>\n{\"tool_calls\":[{\"id\":\"pending\",\"type\":\"function\",\"function\":{\"name\":\"read_file\"},\"parameters\":{\"path\":\"a\"}}]}\n</tool-use>", readA},
		"Groq, in a fence":       {"```\n{\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"read_file\"},\"parameters\":{\"path\":\"a\"}}]}\n```", readA},
		"Mistral, old":           {`[TOOL_CALLS] [{"name":"read_file","arguments":{"path":"a"}}]`, readA},
		"Mistral":                {`[TOOL_CALLS]read_file[ARGS]{"path":"a"}[TOOL_CALLS]list_files[ARGS]{}`, readA + " " + listed},
		"Mistral, call id":       {`[TOOL_CALLS]read_file[CALL_ID]abc123DEF[ARGS]{"path":"a"}`, readA},
		"DeepSeek 3":             {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\":\"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", readA},
		"DeepSeek 3.1":           {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{\"path\":\"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", readA},
		"DeepSeek 3.2":           {"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", readA},
		"harmony":                {"<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>", readA},
		"harmony, other order":   {"<|start|>assistant to=functions.read_file<|channel|>commentary json<|message|>{\"path\":\"a\"}<|call|>", readA},
		"harmony, stripped":      {"commentary to=functions.read_file json{\"path\":\"a\"}", readA},
		"GLM":                    {"<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", `read_file{"limit":3,"path":"a"}`},
		"GLM, no arguments":      {"<tool_call>list_files\n</tool_call>", listed},
		"Kimi":                   {"<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\":\"a\"}<|tool_call_end|><|tool_calls_section_end|>", readA},
		"Granite":                {`<|tool_call|>[{"name":"read_file","arguments":{"path":"a"}}]`, readA},
		"Phi-4 mini":             {`<|tool_call|>[{"name":"read_file","arguments":{"path":"a"}}]<|/tool_call|>`, readA},
		"GigaChat":               {"function call<|role_sep|>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}", readA},
		"harmony, analysis":      {"<|start|>assistant<|channel|>analysis to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>", readA},
		"harmony, header only":   {"to=functions.read_file json{\"path\":\"a\"}", readA},
		"Phi-4":                  {`functools[{"name":"read_file","arguments":{"path":"a"}}]`, readA},
		"Command R":              {`<|START_ACTION|>[{"tool_call_id":"0","tool_name":"read_file","parameters":{"path":"a"}}]<|END_ACTION|>`, readA},
		"Command R, fence":       {"```json\n[{\"tool_name\":\"read_file\",\"parameters\":{\"path\":\"a\"}}]\n```", readA},
		"Python":                 {`[read_file(path="a", limit=3), list_files()]`, `read_file{"limit":3,"path":"a"} ` + listed},
		"Python, one":            {`read_file(path='a')`, readA},
		"LFM2":                   {`<|tool_call_start|>[read_file(path="a")]<|tool_call_end|>`, readA},
		"Gemma, code":            {"```tool_code\nprint(default_api.read_file(path=\"a\"))\n```", readA},
		"FunctionGemma":          {"<start_function_call>call:read_file{path:<escape>a<escape>}<end_function_call>", readA},
		"Gemma 4":                {"<|tool_call>call:read_file{path:<|\"|>a<|\"|>}<tool_call|>", readA},
		"Nemotron":               {`<TOOLCALL>[{"name":"read_file","arguments":{"path":"a"}}]</TOOLCALL>`, readA},
		"Apertus":                {`<|tools_prefix|>[{"read_file":{"path":"a"}}]<|tools_suffix|>`, readA},
		"InternLM":               {`<|action_start|><|plugin|>{"name":"read_file","parameters":{"path":"a"}}<|action_end|>`, readA},
		"Jamba":                  {`<tool_calls>[{"name":"read_file","arguments":{"path":"a"}}]</tool_calls>`, readA},
		"Seed":                   {"<seed:tool_call><function=read_file><parameter=path>a</parameter></function></seed:tool_call>", readA},
		"MiniMax":                {"<minimax:tool_call><invoke name=\"read_file\"><parameter name=\"path\">a</parameter></invoke></minimax:tool_call>", readA},
		"Anthropic":              {"<function_calls>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>", readA},
		"Anthropic, bare":        {"<invoke name=\"read_file\"><parameter name=\"path\">a</parameter></invoke>", readA},
		"LongCat":                {`<longcat_tool_call>{"name":"read_file","arguments":{"path":"a"}}</longcat_tool_call>`, readA},
		"OpenAI's own":           {`{"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}`, readA},
		"fence":                  {"```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```", readA},
		"harmony, no namespace":  {"commentary to=read_file json{\"path\":\"a\"}", readA},
		"element of a function":  {"<function><name>read_file</name><arguments>{\"path\":\"a\"}</arguments></function>", readA},
		"Gemma, no mark":         {"call:read_file{path:<escape>a<escape>}", readA},
		"ReAct":                  {"Thought: I read it.\nAction: read_file\nAction Input: {\"path\":\"a\"}", readA},
		"elements":               {"<tool_use><name>read_file</name><arguments>{\"path\":\"a\"}</arguments></tool_use>", readA},
		"Llama, not closed":      {"<function=read_file{\"path\":\"a\"}</function>", readA},
		"Llama, no slash":        {"<function=read_file>{\"path\":\"a\"}<function>", readA},
		"Llama, late end":        {"<function=read_file{\"path\":\"a\"}></function>", readA},
		"Command R, action":      {"Action: ```json\n[{\"tool_name\":\"read_file\",\"parameters\":{\"path\":\"a\"}}]\n```", readA},
		"DeepSeek, ASCII":        {"<|tool▁calls▁begin|><|tool▁call▁begin|>function<|tool▁sep|>read_file\n```json\n{\"path\":\"a\"}\n```<|tool▁call▁end|>", readA},
		"Cline":                  {"<read_file>\n<path>a</path>\n<limit>3</limit>\n</read_file>", `read_file{"limit":3,"path":"a"}`},
		"raw line break":         {"<tool_call>{\"name\":\"write_file\",\"arguments\":{\"path\":\"a\",\"content\":\"b\nc\"}}</tool_call>", `write_file{"content":"b\nc","path":"a"}`},
		"mark within content":    {"<tool_call>{\"name\":\"write_file\",\"arguments\":{\"path\":\"a\",\"content\":\"</tool_call>```\"}}</tool_call>", "write_file{\"path\":\"a\",\"content\":\"</tool_call>```\"}"},
		"escapes":                {`{"name":"write_file","arguments":{"path":"a","content":"x \ud83d\ude00 \b\f\u00e9",}}`, `write_file{"content":"x 😀 \b\fé","path":"a"}`},
		"single quotation marks": {"<tool_call>{'name': 'read_file', 'arguments': {'path': 'a', 'all': True,}}</tool_call>", `read_file{"all":true,"path":"a"}`},
	}
}

func TestFormsAreCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range forms() {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(found(tt.text), tt.want)
		})
	}
}

func TestAnswersAndBrokenCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"text":                       {"The answer is 4.", "answer"},
		"empty":                      {"", "answer"},
		"JSON":                       {`{"name":"Ada","age":36}`, "answer"},
		"JSON like a tool":           {`{"name":"read_file","size":3}`, "answer"},
		"list":                       {`["a", "b"]`, "answer"},
		"Markdown list":              {"[read_file](https://example.com) is a tool.", "answer"},
		"tool mentioned":             {"read_file(path) reads a file.", "answer"},
		"mark mentioned":             {"Models write <tool_call> before a call.", "answer"},
		"example in a fence":         {"A call looks like this:\n```\n<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n```\nIt reads.", "answer"},
		"JSON example in a fence":    {"A call is\n```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```", "answer"},
		"example in code":            {"Write `<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>` so.", "answer"},
		"fence of another tool":      {"```json\n{\"name\":\"get_weather\",\"arguments\":{}}\n```", "answer"},
		"example of another tool":    {"So:\n<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>\nThat is all.", "answer"},
		"XML":                        {"<name>Ada</name>", "answer"},
		"call of a person":           {"Call: Dr. Smith on Tuesday, then send the report.", "answer"},
		"call of a tool, in words":   {"call: read_file {path} first.", "answer"},
		"quotation":                  {">>> On Monday Bob wrote: hello.", "answer"},
		"Python session":             {">>> x = 1\n>>> print(x)\n1", "answer"},
		"Python session, dict":       {">>> {\"a\": 1}\n{'a': 1}", "answer"},
		"action of a person":         {"Action: [Anna] send the figures by Friday.", "answer"},
		"action, command":            {"Action: ```bash\nls\n```", "answer"},
		"query":                      {"to=alice&subject=hello", "answer"},
		"query, name of a tool":      {"to=read_file&subject=hello", "answer"},
		"header of mail":             {"to=functions@example.com", "answer"},
		"Python module":              {"functools [3.12] has caches.", "answer"},
		"element function":           {"<function>\n  <sin>x</sin>\n</function>", "answer"},
		"element input":              {"<input>\n <a>1</a>\n</input>", "answer"},
		"element parameters":         {"So:\n<parameters>\n <a>1</a>\n</parameters>\nEnd.", "answer"},
		"elements with a name":       {"<name>Ada</name>\n<input>x</input>", "answer"},
		"cut functionary":            {">>>read_file\n{\"path\": ", "told: its arguments are not a JSON object"},
		"broken action":              {"Action: [{\"tool_name\":\"read_file\",\"parameters\":{\"path\":", "told: it cannot be read"},
		"unknown tool":               {"<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>", `told: there is no tool "get_weather"`},
		"unknown tool, JSON":         {`{"name":"get_weather","parameters":{"city":"Rome"}}`, `told: there is no tool "get_weather"`},
		"unknown tool, XML":          {"<function=get_weather>\n<parameter=city>Rome</parameter>\n</function>", `told: there is no tool "get_weather"`},
		"one of two unknown":         {"[TOOL_CALLS]read_file[ARGS]{}[TOOL_CALLS]fly[ARGS]{}", `told: there is no tool "fly"`},
		"broken JSON":                {"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":</tool_call>", "told: its JSON is not complete or not valid"},
		"broken JSON, no mark":       {`{"name":"read_file","arguments":{"path":"a"`, "told: its JSON is not complete or not valid"},
		"arguments no object":        {"<tool_call>{\"name\":\"read_file\",\"arguments\":[1]}</tool_call>", "told: its arguments are not a JSON object"},
		"cut XML":                    {"<function=write_file>\n<parameter=content>\nabc", "told: its end is missing"},
		"cut GLM":                    {"<tool_call>write_file<arg_key>path</arg_key><arg_value>a.txt</arg_value><arg_key>content</arg_key><arg_value>half of the cont", "told: its end is missing"},
		"many in a list":             {"[" + strings.Repeat(`{"name":"list_files","arguments":{}},`, 64) + `{"name":"list_files","arguments":{}}]`, "told: it has more than 64 calls"},
		"many in an object":          {`{"tool_calls":[` + strings.Repeat(`{"name":"list_files","arguments":{}},`, 64) + `{"name":"list_files","arguments":{}}]}`, "told: it has more than 64 calls"},
		"many in Python":             {"[" + strings.Repeat(`list_files(),`, 65) + "]", "told: it has more than 64 calls"},
		"many with marks":            {strings.Repeat(`<tool_call>{"name":"list_files","arguments":{}}</tool_call>`, 65), "told: it has more than 64 calls"},
		"marks only":                 {"<tool_call></tool_call>", "told: it cannot be read"},
		"text before":                {"I read the file.\n<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>", "told: other text stands beside it"},
		"text before, in the line":   {"I read the file. <tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>", "told: other text stands beside it"},
		"text after":                 {"<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\nI wait.", "told: other text stands beside it"},
		"fence of a call":            {"I read it.\n```tool_call\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```", "told: other text stands beside it"},
		"text before JSON":           {"I read it:\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}", "told: other text stands beside it"},
		"text before, Mistral":       {"I read it.\n[TOOL_CALLS]read_file[ARGS]{\"path\":\"a\"}", "told: other text stands beside it"},
		"text before, broken":        {"I read it.\n<tool_call>{\"name\": \"read_file\", \"arg", "told: other text stands beside it"},
		"an invented result follows": {"<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n<tool_response>ok</tool_response>", "told: other text stands beside it"},
	} {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(found(tt.text), tt.want)
		})
	}
	calls, why := textcall.Find(`{"name":"f","arguments":{}}`, nil)
	is.New(t).Equal(fmt.Sprint(len(calls), why), "0") // without tools, JSON is an answer
}

// TestWhole has calls that are made if the model has ended them so, and not if the output limit has.
func TestWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"<tool_call>list_files":                                                                     false,
		"<tool_call>list_files\n</tool_call>":                                                       true,
		"<tool_call>write_file<arg_key>path</arg_key><arg_value>a</arg_value>\n":                    false,
		"<tool_call>write_file<arg_key>path</arg_key><arg_value>a</arg_value></tool_call>":          true,
		"<function=write_file><parameter=path>a</parameter><parameter=content></function>":          false,
		"<function=write_file><parameter=path>a</parameter></function>":                             true,
		"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}":                        false,
		"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>":            true,
		"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n<|im_end|>":            true,
		`<tool_calls>[{"name":"read_file","arguments":{"path":"a"}}]`:                               false,
		`<TOOLCALL>[{"name":"read_file","arguments":{"path":"a"}}]</TOOLCALL>`:                      true,
		`<tool_call><function=list_files></function>`:                                               true,
		`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path":"a"}`:                  false,
		`<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path":"a"}<｜tool▁call▁end｜>`: true,
		`<minimax:tool_call>{"name":"read_file","arguments":{"path":"a"}}`:                          false,
		`<seed:tool_call><function=list_files></function>`:                                          true,
		`[TOOL_CALLS]read_file[ARGS]{"path":"a"}`:                                                   true,
		`<|python_tag|>{"name":"read_file","parameters":{"path":"a"}}`:                              true,
		`{"name":"read_file","parameters":{"path":"a"}}`:                                            true,
	} {
		t.Run(text, func(t *testing.T) {
			is := is.New(t)
			calls, why := textcall.Find(text, offered())
			is.Equal(fmt.Sprint(len(calls), why), "1")
			is.Equal(textcall.Whole(text, offered()), want)
		})
	}
}

// TestManyCalls has as many calls as are made at most.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	calls, why := textcall.Find("["+strings.Repeat("list_files(),", 64)+"]", offered())
	is.Equal(why, "")
	is.Equal(len(calls), 64)
}

func FuzzFind(f *testing.F) {
	for _, text := range []string{"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>", "[read_file(path='a')]",
		"<function=read_file><parameter=path>a</parameter></function>", "[TOOL_CALLS]read_file[ARGS]{}", "to=functions.x {}",
		"call:read_file{path:<escape>a<escape>}", "a\n{\"name\":\"read_file\",\"arguments\":{}}",
		"call:default_api:read_file{}", `{"name":"functions.read_file<|channel|>x:0","arguments":{}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, why := textcall.Find(text, offered())
		if len(calls) > 0 && why != "" {
			t.Fatal("calls and a reason against them")
		}
		for _, c := range calls {
			var args map[string]any
			if json.Unmarshal(c.Arguments, &args) != nil || args == nil {
				t.Fatalf("arguments %q", c.Arguments)
			}
		}
	})
}
