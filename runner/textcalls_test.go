package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/workers"
)

// textWorker returns a fixture with tools, whose model of a provider answers with the texts in order.
func textWorker(t *testing.T, provider string, says ...string) (*fixture, *wire) {
	t.Helper()
	w := newWire(t, func(a asked) said { return said{text: says[min(a.number, len(says)-1)], in: 10, out: 5} })
	return newFixture(t, withModel(w.openModel(t, provider+":m")), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) }), w
}

const (
	hermesWrite = "<think>I write it.</think>\n<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"hello\"}}\n</tool_call>"
	badCall     = "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \n</tool_call>"
)

// TestTextCallsAreMade lets models of every provider write calls as text. They are made like real calls.
func TestTextCallsAreMade(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Hermes":  hermesWrite,
		"Llama":   `{"name": "write_file", "parameters": {"path": "a.txt", "content": "hello"}}`,
		"Mistral": `[TOOL_CALLS]write_file[ARGS]{"path": "a.txt", "content": "hello"}`,
		"harmony": `<|channel|>analysis<|message|>I write it.<|end|><|start|>assistant<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>{"path": "a.txt", "content": "hello"}<|call|>`,
		"Qwen":    "<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>",
	} {
		for _, provider := range wireFormats {
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				f, w := textWorker(t, provider, text, "I wrote it.")
				turn := f.run("Write it.")
				is.Equal(turn.Status, store.Completed)
				is.Equal(turn.OutputText, "I wrote it.")
				steps := f.journal(turn)
				is.Equal(len(steps), 2)
				is.Equal(textOfSteps(steps), "I wrote it.") // the call is no text
				is.Equal(steps[0].ToolCalls()[0].ToolName, "write_file")
				is.Equal(steps[0].Calls[0].State, store.CallCompleted)
				is.True(w.seen()[1].has("called write_file")) // the history has a real call
			})
		}
	}
}

// TestBrokenTextCallsAreTold checks that the model is told three times in a row, and that the turn then fails.
func TestBrokenTextCallsAreTold(t *testing.T) {
	t.Parallel()
	unknown := `<tool_call>{"name": "fly", "arguments": {}}</tool_call>`
	beside := "I write it now.\n" + hermesWrite[strings.Index(hermesWrite, "<tool_call>"):]
	for name, tt := range map[string]struct {
		says   []string
		code   string
		steps  int64
		output string
		tells  string
	}{
		"once":            {[]string{badCall, hermesWrite, "Done."}, "", 3, "Done.", "not complete or not valid"},
		"unknown tool":    {[]string{unknown, "Done."}, "", 2, "Done.", `there is no tool "fly"`},
		"beside text":     {[]string{beside, "Done."}, "", 2, "Done.", "other text stands beside it"},
		"three times":     {[]string{badCall, unknown, beside, "Done."}, "", 4, "Done.", "other text"},
		"always":          {[]string{badCall}, "tool_call_as_text", 4, "", "not complete or not valid"},
		"not in a row":    {[]string{badCall, badCall, hermesWrite, badCall, badCall, badCall, "Done."}, "", 7, "Done.", "not complete"},
		"after an answer": {[]string{hermesWrite, badCall}, "tool_call_as_text", 5, "", "not complete"},
	} {
		for i, provider := range wireFormats {
			if i > 0 && name != "always" {
				continue
			}
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				f, w := textWorker(t, provider, tt.says...)
				turn := f.run("Write it.")
				is.Equal(turn.Usage.Steps, tt.steps)
				is.Equal(turn.OutputText, tt.output) // a call is no answer
				if tt.code != "" {
					is.Equal(turn.Status, store.Failed)
					is.Equal(turn.Failure.Code, tt.code)
					is.Equal(turn.Failure.Message, "the model's tool call could not be made, 4 times in a row: its JSON is not complete or not valid")
				} else {
					is.Equal(turn.Status, store.Completed)
				}
				told := false
				for _, a := range w.seen() {
					told = told || strings.Contains(a.last().text, tt.tells)
				}
				is.True(told)
			})
		}
	}
}

// TestToldTextCallsAreCountedAcrossCrashes kills the process before each call of a model that writes broken calls.
func TestToldTextCallsAreCountedAcrossCrashes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	death := make(chan bool, 1)
	var f *fixture
	w := newWire(t, func(a asked) said {
		if a.number == 2 || a.number == 4 {
			death <- true
			return said{hangs: true}
		}
		return said{text: badCall, in: 10, out: 5}
	})
	f = newFixture(t, withModel(w.openModel(t, "openai:m")))
	turn := f.accept("Write it.")
	for range 2 {
		<-death
		f = f.crash()
		f.start()
	}
	turn = f.wait(turn)
	is.Equal(turn.Failure.Code, "tool_call_as_text")
	is.Equal(turn.Usage.Steps, int64(4)) // told three times, over three processes
}

// TestAnswersThatShowCalls checks that answers with examples and with JSON stay answers.
func TestAnswersThatShowCalls(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"example": "A call looks so:\n```xml\n<tool_call>{\"name\":\"write_file\",\"arguments\":{}}</tool_call>\n```\nThat is all.",
		"JSON":    `{"name":"Ada","age":36}`,
		"mention": "The mark <tool_call> begins a call.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, _ := textWorker(t, "openai", text)
			turn := f.run("Explain.")
			is.Equal(turn.OutputText, text)
			is.Equal(turn.Usage.Steps, int64(1))
		})
	}
	is := is.New(t)
	const output = `{"name":"write_file","arguments":{"path":"a.txt","content":"b"}}`
	f, _ := textWorker(t, "openai", output)
	f.worker = f.newWorker(workers.NewWorker{Title: "Caller", OutputSchema: json.RawMessage(
		`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name","arguments"]}`)})
	turn := f.run("Which call?")
	is.Equal(string(turn.StructuredOutput), output) // the schema describes a call
}

// TestCutTextCall has calls that the output limit cuts off.
func TestCutTextCall(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"in the content": "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"abc",
		"without a mark": `{"name": "write_file", "arguments": {"path": "a.txt", "content": "abc`,
		"in a value":     "<tool_call>write_file<arg_key>path</arg_key><arg_value>a.txt</arg_value><arg_key>content</arg_key><arg_value>abc",
		"after a value":  "<tool_call>write_file<arg_key>path</arg_key><arg_value>a.txt</arg_value>",
		"after the name": "<tool_call>write_file",
		"in the mark":    "<tool_c",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				if a.number == 0 {
					return said{text: cut, finish: "length", in: 10, out: 5}
				}
				if a.number == 1 && cut == "<tool_c" {
					return said{text: "all>{bad", in: 10, out: 5}
				}
				return said{text: "Done.", in: 10, out: 5}
			})
			f := newFixture(t, withModel(w.openModel(t, "openai:m")), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
			turn := f.run("Write it.")
			is.Equal(turn.OutputText, "Done.")
			told := w.seen()[len(w.seen())-1].last().text
			is.True(strings.Contains(told, "write less at once") || strings.Contains(told, "cut off at the output limit"))
			is.Equal(f.run("And now?", turn.TaskID).OutputText, "Done.")
			is.Equal(assistantTexts(w.seen()[len(w.seen())-1]), []string{"Done."}) // no later turn has the call
		})
	}
}

// TestTextCallAtTheEndOfABudget has a model that makes a call in its last call, which allows no tools. The words before
// it are the answer, also those of an answer that was cut off and continued, and all that the next turn has of it.
func TestTextCallAtTheEndOfABudget(t *testing.T) {
	t.Parallel()
	call := said{text: hermesWrite, in: 10, out: 5}
	unread := said{status: 400, body: `{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<function=x"}}`}
	cut := said{text: "It is 4, because", finish: "length", in: 10, out: 5}
	for name, tt := range map[string]struct {
		before, last  said
		output, later string
	}{
		"alone":              {call, call, "", "(no answer)"},
		"after words":        {call, said{text: "It is 4.\n" + badCall, in: 10, out: 5}, "It is 4.\n", "It is 4.\n"},
		"after a cut answer": {cut, call, "It is 4, because", "It is 4, because"},
		"cut, broken":        {cut, said{text: badCall, in: 10, out: 5}, "It is 4, because", "It is 4, because"},
		"cut, unread":        {cut, unread, "It is 4, because", "It is 4, because"},
		"cut, with words":    {cut, said{text: " 2+2.\n" + badCall, in: 10, out: 5}, "It is 4, because 2+2.\n", " 2+2.\n"},
		"unread":             {call, unread, "", "(no answer)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				return []said{call, tt.before, tt.last, {text: "Fine.", in: 10, out: 5}}[min(a.number, 3)]
			})
			f := newFixture(t, withModel(w.openModel(t, "openai:m")), withBudget(runner.Limits{Steps: 2}),
				func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
			turn := f.run("Write it.")
			is.Equal(turn.IncompleteReason, store.ReasonBudget)
			is.Equal(turn.OutputText, tt.output)
			is.Equal(f.run("And now?", turn.TaskID).OutputText, "Fine.")
			texts := assistantTexts(w.seen()[3])
			is.Equal(texts[len(texts)-1], tt.later)
		})
	}
}

// TestOllamaCannotReadACall checks that Ollama's error about a call is the mistake of the model, and no outage.
func TestOllamaCannotReadACall(t *testing.T) {
	t.Parallel()
	const failure = `{"error":"error parsing tool call: raw='{\"path\": ', err=unexpected end of JSON input"}`
	for name, wrong := range map[string]said{
		"status 500":    {status: 500, body: failure},
		"in the stream": {status: 200, body: `{"message":{"role":"assistant","content":"I write"},"done":false}` + "\n" + failure + "\n"},
	} {
		for times, code := range map[int]string{1: "", 99: "tool_call_as_text"} {
			t.Run(fmt.Sprint(name, times), func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := newWire(t, func(a asked) said {
					if a.number < times {
						return wrong
					}
					return said{text: "Done.", in: 10, out: 5}
				})
				f := newFixture(t, withModel(w.openModel(t, "ollama:m")))
				turn := f.run("Write it.")
				if code != "" {
					is.Equal(turn.Failure.Code, code)
					is.Equal(len(w.seen()), 4) // asked once and told three times
					return
				}
				is.Equal(turn.OutputText, "Done.")
				is.True(strings.Contains(w.seen()[1].last().text, "error parsing tool call"))
			})
		}
	}
}
