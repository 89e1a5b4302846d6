package runner_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
)

func saysError(status int, body string) said { return said{status: status, body: body} }

// TestRejectionsInAChain checks that the next model is asked once if a server rejects a request before it answers.
func TestRejectionsInAChain(t *testing.T) {
	t.Parallel()
	rejected := saysError(400, `{"error":{"message":"unknown field of A"}}`)
	template := saysError(500, `{"error":{"message":"Error: Jinja Exception: no tools here","type":"server_error"}}`)
	poor := saysError(400, `{"error":{"message":"Your credit balance is too low to access the API."}}`)
	fine := said{text: "fine", in: 10, out: 5}
	for name, tt := range map[string]struct {
		first, second, third said
		calls                []int // of each model
		text, says           string
	}{
		"rejected once":         {rejected, fine, fine, []int{1, 1, 0}, "fine", ""},
		"rejected twice":        {rejected, rejected, fine, []int{1, 1, 0}, "", "unknown field of A"},
		"a template":            {template, fine, fine, []int{1, 1, 0}, "fine", ""},
		"no credit, rejected":   {poor, rejected, fine, []int{1, 1, 1}, "fine", ""},
		"no credit anywhere":    {poor, poor, poor, []int{1, 1, 1}, "", "credit balance"},
		"rejected, no credit":   {rejected, poor, fine, []int{1, 1, 1}, "fine", ""},
		"a redirect":            {said{status: 307, body: "x"}, fine, fine, []int{1, 1, 0}, "fine", ""},
		"the stream is at work": {said{text: "half", broken: true, in: 10, out: 5}, fine, fine, []int{3, 1, 0}, "fine", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			servers := []*wire{}
			for _, s := range []said{tt.first, tt.second, tt.third} {
				servers = append(servers, newWire(t, func(asked) said { return s }))
			}
			f := newFixture(t, withModel(servers[0].openModel(t, "openai:a")), func(cfg *runner.Config) {
				cfg.Fallbacks = []model.Model{servers[1].openModel(t, "openai:b"), servers[2].openModel(t, "openai:c")}
			})
			turn := f.run("go")
			is.Equal(turn.OutputText, tt.text)
			if tt.says != "" {
				is.Equal(turn.Status, store.Failed)
				is.True(strings.Contains(turn.Failure.Message, tt.says))
				is.True(!turn.Failure.Retryable)
			}
			for i, n := range tt.calls {
				is.Equal(len(servers[i].seen()), n)
			}
		})
	}
}

// TestTemplateFailureIsNoOutage checks that a template that fails for good ends the turn at once, with its words.
func TestTemplateFailureIsNoOutage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWire(t, func(asked) said {
		return saysError(500, `{"error":{"code":500,"message":"Error: Jinja Exception: Unknown filter tojson2","type":"server_error"}}`)
	})
	turn := newFixture(t, withModel(w.openModel(t, "openai:m"))).run("go")
	is.Equal(turn.Failure.Code, "500")
	is.True(strings.Contains(turn.Failure.Message, "Unknown filter tojson2"))
	is.Equal(len(w.seen()), 1)
}

// TestModelIsToldItsMistake checks that the model reads why the server could not read its tool call.
func TestModelIsToldItsMistake(t *testing.T) {
	t.Parallel()
	failed := saysError(400, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","code":"tool_use_failed","failed_generation":"<function=list_files{</function>"}}`)
	for name, tt := range map[string]struct {
		wrong int
		code  string
		calls int
	}{"once": {1, "", 2}, "three times": {3, "", 4}, "always": {99, "tool_call_as_text", 4}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				if a.number < tt.wrong {
					return failed
				}
				return said{text: "fine", in: 10, out: 5}
			})
			turn := newFixture(t, withModel(w.openModel(t, "openai:m"))).run("go")
			seen := w.seen()
			is.Equal(len(seen), tt.calls)
			last := seen[len(seen)-1].last()
			is.Equal(last.role, "user")
			is.True(strings.Contains(last.text, "<function=list_files{</function>"))
			if tt.code == "" {
				is.Equal(turn.OutputText, "fine")
				return
			}
			is.Equal(turn.Failure.Code, tt.code)
			is.Equal(turn.OutputText, "") // the broken call is no answer
		})
	}
}

// TestWindowIsLearned checks that the window in a refusal counts for later calls and turns.
func TestWindowIsLearned(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const window = 8192
	w := newWire(t, func(a asked) said {
		if prompt := a.bytes / 4; prompt+a.maxTokens > window {
			return saysError(400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 20000 tokens (`+
				`3000 in the messages, 17000 in the completion). Please reduce the length of the messages or completion.","code":400}`)
		}
		return said{text: "fine", in: int64(a.bytes / 4), out: 5}
	})
	f := newFixture(t, withModel(w.openModel(t, "openai:m")))
	is.Equal(f.run("go").OutputText, "fine")
	first := len(w.seen())
	is.True(first == 2) // the same request with fewer tokens for the answer
	is.Equal(w.seen()[1].maxTokens, window-3000)
	is.Equal(f.run("go").OutputText, "fine")
	is.Equal(len(w.seen()), first+1) // fits at once
}
