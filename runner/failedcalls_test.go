package runner_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/tool"
	"journeyman/store"
)

// failedWith is Groq's error for a call that it could not read.
func failedWith(generation string) said {
	raw, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
		"type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": generation}})
	return saysError(400, string(raw))
}

// saysInMessage is an error whose message contains the text of the model.
func saysInMessage(status int, message string) said {
	raw, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "code": status}})
	return saysError(status, string(raw))
}

// TestFailedCallsAreMade checks that calls that a server could not read, and has returned as text, are made if they
// are complete and match their tools. All others are told to the model.
func TestFailedCallsAreMade(t *testing.T) {
	t.Parallel()
	const arguments = `{"path": "a.txt", "content": "hello"}`
	proxied, _ := json.Marshal(map[string]any{"error": map[string]any{"code": "tool_use_failed", "failed_generation": "<function=write_file=" + arguments + "</function>"}})
	for name, tt := range map[string]struct {
		provider string
		fails    said
		made     bool
	}{
		"Groq, Llama":               {"openai", failedWith("<function=write_file" + arguments + "</function>"), true},
		"Groq, closed":              {"openai", failedWith("<function=write_file>" + arguments + "</function>"), true},
		"Groq, equals sign":         {"openai", failedWith("<function=write_file=" + arguments + "</function>"), true},
		"Groq, no beginning":        {"openai", failedWith("write_file" + arguments + "</function>"), true},
		"Groq, gpt-oss":             {"openai", failedWith(`{"name": "write_file", "arguments": ` + arguments + `}`), true},
		"Groq, thinking":            {"openai", failedWith("<think>I write it.</think><tool_call>{\"name\": \"write_file\", \"arguments\": " + arguments + "}</tool_call>"), true},
		"Groq, wrong types":         {"openai", failedWith(`<function=list_files{"path": ".", "depth": "2"}</function>`), true},
		"OpenRouter before Groq":    {"openai", saysError(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":`+quoted(string(proxied))+`}}}`), true},
		"LiteLLM before Groq":       {"openai", saysInMessage(400, "litellm.BadRequestError: GroqException - "+string(proxied)), true},
		"llama.cpp":                 {"openai", saysInMessage(500, "Failed to parse input at pos 0: <tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>"), true},
		"llama.cpp, after thinking": {"openai", saysInMessage(500, "Failed to parse input at pos 144: <|tool_call_start|>[write_file(path='a.txt', content='hello')]<|tool_call_end|>"), true},
		"llama.cpp, messages":       {"anthropic", saysInMessage(500, "Failed to parse input at pos 0: <tool_call>{\"name\": \"write_file\", \"arguments\": "+arguments+"}</tool_call>"), true},
		"llama.cpp, responses":      {"responses", saysInMessage(500, "Failed to parse input at pos 0: <tool_call>{\"name\": \"write_file\", \"arguments\": "+arguments+"}</tool_call>"), true},
		"Ollama":                    {"ollama", saysError(500, `{"error":`+quoted(`error parsing tool call: raw='{"name":"write_file","parameters":`+arguments+`}<|call|>', err=invalid character '<' after top-level value`)+`}`), true},

		"cut":                       {"openai", failedWith(`<function=write_file{"path": "a.txt", "content": "hel`), false},
		"cut after the JSON":        {"openai", failedWith(`<tool_call>{"name": "write_file", "arguments": ` + arguments + `}`), false},
		"cut element":               {"openai", failedWith("<function=write_file><parameter=path>a.txt</parameter><parameter=content>hel"), false},
		"cut by llama.cpp's limit":  {"openai", saysInMessage(500, "Failed to parse input at pos 0: <tool_call>\n<function=write_file>\n<parameter=path>\na"), false},
		"text beside it":            {"openai", failedWith("I write it now. <function=write_file" + arguments + "</function> Done."), false},
		"unknown tool":              {"openai", failedWith(`<function=fly{}</function>`), false},
		"missing argument":          {"openai", failedWith(`<function=write_file{"content": "hello"}</function>`), false},
		"wrong argument":            {"openai", failedWith(`<function=write_file{"path": ["a"], "content": "hello"}</function>`), false},
		"only arguments, of Ollama": {"ollama", saysError(500, `{"error":`+quoted("error parsing tool call: raw='"+arguments+"}', err=invalid character '}' after top-level value")+`}`), false},
		"empty":                     {"openai", failedWith(""), false},
		"very long":                 {"openai", failedWith(`<function=write_file{"path": "a.txt", "content": "` + strings.Repeat("long ", 20_000) + `"}</function>`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				if a.number == 0 {
					return tt.fails
				}
				return said{text: "fine", in: 10, out: 5}
			})
			f := newFixture(t, withModel(w.openModel(t, tt.provider+":m")), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
			turn := f.run("Write it.")
			is.Equal([]any{turn.Status, turn.OutputText}, []any{store.Completed, "fine"})
			steps := f.journal(turn)
			is.Equal(len(steps), 2)
			is.Equal(len(steps[0].Calls), map[bool]int{true: 1}[tt.made])
			is.Equal(steps[0].Feedback != "", !tt.made)
			if tt.made {
				is.Equal(steps[0].Calls[0].State, store.CallCompleted)
				is.True(w.seen()[1].has("called")) // the history has a real call
			}
		})
	}
}

// TestCutTextCallsAreNotMade checks that a call in the text that the output limit has cut before its end is not made,
// also if its JSON is complete.
func TestCutTextCallsAreNotMade(t *testing.T) {
	t.Parallel()
	const open = `<tool_call>{"name": "write_file", "arguments": {"path": "a.txt", "content": "hello"}}`
	for finish, made := range map[string]int{"length": 0, "": 1} {
		for _, provider := range wireFormats {
			t.Run(finish+" "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := newWire(t, func(a asked) said {
					if a.number == 0 {
						return said{text: open, finish: finish, in: 10, out: 5}
					}
					return said{text: "fine", in: 10, out: 5}
				})
				f := newFixture(t, withModel(w.openModel(t, provider+":m")), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
				turn := f.run("Write it.")
				is.Equal([]any{turn.Status, turn.OutputText}, []any{store.Completed, "fine"})
				is.Equal(len(f.journal(turn)[0].Calls), made)
			})
		}
	}
}
