package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model/textcall"
)

// failedCalls reads the text of the model in an error of a server, as a failed call is read.
func failedCalls(body string) (failed string, calls []textcall.Call, whole bool) {
	r := &apiError{status: 400}
	r.readBody("/chat/completions", nil, []byte(body))
	failed = withoutThinking(r.failed)
	tools := []textcall.Tool{{Name: "f"}}
	calls, _ = textcall.Find(failed, tools)
	return failed, calls, textcall.Whole(failed, tools)
}

// TestGeneration checks the text of the model in errors of servers.
func TestGeneration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"Groq":               {`{"error":{"message":"m","failed_generation":"f{}"}}`, "f{}"},
		"Groq, thinking":     {`{"error":{"message":"m","failed_generation":"<think>a</think>f{}"}}`, "f{}"},
		"within a message":   {`{"error":{"message":"Groq: {\"failed_generation\": \"a\\\"b\"}"}}`, `a"b`},
		"metadata":           {`{"error":{"message":"m","metadata":{"raw":"{\"failed_generation\":\"x\"}"}}}`, "x"},
		"llama.cpp":          {`{"error":{"message":"Failed to parse input at pos 12: <tool_call>\nx"}}`, "<tool_call>\nx"},
		"Ollama":             {`{"error":"error parsing tool call: raw='{\"a\": ', err=unexpected end"}`, `{"a": `},
		"Ollama, a mark":     {`{"error":"error parsing tool call: raw='it', err=', err=x"}`, "it', err="},
		"no JSON":            {"Failed to parse input at pos 0: f{}", "f{}"},
		"no JSON, longer":    {"Failed to parse input at pos 0: " + strings.Repeat("a", maxErrorBody+9), strings.Repeat("a", maxErrorBody) + "…"},
		"a cut text":         {`{"error":{"message":"\"failed_generation\": \"a"}}`, ""},
		"another type":       {`{"error":{"message":"m","failed_generation":5}}`, "5"},
		"nothing":            {`{"error":{"message":"m","failed_generation":null}}`, ""},
		"a word about it":    {`{"error":{"message":"see failed_generation"}}`, ""},
		"longer than limits": {`{"error":{"message":"m","failed_generation":"` + strings.Repeat("a", maxErrorBody+9) + `"}}`, strings.Repeat("a", maxErrorBody) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			failed, _, _ := failedCalls(tt.body)
			is.New(t).Equal(failed, tt.want)
		})
	}
}

func FuzzGeneration(f *testing.F) {
	for _, body := range []string{`{"error":{"message":"m","failed_generation":"<function=f{}</function>"}}`,
		`{"error":{"message":"x {\"failed_generation\": \"f(a=1)\"}"}}`, `{"error":"error parsing tool call: raw='f{', err=x"}`,
		"Failed to parse input at pos 0: <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		failed, calls, _ := failedCalls(body)
		if len(failed) > maxErrorBody+len("…") {
			t.Fatal("the text has no limit")
		}
		for _, c := range calls {
			if c.Name != "f" || !json.Valid(c.Arguments) {
				t.Fatalf("%q became %+v", failed, c)
			}
		}
	})
}
