package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A run is a task of a worker: its instruction, and the results of its only tool.
type run struct {
	worker, task, instructions, ask string
	results                         []string
	date                            string // in the service's text, which changes every day
}

// request returns the request for the step after the given answers.
func (r run) request(answers []Response) Request {
	req := Request{Instructions: r.instructions, Place: Place{Worker: r.worker, Task: r.task, Step: int64(len(answers))}}
	req.Messages = []Message{{Role: RoleUser, Parts: []Part{{Type: PartText, Text: "Today is " + r.date, Aside: true}, {Type: PartText, Text: r.ask}}}}
	for i, a := range answers {
		id := a.Parts[0].CallID
		req.Messages = append(req.Messages, Message{Role: RoleAssistant, Parts: a.Parts},
			Message{Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: id, ToolName: "shell", Text: r.results[i]}}})
	}
	return req
}

// play makes a model answer all steps of a run, and returns its texts and warnings.
func (r run) play(t *testing.T, m Model) (said string, warnings []string) {
	t.Helper()
	var answers []Response
	for range len(r.results) + 1 {
		resp := answered(t, m, r.request(answers))
		said += spell(resp.Parts) + "\n"
		answers, warnings = append(answers, resp), append(warnings, resp.Warnings...)
	}
	return said, warnings
}

// actor returns a model that calls the shell in each of n steps and then answers with its name.
func actor(name string, n int) *scripted {
	s := &scripted{}
	for i := range n {
		s.responses = append(s.responses, Response{Finish: FinishToolCalls, Parts: []Part{{Type: PartToolCall, CallID: fmt.Sprintf("c%d", i), ToolName: "shell", Input: json.RawMessage(`{"command":"date # ` + name + `"}`)}}})
	}
	s.responses = append(s.responses, Response{Finish: FinishStop, Parts: []Part{{Type: PartText, Text: "I am " + name}}})
	return s
}

var monday = run{worker: "wrk_1", task: "tsk_1", instructions: "Look at the clock.", ask: "What time is it?", date: "Monday", results: []string{"Mon 10:00", "Mon 10:01"}}

// on returns the run on another day, with a copy of the worker and another task.
func (r run) on(date, worker, task string) run {
	results := make([]string, len(r.results))
	for i := range results {
		results[i] = fmt.Sprint(date, " in run ", task, i)
	}
	r.date, r.worker, r.task, r.results = date, worker, task, results
	return r
}

func record(t *testing.T, dir string, r run, name string) string {
	t.Helper()
	said, _ := r.play(t, NewRecorder(actor(name, len(r.results)), dir))
	return said
}

// TestReplayOfAnotherDay replays recordings although dates, commands and pages differ now.
func TestReplayOfAnotherDay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	want := record(t, dir, monday, "one")
	again, warnings := monday.play(t, replayOf(t, dir))
	is.Equal(again, want)
	is.Equal(len(warnings), 0) // no differences
	again, warnings = monday.on("Friday", "wrk_9", "tsk_9").play(t, replayOf(t, dir))
	is.Equal(again, want)
	is.Equal(len(warnings), 1) // only the last step depends on two different results
	is.True(strings.Contains(warnings[0], "2 of 2 outputs of tools differ"))
	files, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(files), 3)
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		is.NoErr(err)
		is.True(!strings.Contains(string(raw), "tsk_1")) // recordings contain no id
		is.True(!strings.Contains(string(raw), "Monday"))
	}
}

// TestReplaySideBySide replays similar tasks from one folder. Each must get its own answers.
func TestReplaySideBySide(t *testing.T) {
	t.Parallel()
	other := monday
	other.worker, other.task, other.instructions = "wrk_2", "tsk_2", "Look at the calendar, and be brief about it."
	asks := monday
	asks.task, asks.ask = "tsk_3", "What day is it?"
	twin := monday
	twin.task = "tsk_4"
	runs := map[string]run{"one": monday, "another worker": other, "another question": asks, "the same again": twin}
	names := []string{"one", "another worker", "another question", "the same again"}
	dir := t.TempDir()
	want := map[string]string{}
	for _, name := range names {
		want[name] = record(t, dir, runs[name], name)
	}
	t.Run("one after the other", func(t *testing.T) {
		is, m := is.New(t), replayOf(t, dir)
		for _, name := range names {
			r := runs[name].on("Friday", "new "+runs[name].worker, "new "+runs[name].task)
			said, _ := r.play(t, m)
			is.Equal(said, want[name])
			said, _ = r.play(t, m)
			is.Equal(said, want[name]) // the same answers each time
		}
	})
	t.Run("step by step, with a restart at each", func(t *testing.T) {
		is := is.New(t)
		said, answers := map[string]string{}, map[string][]Response{}
		for range 3 {
			m := replayOf(t, dir) // without the state of the previous model
			if len(said) > 0 {
				slices.Reverse(names) // another order of the tasks
			}
			for _, name := range names {
				r := runs[name].on("Friday", runs[name].worker, "new "+runs[name].task)
				r.results = runs[name].results
				resp := answered(t, m, r.request(answers[name]))
				answers[name] = append(answers[name], resp)
				said[name] += spell(resp.Parts) + "\n"
			}
		}
		is.Equal(said, want)
	})
}

// TestReplayOfTheNewest checks that the recording of the newest session is replayed every time.
func TestReplayOfTheNewest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	record(t, dir, monday, "old")
	files, err := os.ReadDir(dir)
	is.NoErr(err)
	for _, f := range files { // as if an earlier process had recorded them
		name := filepath.Join(dir, f.Name())
		rec, err := readRecording(name)
		is.NoErr(err)
		rec.Place.Session--
		is.NoErr(rec.write(dir, f.Name()))
	}
	want := record(t, dir, monday.on("Tuesday", "wrk_1", "tsk_5"), "new")
	m := replayOf(t, dir)
	for i := range 3 {
		said, _ := monday.on("Friday", "wrk_1", fmt.Sprint("tsk_", i)).play(t, m)
		is.Equal(said, want)
	}
}

func TestReplayMissesByPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record(t, dir, monday, "one")
	stranger := monday.on("Friday", "w", "t")
	stranger.instructions = "Translate letters into French."
	later := monday.on("Friday", "w", "t").request(nil)
	later.Place.Turn = 1
	summary := later
	summary.Place.Turn, summary.Place.Summary = 0, true
	nearly := monday.on("Friday", "w", "t")
	nearly.ask = "What time is it now?"
	final := nearly.request(nil)
	final.Final = true
	for name, tt := range map[string]struct {
		req  Request
		warn string // "" if no recording matches
	}{
		"another worker":           {stranger.request(nil), ""},
		"another turn":             {later, ""},
		"a summary":                {summary, ""},
		"nearly the same":          {nearly.request(nil), "of the instructions and messages differ"},
		"a budget that is used up": {final, "of the instructions and messages differ"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			resp, err := ask(t, replayOf(t, dir), tt.req)
			if tt.warn == "" {
				e := asFailure(t, err)
				is.Equal(e.Code, "replay_miss")
				is.True(strings.Contains(e.Message, "the nearest, turn0000-step0000-")) // names the nearest recording
				return
			}
			is.NoErr(err)
			is.Equal(len(resp.Warnings), 1)
			is.True(strings.Contains(resp.Warnings[0], tt.warn))
			is.True(!strings.Contains(resp.Warnings[0], "time")) // a log must contain no content
		})
	}
}

// TestReplayCostsNothing checks that a replay does not repeat the provider's cost.
func TestReplayCostsNothing(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	m := &scripted{responses: []Response{{Finish: FinishStop, Usage: Usage{InputTokens: 5, Cost: 7, Billed: true}, Parts: []Part{{Type: PartText, Text: "x"}}}}}
	answered(t, NewRecorder(m, dir), monday.request(nil))
	resp := answered(t, replayOf(t, dir), monday.request(nil))
	is.Equal(resp.Usage, Usage{InputTokens: 5})
}
