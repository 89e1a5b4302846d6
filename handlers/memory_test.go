package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/storetest"
)

// A saying is a model that always returns the same answer.
type saying struct {
	model.Model
	resp model.Response
	err  error
}

func (m saying) Generate(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	return m.resp, m.err
}

// hostile is text that JSON must escape, or that some programs truncate.
const hostile = "\xff one\x00two \xe2\x82 <b>&\u2028</b> \ufffd \U0001F600 \xed\xa0\x80\r\n"

// says returns a model that always answers with these parts.
func says(finish model.FinishReason, parts ...model.Part) option {
	return withModel(saying{offline.New(), model.Response{Model: "m " + hostile, Finish: finish, Parts: parts,
		Refusal: hostile, Usage: model.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 3}}, nil})
}

func fails(code string) option {
	return withModel(saying{offline.New(), model.Response{}, &model.Error{Code: code, Message: hostile}})
}

func textPart(text string) model.Part      { return model.Part{Type: model.PartText, Text: text} }
func reasoningPart(text string) model.Part { return model.Part{Type: model.PartReasoning, Text: text} }

// TestAnswerFromMemoryEqualsStoredAnswer runs turns, and compares the answer of the waiting client
// with the run view from the store. read is set for turns whose answer is read from the store.
func TestAnswerFromMemoryEqualsStoredAnswer(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	unusual := strings.ToValidUTF8(hostile, "?")
	typed := fields{"outputSchema": fields{"type": "object", "required": []string{"a"},
		"properties": fields{"a": fields{"type": "string"}}}}
	for name, tt := range map[string]struct {
		model  option
		task   fields
		worker fields
		read   bool
	}{
		"one step":            {task: fields{"input": scripted("say All is well.")}},
		"plain":               {task: fields{"input": "What do you know of whales?"}},
		"lines and reasoning": {task: fields{"input": scripted("think Hm.", "say One", "say Two <b>&amp;</b>", "usage 5 7")}},
		"hostile input":       {task: fields{"input": unusual + scripted("say {{input}}")}},
		"failing":             {task: fields{"input": scripted("say Begun.", "fail 400 broken <b>")}},
		"script error":        {task: fields{"input": scripted("sing a song")}},
		"hostile answer": {model: says(model.FinishStop, reasoningPart(hostile), textPart(hostile), textPart(""),
			textPart(hostile))},
		"hostile failure":  {model: fails(hostile)},
		"refused":          {model: says(model.FinishRefused, textPart("No.\n"))},
		"filtered":         {model: says(model.FinishContentFilter, textPart("Half"))},
		"empty answer":     {model: says(model.FinishStop)},
		"cut at the limit": {model: says(model.FinishLength, textPart("and on "))},
		"only reasons":     {model: says(model.FinishLength, reasoningPart("Hm."))},
		"structured":       {worker: typed, task: fields{"input": scripted(`json {"a": "<&>\u0000\u2028"}`)}},
		"fenced json":      {worker: typed, model: says(model.FinishStop, textPart("So:\n```json\n{ \"a\" : \"x\" }\n```"))},
		"schema mismatch":  {worker: typed, model: says(model.FinishStop, textPart(`{"b": 1}`))},
		"budget":           {task: fields{"input": scripted("say Cheap."), "budget": "low"}},
		"new task id":      {task: fields{"input": scripted("say Named."), "taskId": "named"}},
		"long":             {task: fields{"input": strings.Repeat("long ", 60_000) + scripted("say Long.")}, read: true},
		"tools":            {task: fields{"input": scripted(publishing("a.txt", "<one>"), "say Done.")}, read: true},
		"failing tool":     {task: fields{"input": scripted(calling("read_file", "path", "none.txt"), "say {{last}}")}, read: true},
		"calls that never run": {model: says(model.FinishStop, textPart("So"), model.Part{Type: model.PartToolCall, CallID: "c",
			ToolName: "shell", Input: []byte(`{"a":"<"}`)}), read: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			opts := []option{}
			if tt.model != nil {
				opts = append(opts, tt.model)
			}
			s := newServer(t, opts...)
			if tt.worker == nil {
				tt.worker = fields{}
			}
			task := fields{"workerId": s.newWorker(t, tt.worker), "input": "Go."}
			for k, v := range tt.task {
				task[k] = v
			}
			r := s.must(t, "POST", "/api/tasks", encode(task))
			is.Equal(string(r.body), s.readRun(t, r.text("metadata.turnId")))
			is.Equal(s.handsOver(t, task), !tt.read) // the same turn again
		})
	}
}

// TestAnswerFromMemoryOfOtherTurns compares the same for turns with attachments, cancelled turns,
// and follow-ups.
func TestAnswerFromMemoryOfOtherTurns(t *testing.T) {
	is, s := onServer(t)
	attached := s.upload(t, []part{{name: "input", content: scripted("say Read.")},
		{name: "file", file: "b<&>.txt", content: "b"}, {name: "file", file: "a.png", content: "a"}})
	is.Equal(attached.status, 200)
	is.Equal(attached.size("messages.0.parts"), 3)
	is.Equal(string(attached.body), s.readRun(t, attached.text("metadata.turnId")))

	cancelled := s.begin(t, "POST", "/api/tasks",
		encode(fields{"taskId": "long", "input": scripted("say Begun.", "wait 1h")}))
	storetest.Eventually(t, "the text before the pause", func() bool {
		return s.do(t, "GET", "/api/tasks/long", "").text("turns.0.status") == "running"
	})
	s.must(t, "POST", "/api/tasks/long/cancel", "")
	r := cancelled()
	is.Equal(r.text("error.code"), "aborted")
	is.Equal(string(r.body), s.readRun(t, r.text("metadata.turnId")))

	for _, text := range []string{"One", "Two"} {
		r = s.run(t, fields{"taskId": "chat", "input": scripted("say " + text)})
		is.Equal(r.text("output_text"), text)
		is.Equal(string(r.body), s.readRun(t, r.text("metadata.turnId")))
	}
}

// handsOver runs a turn, and reports whether waiting clients get its conversation from memory.
func (s *site) handsOver(t *testing.T, task fields) bool {
	t.Helper()
	is := is.New(t)
	_, watch, err := s.runner.AcceptWatched(t.Context(), runner.Instruction{NewTurn: store.NewTurn{Caller: s.owner.Caller,
		Budget: store.BudgetStandard, WorkerID: task["workerId"].(string), Input: task["input"].(string)}})
	is.NoErr(err)
	defer watch.Leave()
	conv, err := watch.Result(t.Context())
	is.NoErr(err)
	return conv != nil
}

// readRun returns the answer to the client of a turn, read from the store.
func (s *site) readRun(t *testing.T, turnID string) string {
	t.Helper()
	is := is.New(t)
	turn, err := s.store.Turn(t.Context(), turnID)
	is.NoErr(err)
	wrk, err := s.store.WorkerOfTurn(t.Context(), turn)
	is.NoErr(err)
	v, err := s.views().TurnRun(t.Context(), wrk, turn, view.SDK5)
	is.NoErr(err)
	body, err := view.Marshal(v)
	is.NoErr(err)
	return string(body)
}

// TestReadsOfATask counts the queries of a request that runs a task of one step: none. The key and
// the organization's cap are cached, and the wait begins before the turn, so that it needs no look at
// the turn, however fast the turn ends. Further queries need a reason.
func TestReadsOfATask(t *testing.T) {
	is, s := onServer(t)
	task := fields{"workerId": s.newWorker(t, fields{}), "input": scripted("say Hello.")}
	s.run(t, task) // the first run also makes the queries whose results are cached
	before := s.store.WriteStats().Reads.Load()
	s.run(t, task)
	is.Equal(s.store.WriteStats().Reads.Load()-before, int64(0))
}
