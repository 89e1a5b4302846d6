package handlers_test

import (
	"strings"
	"testing"

	"journeyman/store/storetest"
)

// askingTask starts a task of a worker whose turn asks the questions, waits until all of them are open, and
// returns the id of the turn.
func (s *site) askingTask(t testing.TB, worker, task string, calls ...string) string {
	t.Helper()
	input := scripted(append(calls, "say Got {{last}}")...)
	turn := s.do(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "taskId": task, "input": input}), "Prefer: respond-async").text("metadata.turnId")
	storetest.Eventually(t, "the question", func() bool {
		return s.must(t, "GET", "/api/tasks/"+task, "").text("task.waitingFor.for") == "person"
	})
	return turn
}

const askTea = `tool ask_user {"question": "Which tea?", "choices": ["green", "black"]}`

// TestMessageIsTheAnswer checks that a message to a task with one open question to its author is the
// answer, over each endpoint, and that a repetition of the message is no second one.
func TestMessageIsTheAnswer(t *testing.T) {
	is, s := onServer(t)
	for name, tt := range map[string]struct {
		path   func(worker string) string
		body   fields
		want   string
		header string
	}{
		"a task":                    {func(string) string { return "/api/tasks" }, fields{"taskId": "a-task", "input": " black\n"}, `Got {"answer":"black"}`, "Idempotency-Key: a"},
		"the number of a choice":    {func(string) string { return "/api/tasks" }, fields{"taskId": "the-number-of-a-choice", "input": "1."}, `Got {"answer":"green"}`, "Idempotency-Key: b"},
		"continue":                  {func(w string) string { return "/api/workers/" + w }, fields{"input": "none, thanks"}, `Got {"answer":"none, thanks"}`, "Idempotency-Key: c"},
		"continue, and do not wait": {func(w string) string { return "/api/workers/" + w }, fields{"input": "Black."}, `Got {"answer":"black"}`, "Prefer: respond-async"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			worker := s.newWorker(t, fields{})
			task := idOf(name)
			turn := s.askingTask(t, worker, task, askTea)
			r := s.do(t, "POST", tt.path(worker), encode(tt.body), tt.header)
			is.Equal(r.text("metadata.turnId"), turn) // no new turn
			is.Equal(r.text("metadata.taskId"), task)
			storetest.Eventually(t, "the end", func() bool {
				return s.must(t, "GET", "/api/tasks/"+task, "").text("task.status") == "completed"
			})
			got := s.must(t, "GET", "/api/tasks/"+task, "")
			is.Equal([]any{got.size("turns"), got.text("turns.0.outputText")}, []any{1, tt.want})
			if tt.header != "Prefer: respond-async" {
				again := s.do(t, "POST", tt.path(worker), encode(tt.body), tt.header)
				is.Equal([]string{again.text("metadata.turnId"), again.header.Get("Idempotency-Replayed")}, []string{turn, "true"})
				is.Equal(s.must(t, "GET", "/api/tasks/"+task, "").size("turns"), 1)
			}
		})
	}
	worker := s.newWorker(t, fields{})
	turn := s.askingTask(t, worker, "waits", askTea)
	r := s.must(t, "POST", "/api/tasks", encode(fields{"taskId": "waits", "input": "green"}))
	is.Equal([]string{r.text("metadata.turnId"), r.text("output_text")}, []string{turn, `Got {"answer":"green"}`}) // it waits for the result
}

// idOf returns the name of a test as the id of a task.
func idOf(name string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(name)
}

// TestMessageIsNoAnswer checks that a message queues behind a question to somebody else and behind an
// approval, and that an answer has the limit of an answer.
func TestMessageIsNoAnswer(t *testing.T) {
	is, s := onServer(t)
	colleague, _ := s.member(t, "mo@example.com")
	for name, tt := range map[string]struct {
		from  *site
		calls []string
		tools []string
	}{
		"a question to somebody else": {colleague, []string{askTea}, nil},
		"an approval":                 {s, []string{`tool write_file {"path": "a.txt", "content": "x"}`}, []string{"write_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			worker := s.newWorker(t, fields{"approvalTools": tt.tools})
			task := idOf(name)
			turn := s.askingTask(t, worker, task, tt.calls...)
			r := tt.from.do(t, "POST", "/api/tasks", encode(fields{"taskId": task, "input": "green"}), "Prefer: respond-async")
			is.Equal(r.status, 202)
			is.True(r.text("metadata.turnId") != turn)
			is.Equal(s.must(t, "GET", "/api/tasks/"+task, "").size("turns"), 2)
			is.Equal(s.must(t, "GET", "/api/approvals", "").text("items.0.status"), "pending")
			s.must(t, "POST", "/api/tasks/"+task+"/cancel", "")
		})
	}
	s.askingTask(t, s.newWorker(t, fields{}), "long", askTea)
	long := s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "long", "input": chars(20_001)}))
	is.Equal(long.refused(), "400 invalid_request input")
}

// TestAnswerWithAttachments checks that the files of an answer lie in the workspace and are listed as
// attachments of the turn that asked.
func TestAnswerWithAttachments(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{})
	turn := s.askingTask(t, worker, "files", `tool ask_user {"question": "Which file?"}`, `tool read_file {"path": "list.txt"}`)
	r := s.upload(t, []part{{name: "taskId", content: "files"}, {name: "input", content: "This one."}, {name: "files", file: "list.txt", content: "sugar\n"}})
	is.Equal(r.text("metadata.turnId"), turn)
	is.True(strings.Contains(r.text("output_text"), "sugar")) // the call after the answer reads the file
	list := s.must(t, "GET", "/api/tasks/files/approvals", "")
	is.Equal(list.text("items.0.answer"), "This one.\n\n(With files, which are in the workspace now: list.txt)")
	names, _ := s.attachments(t, r)
	is.Equal(names, []string{"list.txt"})
}
