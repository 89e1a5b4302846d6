package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

func TestToolsInSequence(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.run(script(`think let me see`, `tool write_file {"path":"a.txt","content":"one"}`,
		`tool read_file {"path":"a.txt"}`, `say It says {{last}}`))
	is.Equal(turn.Status, store.Completed)
	is.True(strings.Contains(turn.OutputText, "one"))
	is.Equal(turn.Usage.Steps, int64(3))
	ordertest.Above(is, turn.Usage.Cost(), 0) // the turn cost nothing
	is.Equal(turn.Model, "offline")
	steps := f.journal(turn)
	is.Equal(len(steps), 3)
	is.Equal(steps[0].Calls[0].State, store.CallCompleted)
	is.Equal(steps[1].Calls[0].State, store.CallCompleted)
}

func TestOutputText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script []string
		want   string
	}{
		"text after the last call":        {[]string{`say before`, `tool update_plan {"items":[]}`, `say after`}, "after"},
		"last text where none follows":    {[]string{`say early`, `tool update_plan {"items":[]}`, `say late`, `tool update_plan {"items":[]}`, `fail 400 no`}, "late"},
		"text before the call of a step":  {[]string{`say only`, `tool update_plan {"items":[]}`, `fail 400 no`}, "only"},
		"reasoning is not the answer":     {[]string{`think hm`, `say yes`}, "yes"},
		"nothing":                         {[]string{`fail 400 no`}, ""},
		"several lines":                   {[]string{`say a`, `say b`}, "a\nb"},
		"what a failed call had produced": {[]string{`say half an`, `fail 400 no`}, "half an"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			is.Equal(f.run(script(tt.script...)).OutputText, tt.want)
		})
	}
}

func TestHostileCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		name, input string
		says        string // text of the tool result that the model gets
	}{
		"unknown tool":        {"nope", `{}`, `there is no tool "nope"; the nearest is "`},
		"almost a tool":       {"ecko", `{}`, `there is no tool "ecko"; the nearest is "echo"`},
		"not JSON":            {"echo", `{"a":`, "not a JSON object"},
		"not an object":       {"echo", `[1]`, "not a JSON object"},
		"a string":            {"echo", `"{}"`, "{}"},
		"more than an object": {"echo", `{} {}`, "after top-level value at character 4"},
		"cut":                 {"echo", `{"a":[1,`, "unexpected end of JSON input at character 8, near"},
		"a comma too much":    {"echo", `{"a":[1,],}`, `{"a":[1]}`},
		"a fence":             {"echo", "```json\n{\"a\":1}\n```", `{"a":1}`},
		"a raw line break":    {"echo", "{\"a\":\"b\nc\"}", `{"a":"b\nc"}`},
		"encoded twice":       {"echo", `"{\"a\":1}"`, `{"a":1}`},
		"null":                {"echo", `null`, `{}`},
		"__proto__":           {"echo", `{"a":{"__proto__":1}}`, "key __proto__"},
		"escaped __proto__":   {"echo", `{"a":[{"\u005f_proto__":1}]}`, "key __proto__"},
		"prototype":           {"echo", `{"constructor":{"prototype":{}}}`, "key prototype"},
		"a number too large":  {"echo", `{"a":1e999}`, "not a JSON object"},
		"no UTF-8":            {"echo", "{\"a\":\xff\"}", "not a JSON object"},
		"empty":               {"echo", ``, "{}"},
		"spaces":              {"echo", " \n", "{}"},
		"a harmless key":      {"echo", `{"constructor":"Ferrari"}`, "Ferrari"},
		"broken UTF-8 within": {"echo", "{\"a\":\"\xff\"}", "\uFFFD"},
		"markup":              {"echo", "{ \"a\" : \"<b>&\u2028\" }", `\u003cb\u003e\u0026\u2028`},
		"no name":             {"", `{}`, `there is no tool "unknown"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var count []model.Part // the results of both calls
			m := asksThen(func(req model.Request) string {
				count = req.Messages[len(req.Messages)-1].Parts
				return "done"
			}, tt.name, tt.input, "echo", `{"second":true}`)
			echo := fakeTool{name: "echo", fn: func(_ context.Context, _ tool.Host, in json.RawMessage) (json.RawMessage, error) { return in, nil }}
			f := newFixture(t, withModel(m), withTools(echo))
			turn := f.accept("go")
			built := f.read(f.Streams.Turn(turn))
			is.Equal(f.wait(turn).Status, store.Completed)
			is.Equal(len(count), 2)
			is.True(count[0].CallID != "")                     // the call has no ID
			is.True(count[0].CallID != count[1].CallID)        // both calls have the same ID
			is.True(strings.Contains(count[1].Text, "second")) // the second call's result is not its own
			if !strings.Contains(count[0].Text, tt.says) {
				t.Errorf("the model hears %q, want %q", count[0].Text, tt.says)
			}
			is.Equal(built.messages(), f.messages(turn)[1:]) // the message that the reader built
		})
	}
}

func TestToolOutcomes(t *testing.T) {
	t.Parallel()
	big := json.RawMessage(`"` + strings.Repeat("x", 300<<10) + `"`)
	for name, tt := range map[string]struct {
		out    json.RawMessage
		err    error
		panics bool
		says   string
		ends   string // the failure's code, if the turn ends
	}{
		"too large":      {out: big, says: "more than the 262144 a tool may give"},
		"panic":          {panics: true, says: "the tool failed"},
		"its own error":  {err: tool.Errorf("try another"), says: "try another"},
		"another error":  {err: errOutside, ends: "internal"},
		"not JSON":       {out: json.RawMessage(`{`), ends: "internal"},
		"nothing":        {ends: "internal"},
		"null":           {out: json.RawMessage(`null`), says: "null"},
		"hostile keys":   {out: json.RawMessage(`{"__proto__":1}`), says: `{"__proto__":1}`},
		"broken UTF-8":   {out: json.RawMessage("\"\xff\""), says: "\uFFFD"},
		"an error twice": {err: tool.Errorf("\xff"), says: "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := asksThen(func(req model.Request) string { return textOf(req.Messages[len(req.Messages)-1]) }, "it", `{}`)
			it := fakeTool{name: "it", fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
				if tt.panics {
					panic("boom")
				}
				return tt.out, tt.err
			}}
			f := newFixture(t, withModel(m), withTools(it))
			turn := f.accept("go")
			built := f.read(f.Streams.Turn(turn))
			turn = f.wait(turn)
			is.Equal(built.messages(), f.messages(turn)[1:])
			if tt.ends != "" {
				is.Equal(turn.Failure.Code, tt.ends)
				is.True(!strings.Contains(turn.Failure.Message, "outside")) // clients see no internal error
				return
			}
			if !strings.Contains(turn.OutputText, tt.says) {
				t.Errorf("the model heard %.80q, want %q", turn.OutputText, tt.says)
			}
		})
	}
}

func TestModelPanics(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withModel(&fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if textOf(req.Messages[0]) == "panic" {
			panic("boom")
		}
		return answer(emit, "fine"), nil
	}}))
	turn := f.run("panic")
	is.Equal(turn.Failure.Code, "internal")
	is.Equal(f.run("work").OutputText, "fine") // other turns still run
}

func TestFollowUp(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if stepOf(req) == 0 && strings.HasPrefix(textOf(req.Messages[req.TurnStart]), "use") {
			return calls(emit, len(req.Messages), "it", `{"n":1}`), nil
		}
		return answer(emit, "answer to "+textOf(req.Messages[req.TurnStart])), nil
	}}
	f := newFixture(t, withModel(m), withTools(gives("it", `{"r":2}`)))
	first := f.run("use it")
	second := f.run("and now", first.TaskID)
	is.Equal(second.OutputText, "answer to and now")
	last := m.seen()[2]
	var roles []string
	for _, msg := range last.Messages {
		roles = append(roles, string(msg.Role))
	}
	is.Equal(strings.Join(roles, " "), "user assistant tool assistant user")
	is.Equal(last.TurnStart, 4)
	is.Equal(last.Messages[2].Parts[0].Text, `{"r":2}`)
	is.Equal(last.Messages[3].Parts[0].Text, "answer to use it")
}

func TestFailedTurnInHistory(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		if len(req.Messages) == 1 {
			return model.Response{}, &model.Error{Code: "400", Message: "no such thing"}
		}
		return answer(emit, "ok"), nil
	}}
	f := newFixture(t, withModel(m))
	first := f.run("one")
	is.Equal(first.Failure.Message, "no such thing")
	is.Equal(f.run("two", first.TaskID).OutputText, "ok")
	count := m.seen()[1].Messages
	is.Equal(count[1].Role, model.RoleAssistant) // models expect an answer between two instructions
	is.True(strings.Contains(count[1].Parts[0].Text, "no such thing"))
}

func TestInstructionsSnapshot(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	gate := make(chan struct{})
	entered := make(chan struct{}, 3)
	m := &fakeModel{fn: func(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		entered <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return answer(emit, req.Instructions), ctx.Err()
	}}
	f := newFixture(t, withModel(m))
	running := f.accept("one")
	queued := f.accept("two", running.TaskID)
	until(t, entered, "the first turn runs")
	changed := "New."
	_, err := f.store.Workers.UpdateWorker(f.ctx(), f.owner, f.worker.ID, workers.Patch{Instructions: &changed})
	is.NoErr(err)
	later := f.accept("three", running.TaskID)
	close(gate)
	is.Equal(f.wait(running).OutputText, "Help.")
	is.Equal(f.wait(queued).OutputText, "Help.") // the turn was accepted before the change
	is.Equal(f.wait(later).OutputText, "New.")
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var got []string
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		for _, msg := range req.Messages {
			for _, p := range msg.Parts {
				if p.Type == model.PartFile {
					b, err := p.Open()
					if err != nil {
						return model.Response{}, err
					}
					got = append(got, p.Path+" "+p.MediaType+" "+string(b))
				}
			}
		}
		return answer(emit, "ok"), nil
	}}
	f := newFixture(t, withModel(m))
	n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "read", Budget: store.BudgetStandard}
	is.NoErr(f.Attach(f.ctx(), &n, []store.File{f.kept("../../notes.txt", "first"), f.kept("notes.txt", "second")}))
	turn := f.wait(f.acceptTurn(n))
	is.Equal(len(got), 2)
	is.True(strings.HasPrefix(got[0], "notes.txt text/plain"))
	is.True(strings.HasSuffix(got[0], "first"))
	is.True(strings.HasPrefix(got[1], "notes (2).txt"))
	got = nil
	f.run("again", turn.TaskID)
	is.Equal(len(got), 2) // the next turn's prompt names them too
	user := f.messages(turn)[0].(map[string]any)["parts"].([]any)
	is.Equal(len(user), 3)
	is.Equal(user[2].(map[string]any)["filename"], "notes (2).txt")

	_, err := f.Keep(t.Context(), f.owner.OrganizationID, "big", bytes.NewReader(make([]byte, 101)), 100)
	is.True(db.IsKind(err, db.TooLarge))

	for range 2 {
		n.Attachments = nil
		is.NoErr(f.Attach(f.ctx(), &n, []store.File{f.kept("x.txt", "x")}))
		is.Equal(n.Attachments[0].Path, "x.txt") // the name is free again
		f.Detach(&n)
	}
}

func TestDescribeWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	long := strings.Repeat("ä", workers.MaxTitle+5)
	f := newFixture(t, withModel(says("```json\n{\"instructions\":\"Do it.\",\"title\":\""+long+"\",\"summary\":\"a\\nb\"}\n```", "no JSON", `{"instructions":" "}`)))
	d, err := f.DescribeWorker(f.ctx(), f.owner, "someone who does it")
	is.NoErr(err)
	is.Equal(d.Instructions, "Do it.")
	is.Equal(len([]rune(d.Title)), workers.MaxTitle)
	is.Equal(d.Summary, "a b")
	for range 2 {
		_, err = f.DescribeWorker(f.ctx(), f.owner, "x")
		is.True(db.IsKind(err, db.Busy))
	}
	for _, tt := range []struct {
		failure model.Error
		kind    db.Kind
	}{
		{model.Error{Code: "401", Message: "bad key"}, db.Upstream},
		{model.Error{Code: model.CodeUnavailable, Message: "bad key"}, db.Upstream},
		{model.Error{Code: "503", Message: "bad key", Retryable: true, RetryAfter: time.Minute}, db.Busy},
	} {
		failing := newFixture(t, withModel(&fakeModel{fn: func(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
			return model.Response{}, &tt.failure
		}}))
		_, err = failing.DescribeWorker(failing.ctx(), failing.owner, "x")
		refusal, _ := errors.AsType[*db.Error](err)
		is.Equal([]any{refusal.Kind, refusal.RetryAfter}, []any{tt.kind, tt.failure.RetryAfter})
		is.True(strings.Contains(refusal.Message, tt.failure.Code+": bad key"))
	}
}

func TestPublishedFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.run(script(`tool write_file {"path":"a b/ü.txt","content":"one"}`, `tool publish_file {"path":"a b/ü.txt"}`,
		`tool write_file {"path":"a b/ü.txt","content":"two"}`, `tool publish_file {"path":"a b/ü.txt"}`, `say done`))
	files, err := f.store.FilesByTask(f.ctx(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2)
	newest := store.PublishedFiles(files)
	is.Equal(len(newest), 1)
	is.Equal(newest[0].SHA256, files[1].SHA256)
	url := f.FileURL(newest[0])
	is.True(strings.HasPrefix(url, "http://jm.test/api/workers/"+f.worker.ID+"/files/a%20b/%C3%BC.txt?v="))
}

// TestPublishTooLarge publishes a file above the limit. The model gets the reason, and the turn goes
// on.
func TestPublishTooLarge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	dir := store.FolderPath(f.store.Dir(), store.Folder{WorkerID: f.worker.ID})
	is.NoErr(os.MkdirAll(dir, 0o700))
	is.NoErr(os.WriteFile(filepath.Join(dir, "large.bin"), nil, 0o600))
	is.NoErr(os.Truncate(filepath.Join(dir, "large.bin"), runner.MaxFileSize+1))
	turn := f.run(script(`tool publish_file {"path":"large.bin"}`, `say {{last}}`))
	is.True(turn.Failure == nil)
	is.True(strings.Contains(turn.OutputText, `"large.bin" cannot be published: a published file has at most 26214400 bytes`))
}

// TestLoopEnds uses models that make the same call, or the same two or three calls, again and again,
// with each of the budgets.
func TestLoopEnds(t *testing.T) {
	t.Parallel()
	budgets := runner.DefaultBudgets()
	for budget, ends := range map[store.Budget][3]int64{store.BudgetLow: {8, 0, 0}, store.BudgetStandard: {40, 40, 39},
		store.BudgetHigh: {50, 100, 150}, store.BudgetUnlimited: {50, 100, 150}} {
		for i, steps := range ends {
			t.Run(fmt.Sprint(budget, i+1), func(t *testing.T) {
				t.Parallel()
				loopEnds(t, budgets[budget], i+1, steps)
			})
		}
	}
}

// loopEnds checks that the model gets a hint, and that its turn ends after the given number of steps.
// The number is 0 for a turn whose budget ends first.
func loopEnds(t *testing.T, limits runner.Limits, size int, steps int64) {
	is := is.New(t)
	var hints atomic.Int64
	m := &fakeModel{fn: func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
		for _, msg := range req.Messages {
			if p := msg.Parts[0]; strings.Contains(p.Text, " made 5 times in a row") {
				hints.Add(1)
			}
		}
		if req.Final {
			emit(model.Delta{Type: model.PartText, Text: "the end"})
			return model.Response{Finish: model.FinishStop}, nil
		}
		return calls(emit, stepOf(req), "it", fmt.Sprintf(`{"n":%d}`, stepOf(req)%size)), nil
	}}
	f := newFixture(t, withModel(m), withTools(gives("it", `1`)), withBudget(runner.Limits{Steps: limits.Steps}))
	turn := f.run("go")
	if steps == 0 {
		is.Equal(turn.Failure, nil)
		return
	}
	is.Equal(turn.Failure.Code, "loop")
	is.Equal(turn.Usage.Steps, steps)
	ordertest.Above(is, hints.Load(), 0) // the model got a hint before
}
