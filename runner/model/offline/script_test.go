package offline

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store/ordertest"
)

// scriptOf returns an input that consists of a script.
func scriptOf(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

func TestScriptStep(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		input string
		parts string // type:text of each part
	}{
		"one line":               {scriptOf("say hello world"), "text:hello world"},
		"lines join":             {scriptOf("say a", "say b", "say", "say   c"), "text:a\nb\n\n  c"},
		"comments and blanks":    {scriptOf("# no", "", "  say a", "   # no"), "text:a"},
		"CRLF":                   {"```offline\r\nsay a\r\nsay b\r\n```\r\n", "text:a\nb"},
		"text around":            {"Do this:\n" + scriptOf("say a") + "\nplease", "text:a"},
		"tildes":                 {"~~~ offline x=1\nsay ```\n~~~", "text:```"},
		"longer fence":           {"`````offline\nsay a\n```\n# still in\n`````\nsay b", "script"},
		"never closed":           {"```offline\nsay a", "text:a"},
		"thinking first":         {scriptOf("think a", "say b", "think c"), "reasoning:a\nc text:b"},
		"saying first":           {scriptOf("say a", "think b", "say c"), "text:a\nc reasoning:b"},
		"tool after text":        {scriptOf("say a", "tool read_file {\"path\":\"x\"}"), `text:a tool-call:read_file{"path":"x"}`},
		"tool without arguments": {scriptOf("tool list_files"), `tool-call:list_files{}`},
		"the tool ends the step": {scriptOf("tool a {}", "say later"), `tool-call:a{}`},
		"repeat":                 {scriptOf("repeat 3", "say x"), "text:x\nx\nx"},
		"repeat past a comment":  {scriptOf("repeat 2", "# twice", "", "say x"), "text:x\nx"},
		"json is text":           {scriptOf("say Answer:", `json {"a": [1]}`), "text:Answer:\n{\"a\": [1]}"},
		"no statements":          {scriptOf("# nothing"), "text:Done."},
		"input":                  {"Hello\n" + scriptOf("say <{{input}}> {{other}} {{last}}.") + "\nBob", "text:<Hello\nBob> {{other}} ."},
		"input in JSON":          {"say \"hi\" <b>\n" + scriptOf(`tool x {"a":"{{input}}!"}`), `tool-call:x{"a":"say \"hi\" <b>!"}`},
		"once only":              {"{{last}}{{input}}\n" + scriptOf("say {{input}}"), "text:{{last}}{{input}}"},
		"two blocks":             {scriptOf("say a") + "\n" + scriptOf("say b"), "text:a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			res, err := generate(t, model.Request{Messages: []model.Message{user(tt.input)}})
			if tt.parts == "script" {
				var me *model.Error
				is.True(errors.As(err, &me) && me.Code == "script")
				return
			}
			is.NoErr(err)
			is.Equal(spell(res.Parts), tt.parts)
		})
	}
}

func spell(parts []model.Part) string {
	var all []string
	for _, p := range parts {
		all = append(all, string(p.Type)+":"+p.Text+p.ToolName+string(p.Input))
	}
	return strings.Join(all, " ")
}

func TestNoScript(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{
		"another language":    "```go\nsay x\n```",
		"longer word":         "```offline-notes\nsay x\n```",
		"code span":           "```offline``` is a fence",
		"info with backtick":  "```offline `x`\nsay x\n```",
		"indented code":       "    ```offline\n    say x\n    ```",
		"quoted":              "> ```offline\n> say x\n> ```",
		"inside another":      "````markdown\n```offline\nsay x\n```\n````",
		"inside other tildes": "~~~\n```offline\nsay x\n```\n~~~",
		"two backticks":       "``offline\nsay x\n``",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, rest, ok := cutScript(input)
			is := is.New(t)
			is.True(!ok)
			is.Equal(rest, input)
		})
	}
}

func TestScriptErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lines []string
		says  string
	}{
		"unknown statement":        {[]string{"say a", "", "shout b"}, `line 3: unknown statement "shout"`},
		"shown before it runs":     {[]string{"say a", "tool x {}", "say b", "tool y {}", "json {"}, "line 5: json needs valid JSON"},
		"arguments not JSON":       {[]string{"tool x {a}"}, "line 1: the arguments of x are not valid JSON: invalid character 'a'"},
		"arguments not an object":  {[]string{"tool x [1]"}, "line 1: the arguments of x are not a JSON object"},
		"placeholder outside":      {[]string{"tool x {\"a\":{{last}}}"}, "line 1: the arguments of x are not valid JSON"},
		"tool without name":        {[]string{"tool"}, "line 1: tool needs a name"},
		"tool with only arguments": {[]string{"tool {}"}, "line 1: tool needs a name"},
		"no duration":              {[]string{"wait 5"}, `line 1: wait needs a duration such as 1500ms, not "5"`},
		"negative duration":        {[]string{"wait -5s"}, "line 1: wait needs a duration"},
		"usage with one number":    {[]string{"usage 5"}, "line 1: usage needs two numbers"},
		"negative usage":           {[]string{"usage 5 -1"}, "line 1: usage needs two numbers"},
		"huge usage":               {[]string{"usage 5 99999999999999999999"}, "line 1: usage needs two numbers"},
		"fail without code":        {[]string{"fail"}, "line 1: fail needs a code"},
		"repeat nothing":           {[]string{"say a", "repeat 2", "# end"}, "line 2: repeat has no line after it"},
		"repeat of repeat":         {[]string{"repeat 2", "repeat 2", "say a"}, "line 2: repeat cannot repeat a repeat"},
		"repeat zero":              {[]string{"repeat 0", "say a"}, "line 1: repeat needs a number"},
		"repeat too often":         {[]string{"repeat 10001", "say a"}, "line 1: repeat needs a number from 1 to 10000"},
		"too many in all":          {[]string{"repeat 6000", "say a", "repeat 6000", "say b"}, "line 4: the script has more than 10000 statements"},
		"too long":                 {[]string{"say " + strings.Repeat("x", 64<<10)}, "line 1: the script is longer than 64 KiB"},
		"too much text":            {[]string{"repeat 200", "say " + strings.Repeat("x", 60<<10)}, "line 2: the step produces more than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, err := generate(t, model.Request{Messages: []model.Message{user("x\n" + scriptOf(tt.lines...))}})
			var me *model.Error
			is.True(errors.As(err, &me))
			is.Equal(me.Code, "script")
			is.True(!me.Retryable)
			if !strings.HasPrefix(me.Message, tt.says) {
				t.Errorf("message %q, want %q", me.Message, tt.says)
			}
		})
	}
}

func TestPlaceholdersThatGrow(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	began := time.Now()
	for _, line := range []string{"say " + strings.Repeat("{{input}}", 1000), `tool x {"a":"` + strings.Repeat("{{input}}", 1000) + `"}`, `json "{{x}}"`} {
		_, err := generate(t, model.Request{Messages: []model.Message{user(strings.Repeat("\"", 1<<20) + "\n" + scriptOf("repeat 9000", line))}})
		var me *model.Error
		is.True(err == nil || errors.As(err, &me) && strings.Contains(me.Message, "line 2: the step produces more than"))
	}
	ordertest.Below(is, time.Since(began), 20*time.Second) // stopped while growing, not afterwards
}

// TestScriptTurn executes a script like the runner.
func TestScriptTurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	script := scriptOf("say looking", `tool read_file {"path":"harbour.md"}`, "think hm", "usage 1000 200",
		`tool write_file {"path":"copy.txt","content":"{{last}}"}`, "say wrote {{last}}")
	w := newWorld(t)
	answer, calls := w.converse(t, model.Request{Messages: []model.Message{user(script)}})
	is.Equal(len(calls), 2)
	is.True(strings.Contains(w.files["copy.txt"], "2\ttitle: Harbour study\n")) // the first result, escaped and unescaped
	is.True(strings.HasPrefix(answer, `wrote {"path":"copy.txt"`))
}

func TestScriptSteps(t *testing.T) {
	t.Parallel()
	script := scriptOf("say one", "tool a {}", "usage 7 9", "say two", "tool b {}", "say three")
	call := func(id, tool string) model.Message {
		return model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, CallID: id, ToolName: tool, Input: []byte(`{}`)}}}
	}
	result := func(id, text string) model.Message {
		return model.Message{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, CallID: id, Text: text}}}
	}
	before := []model.Message{user("earlier"), {Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartText, Text: "yes"}}}}
	turn := []model.Message{user(script), call("call_1", "a"), result("call_1", "A"), user("feedback in between"), call("call_2", "b"), result("call_2", "B")}
	for name, tt := range map[string]struct {
		messages []model.Message
		final    bool
		says     string
	}{
		"first":          {turn[:1], false, "text:one tool-call:a{}"},
		"second":         {turn[:3], false, "text:two tool-call:b{}"},
		"after feedback": {turn[:4], false, "text:two tool-call:b{}"},
		"third":          {turn, false, "text:three"},
		"asked again":    {append(turn[:6:6], model.Message{Role: model.RoleAssistant}, user("does not fit")), false, "text:three"},
		"wrap up":        {turn[:4], true, "text:two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			req := model.Request{Messages: append(before[:2:2], tt.messages...), TurnStart: 2, Final: tt.final}
			res := answered(t, req)
			is.Equal(spell(res.Parts), tt.says)
			if name == "second" {
				is.Equal(res.Usage, model.Usage{InputTokens: 7, OutputTokens: 9})
			}
		})
	}
}

func TestScriptEndsWithTool(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		output string
		final  bool
		says   string
	}{
		"short text": {"all went well", false, "all went well"},
		"JSON":       {`{"path":"x"}`, false, "Done."},
		"a string":   {`"hello"`, false, "hello"},
		"long":       {strings.Repeat("long ", 200), false, "Done."},
		"nothing":    {"", false, "Done."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			res := answered(t, model.Request{Final: tt.final, Messages: []model.Message{user(scriptOf("tool x {}")),
				{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, CallID: "call_1", ToolName: "x", Input: []byte(`{}`)}}},
				{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, CallID: "call_1", Text: tt.output}}}}})
			is.Equal(joinText(res.Parts, model.PartText), tt.says)
		})
	}
}

// TestScriptEndsWithToolAfterText checks a script with text before its last tool call. The
// answer is the last text.
func TestScriptEndsWithToolAfterText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	res := answered(t, model.Request{Messages: []model.Message{user(scriptOf("say the answer", "tool x {}")),
		{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartText, Text: "the answer"}, {Type: model.PartToolCall, CallID: "call_1", ToolName: "x", Input: []byte(`{}`)}}},
		{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, CallID: "call_1", Text: "all went well"}}}}})
	is.Equal(len(res.Parts), 0)
	is.Equal(res.Finish, model.FinishStop)
}

func TestFinalWithoutAnythingToSay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	messages := []model.Message{user(scriptOf("repeat 3", "tool x {}")),
		{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, CallID: "call_1", ToolName: "x", Input: []byte(`{}`)}}},
		{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, CallID: "call_1", Text: "the door is shut", IsError: true}}}, user("wrap up")}
	res := answered(t, model.Request{Messages: messages, Final: true})
	is.Equal(joinText(res.Parts, model.PartText), "A limit was reached after 1 tool call; the last, x, failed: the door is shut")
	is.Equal(res.Finish, model.FinishStop)
	res = answered(t, model.Request{Messages: messages[:1], Final: true, OutputSchema: []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)})
	is.Equal(joinText(res.Parts, model.PartText), `{"n":0}`) // the answer still meets the schema
}

func TestSecondJSONAnswersFeedback(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req := model.Request{OutputSchema: []byte(`{"type":"object"}`), Messages: []model.Message{user(scriptOf("say Trying.", "json 1", "usage 3 4", "json {}", "usage 5 6"))}}
	res := answered(t, req)
	is.Equal(spell(res.Parts), "text:Trying. text:1") // the value is a part of its own
	is.Equal(res.Usage.InputTokens, int64(3))
	req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: res.Parts}, user("not an object"))
	for range 2 {
		res = answered(t, req)
		is.Equal(spell(res.Parts), "text:{}")
		is.Equal(res.Usage.OutputTokens, int64(6))
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: res.Parts}, user("again"))
	}
}

func TestScriptInInstructions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req := model.Request{Instructions: "You greet.\n" + scriptOf("say Hello {{input}}!"), Messages: []model.Message{user(" Bob ")}}
	res := answered(t, req)
	is.Equal(joinText(res.Parts, model.PartText), "Hello Bob!")
	req.Messages = []model.Message{user(scriptOf("say mine"))}
	res = answered(t, req)
	is.Equal(joinText(res.Parts, model.PartText), "mine") // a script in the input has priority
}

func TestFail(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]model.Error{
		"fail 429 slow down {{input}}": {Code: "429", Message: "slow down Bob", Retryable: true, Quoted: true},
		"fail 503 busy":                {Code: "503", Message: "busy", Retryable: true, Quoted: true},
		"fail 400 bad":                 {Code: "400", Message: "bad", Quoted: true},
		"fail boom":                    {Code: "boom", Message: "the script says so", Quoted: true},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			text := ""
			_, err := New().Generate(context.Background(), model.Request{Messages: []model.Message{user("Bob\n" + scriptOf("say a b", line, "say c"))}},
				func(d model.Delta) { text += d.Text })
			var me *model.Error
			is.True(errors.As(err, &me))
			is.Equal(*me, want)
			is.Equal(text, "a b") // an interrupted stream
			is.Equal(me.Error(), me.Code+": "+me.Message)
		})
	}
}

func FuzzScript(f *testing.F) {
	for _, seed := range []string{"say a\ntool x {\"a\":\"{{last}}\"}\nsay b", "repeat 3\ntool x {}", "json {\nwait 1ns", "think\nfail 429 x\r\nusage 1 2",
		"json 1\njson 2", "say {{input}}{{last}}{{", "tool x{}", "repeat 9999\nsay {{input}}", "#\n\n~~~", "wait 1e9s"} {
		f.Add(seed, "hello \"you\"", seed)
	}
	f.Fuzz(func(t *testing.T, script, input, output string) {
		steps, fault := parseScript(script)
		if fault != nil {
			if fault.Code != "script" || !strings.HasPrefix(fault.Message, "line ") {
				t.Fatalf("error %+v", fault)
			}
			return
		}
		turn := &turn{req: &model.Request{}, input: input, nextCall: 1}
		turn.done = []toolRun{{output: output, ended: true}}
		for step := 0; step <= min(len(steps), 20)+1; step++ {
			turn.answered = step
			r, err := turn.scripted(script, input)
			if err != nil {
				continue // fail, or too much text
			}
			if len(r.calls) > 1 {
				t.Fatalf("step %d has %d calls", step, len(r.calls))
			}
			checkReply(t, &r)
		}
	})
}

// checkReply plays a reply without its waits and checks that deltas add up.
func checkReply(t *testing.T, r *reply) {
	t.Helper()
	for i := range r.lines {
		r.lines[i].wait = 0
	}
	r.wait = 0
	var text strings.Builder
	parts, err := r.play(context.Background(), 1, func(d model.Delta) { text.WriteString(d.Text) })
	if err != nil {
		return
	}
	whole := ""
	for _, p := range parts {
		whole += p.Text + string(p.Input)
	}
	if whole != text.String() {
		t.Fatalf("said %q of %q", text.String(), whole)
	}
}

func FuzzFence(f *testing.F) {
	f.Add("a\n```offline\nsay x\n```\nb")
	f.Add("~~~~ offline\r\n~~~\r\n~~~~")
	f.Add("   ```offline")
	f.Fuzz(func(t *testing.T, text string) {
		script, rest, ok := cutScript(text)
		if !ok && rest != text {
			t.Fatal("text without a script was changed")
		}
		if ok && len(script)+len(rest) > len(text) {
			t.Fatal("there is more than there was")
		}
	})
}
