package task_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestTaskPage checks that the page shows everything that a turn can have.
func TestTaskPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "all", Title: "A bit of all",
		Input: dashboardtest.Scripted(
			"think Let me see.", "wait 5ms", "say I write.", dashboardtest.Calling("write_file", "path", "out/poem.md",
				"content", "# Poem"),
			dashboardtest.Calling("publish_file", "path", "out/poem.md"), dashboardtest.Calling("read_file", "path",
				"missing.txt"), "say Here is **your** poem.", "usage 300 45")})
	is.Equal(turn.Status, store.Completed)
	p := b.Get("/tasks/all")
	p.Shows("<h1>A bit of all</h1>", `<a class="link" href="/workers/`+w.ID+`">Scribe</a>`, "Done</span>")
	p.Shows(`<details class="fold reasoning"`, "Let me see.")
	p.Shows("I write.", `<span class="tool">write_file</span><span class="arg">out/poem.md</span><span class="res">6 B`,
		"&#34;path&#34;: &#34;out/poem.md&#34;")
	p.Shows(`<span class="tool">read_file</span><span class="arg">missing.txt</span><span class="res bad">`,
		"no file or folder &#34;missing.txt&#34;")
	p.Shows("Here is <strong>your</strong> poem.")
	is.Equal(strings.Count(p.Body, "<strong>your</strong>"), 1) // the page shows the answer once
	p.Shows(`/files/out/poem.md?v=`, ">poem.md</span>")
	p.Shows(`viewBox="0 0 600 26"`, `aria-label="The model worked for`, "in 4 calls", "in 3 calls")
	p.Shows("Continue this task", `enctype="multipart/form-data"`, "Run again", "Edit and run again")
	p.Shows(`<section id="now"><h2>Last turn<`, "4 steps</span></h2>")
	p.Lacks("Now<", "Step 4")
	is.Equal(p.Has("live.js"), false) // nothing runs
	is.Equal(p.Has("Stop</button>"), false)
	p.SmallerThan(dashboardtest.MaxPage)
	file := regexp.MustCompile(`href="(/api/workers/[^"]*)"`).FindStringSubmatch(p.Body)
	is.Equal(b.Get(file[1]).Body, "# Poem") // the session gives access to the file
	b.Get("/tasks/all/calls/0/2/0").Shows("<h1><code>read_file</code></h1>", "missing.txt")
	is.Equal(b.Get("/tasks/all/raw/0/output").Body, "Here is **your** poem.")
	is.True(strings.HasPrefix(b.Get("/tasks/all/raw/0/output").Header.Get("Content-Type"), "text/plain"))
	is.Equal(b.Get("/tasks/all/raw/0/0/parts/0").Body, "Let me see.")
	is.True(strings.Contains(b.Get("/tasks/all/raw/0/0/calls/0/input").Body, `"content": "# Poem"`))
	for _, path := range []string{"/turns/1", "/turns/x", "/calls/0/9/0", "/calls/0/0/1", "/calls/0/0/-1", "/raw/",
		"/raw/0", "/raw/0/x", "/raw/0/0",
		"/raw/0/0/0/0", "/raw/0/0/parts/9", "/raw/0/0/calls/0/x", "/raw/0/0/calls/0/input/x", "/raw/9/input", "/raw/0/99999999999999999999/feedback"} {
		is.Equal(b.Get("/tasks/all"+path).Status, 404)
	}
}

// TestTaskEnds checks that the page explains how turns ended.
func TestTaskEnds(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe",
		OutputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "json", Title: "Count",
		Input: "Count." + "\n\n" + dashboardtest.Scripted(`json {"n":7}`)})
	p := b.Get("/tasks/json")
	p.Shows("Structured output", "&#34;n&#34;: 7")
	is.Equal(strings.Count(p.Body, "&#34;n&#34;"), 2) // in the script and as the output, but not as an answer

	free := s.Worker(s.Owner, workers.NewWorker{Title: "Free"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: free.ID, TaskID: "failed",
		Input: dashboardtest.Scripted("fail 400 the model is on strike")})
	b.Get("/tasks/failed").Shows("Failed.", "The model is on strike.", "Try again</button>")

	n := store.NewTurn{Caller: s.Owner.Caller, WorkerID: free.ID, TaskID: "short", Budget: store.BudgetLow,
		Input: dashboardtest.Scripted(slices.Repeat([]string{dashboardtest.Calling("list_files"),
			dashboardtest.Calling("list_files", "path", ".")}, 10)...)}
	_, err := s.Store.CreateTurn(t.Context(), n)
	is.NoErr(err)
	s.Runner.Wake()
	is.Equal(s.Ended("short").IncompleteLimit, "steps")
	b.Get("/tasks/short").Shows("Incomplete.", "the budget &#34;low&#34; has used up its model calls")
}

// TestLongTask checks that the pages of a long task are bounded and that links reach all of it.
func TestLongTask(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	quotes := strings.Repeat(`"<&>' `, 2000)
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "long",
		Input: quotes + "\n\n" + dashboardtest.Scripted(
			"repeat 30", dashboardtest.Calling("write_file", "path", "a.txt", "content", quotes[:800]),
			dashboardtest.Calling("write_file", "path", "a.txt", "content",
				quotes[:801]), // more equal calls in a row would count as a loop
			"repeat 29", dashboardtest.Calling("write_file", "path", "a.txt", "content", quotes[:800]),
			"repeat 3", "think "+quotes, "repeat 3", "say "+quotes)})
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.Usage.Steps, int64(61))
	for i := range 15 {
		s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "long", Input: fmt.Sprint("turn ", i, " ", quotes[:6000],
			"\n\n", dashboardtest.Scripted("say "+quotes[:9000]))})
	}
	small := func(path string) dashboardtest.Page {
		p := b.Get(path)
		is.Equal(p.Status, 200)
		p.SmallerThan(dashboardtest.MaxLongPage)
		return p
	}
	turns := map[string]bool{}
	for next := "/tasks/long"; next != ""; {
		p := small(next)
		for _, m := range regexp.MustCompile(`id="turn-(\d+)"`).FindAllStringSubmatch(p.Body, -1) {
			is.True(!turns[m[1]])
			turns[m[1]] = true
		}
		next = dashboardtest.Href(p, "« Older turns")
	}
	is.Equal(len(turns), 16)
	steps := map[string]bool{}
	for next := "/tasks/long/turns/0"; next != ""; {
		p := small(next)
		for _, m := range regexp.MustCompile(`<p>Step (\d+) ·`).FindAllStringSubmatch(p.Body, -1) {
			is.True(!steps[m[1]])
			steps[m[1]] = true
		}
		next = dashboardtest.Href(p, "Later steps »")
	}
	is.Equal(len(steps), 61)
	small("/tasks/long/calls/0/3/0")
	is.Equal(b.Get("/tasks/long/raw/0/input").Body, turn.Input)
	is.Equal(b.Get("/tasks/long/raw/0/output").Body, turn.OutputText)
}

// TestFollowUp continues a task with files. Two clicks must create one turn.
func TestFollowUp(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: dashboardtest.Scripted("say one")})
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(b.Get("/tasks/talk").Body)[1]
	for range 2 {
		p := b.Send(b.Form("/tasks/talk", []string{"token", token, "input",
			dashboardtest.Scripted(dashboardtest.Calling("read_file", "path", "notes.txt"), "say {{last}}"),
			"budget", "low"}, "notes.txt", "remember the milk"))
		is.Equal(p.Status, 303)
		is.Equal(p.Location(), "/tasks/talk#newest")
	}
	turn := s.Ended("talk")
	is.Equal(turn.Seq, int64(1)) // the second click created no turn
	is.Equal(turn.TriggeredBy, people.TriggerUI)
	is.Equal(turn.Budget, store.BudgetLow)
	is.True(strings.Contains(turn.OutputText, "remember the milk"))
	b.Get("/tasks/talk").Shows(">notes.txt</span>", "remember the milk", "Turn 2")

	p := b.Send(b.Form("/tasks/talk", []string{"token", token, "input", "line\r\nanother", "budget", "low"}))
	is.Equal(p.Status, 303) // the form comes from the browser's history, and has another text
	is.Equal(s.Ended("talk").Input, "line\nanother")

	for name, fields := range map[string][]string{"empty": {"input", ""}, "budget": {"input", "kept text", "budget",
		"huge"}} {
		p := b.Send(b.Form("/tasks/talk", fields))
		p.Answers(422).Shows(map[string]string{"empty": "is required", "budget": "kept text"}[name])
	}
	tooMany := make([]string, 2*21)
	for i := range tooMany {
		tooMany[i] = "a.txt"
	}
	b.FollowUp("talk", "Keep these words", tooMany...).Answers(422).Shows("A request has at most 20 files.",
		"Keep these words</textarea>")
	r := b.Form("/tasks/talk", []string{"input", "cut"})
	r.Header.Set("Content-Type", "multipart/form-data; boundary=other")
	is.Equal(b.Send(r).Status, 400)
	is.Equal(b.Post("/tasks/talk", "input", "no multipart").Status, 400)
	cross := b.Form("/tasks/talk", []string{"input", "from elsewhere"})
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	is.Equal(b.Send(cross).Status, 403)
	is.Equal(s.Ended("talk").Input, "line\nanother") // the refused form had no effect

	is.Equal(b.Post("/tasks/talk/archive").Location(), "/tasks?done=task-archived")
	b.Get("/tasks/talk").Shows("The task is archived and takes no new instructions.", `<span class="pill">archived</span>`)
	is.Equal(b.FollowUp("talk", "more").Status, 422)
	is.NoErr(s.Store.DeleteWorker(t.Context(), s.Owner.Caller, w.ID))
	b.Get("/tasks/talk").Shows("The worker is deleted", "Scribe (deleted)")
}

// TestCancelTask opens a running task and cancels it.
func TestCancelTask(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: dashboardtest.Scripted("say first")})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: dashboardtest.Scripted("wait 1h", "say never")})
	s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: dashboardtest.Scripted("say queued")})
	p := b.Get("/tasks/slow")
	p.Shows(`<script src="/assets/`, `live.js"`, "Stop</button>",
		`<noscript><meta http-equiv="refresh" content="10"></noscript>`)
	// Ended turns have no live part.
	ordertest.Below(is, strings.Index(p.Body, `id="turn-0"`), strings.Index(p.Body, `id="flow-1"`))
	p.Shows(`id="turn-2"`, `id="flow-2"`, "Queued")
	is.Equal(b.Get("/tasks/slow?still").Has("http-equiv"), false)
	stream := strings.ReplaceAll(regexp.MustCompile(`data-stream="([^"]+)"`).FindStringSubmatch(p.Body)[1], "&amp;", "&")
	is.True(strings.HasPrefix(stream, "/tasks/slow/live?") && strings.Contains(stream, "turn=1"))
	cancelled := b.Post("/tasks/slow/cancel")
	is.Equal(cancelled.Location(), "/tasks/slow?done=task-cancelled")
	is.Equal(s.Ended("slow").Status, store.Aborted)
	events := b.Get(stream).Body
	is.True(strings.Contains(events, `"end-1"`) && strings.Contains(events, `"end-2"`) && strings.HasSuffix(events,
		"data: [DONE]\n\n"))
	is.Equal(strings.Contains(events, `"turn-0"`), false) // it begins after the pieces that the page has
	after := b.Get("/tasks/slow?done=task-cancelled")
	after.Shows("The task is cancelled.", "Cancelled.", "Cancelled</span>")
	is.Equal(after.Has("live.js"), false)
	is.Equal(b.Post("/tasks/slow/cancel").Status, 303) // a second cancel changes nothing
}

// TestApprovalPage approves and denies tool calls.
func TestApprovalPage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	b, member := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	asked := func(id string) string {
		s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: id,
			Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "<b>.txt", "content", "x"), "say over")})
		return s.Approval(id)
	}
	id := asked("yes")
	b.Get("/tasks/yes").
		Shows("Write &lt;b&gt;.txt?", `<span class="pill">write_file</span>`, `action="/tasks/yes/approvals/`+id+`"`,
			"waits for approval")
	b.Get("/tasks").Shows("Waiting for you", `href="/tasks/yes"`)
	other := member.Get("/tasks/yes")
	other.Shows("Write &lt;b&gt;.txt?", "an Owner or an Admin must decide")
	is.Equal(other.Has(">Approve</button>"), false)
	is.Equal(member.Post("/tasks/yes/approvals/"+id, "decision", "approve").Status, 403)
	is.Equal(b.Post("/tasks/yes/approvals/"+id, "decision", "maybe").Status, 422)
	is.Equal(b.Post("/tasks/yes/approvals/apr_none", "decision", "approve").Status, 404)
	is.Equal(b.Post("/tasks/yes/approvals/"+id, "decision", "approve").Location(), "/tasks/yes?done=call-approved")
	is.Equal(s.Ended("yes").Status, store.Completed)
	b.Get("/tasks/yes").Shows("Approved by", `<span class="tool">write_file</span>`)
	late := b.Post("/tasks/yes/approvals/"+id, "decision", "deny")
	is.Equal(late.Location(), "/tasks/yes?done=decided-already") // an outdated page leads to the task

	id = asked("no")
	is.Equal(b.Post("/tasks/no/approvals/"+id, "decision", "deny", "reason", strings.Repeat("x", 1001)).Status, 422)
	is.Equal(b.Post("/tasks/no/approvals/"+id, "decision", "deny", "reason", "not <that> file").Location(),
		"/tasks/no?done=call-denied")
	is.Equal(s.Ended("no").Status, store.Completed)
	b.Get("/tasks/no").Shows("Denied by", "Not &lt;that&gt; file.", "a person has denied this call")
}

// TestQuestionPage answers a worker's questions with a button and as text.
func TestQuestionPage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("mo@example.com", people.RoleMember)
	b, member := s.SignIn("ann@example.com"), s.SignIn("mo@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Curious"})
	ask := func(id, question string) string {
		s.Begin(s.Owner, store.NewTurn{WorkerID: w.ID, TaskID: id, Input: dashboardtest.Scripted("tool ask_user "+question,
			"say It is {{last}}")})
		return s.Approval(id)
	}
	id := ask("one", `{"question": "Which <b>?", "choices": ["red & hot", "blue"]}`)
	b.Get("/tasks/one").
		Shows("Which &lt;b&gt;?", `name="choice" value="1">red &amp; hot</button>`, "waits for an answer", `name="answer"`)
	b.Get("/tasks?waitingFor=person").Shows(`1<span class="unseen"> waiting for you</span>`, `href="/tasks/one"`)
	is.Equal(member.Get("/tasks").Has("waiting for you"), false)
	b.Get("/tasks?waitingFor=model").Shows("No task matches")
	is.Equal(b.Get("/tasks?waitingFor=rain").Status, 422)
	is.Equal(member.Get("/tasks/one").Has(`name="answer"`), false)
	is.Equal(member.Post("/tasks/one/approvals/"+id, "answer", "red").Status, 403)
	is.Equal(b.Post("/tasks/one/approvals/"+id, "choice", "3").Status, 422)
	is.Equal(b.Post("/tasks/one/approvals/"+id, "decision", "approve").Status, 422) // the form is for another kind
	is.Equal(b.Post("/tasks/one/approvals/"+id, "choice", "1").Location(), "/tasks/one?done=question-answered")
	s.Ended("one")
	b.Get("/tasks/one").Shows("Answered by", "red &amp; hot")
	is.Equal(b.Post("/tasks/one/approvals/"+id, "answer", "late").Location(), "/tasks/one?done=decided-already")
	id = ask("two", `{"question": "When?"}`)
	is.Equal(b.Post("/tasks/two/approvals/"+id, "answer", "at\r\nnoon").Location(), "/tasks/two?done=question-answered")
	s.Ended("two")
	b.Get("/tasks/two").Shows(`at\nnoon`)

	// A follow-up is the answer, too. An instruction that runs again is not.
	ask("three", `{"question": "Which?", "choices": ["red", "blue"]}`)
	is.Equal(b.FollowUp("three", "2").Status, 303)
	is.Equal(s.Ended("three").OutputText, `It is {"answer":"blue"}`)
	ask("four", `{"question": "Which?"}`)
	is.Equal(b.Post("/tasks/four/turns/0/again", "token", "t").Status, 303)
	is.Equal(b.Send(b.Form("/tasks/four", []string{"input", "edited", "from", "0"})).Status, 303)
	task, _, err := s.Store.Task(t.Context(), s.Owner.Caller, "four")
	is.NoErr(err)
	is.Equal(task.TurnCount, int64(3))
	is.Equal(b.Post("/tasks/four/cancel").Status, 303)
}

// TestManyApprovals has a turn with more approvals, and longer arguments, than a page can show.
func TestManyApprovals(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := dashboardtest.Claimed(t, st, store.NewTurn{TaskID: "asks", Input: strings.Repeat(`"<>`, 9000)})
	step := store.Step{Attempt: 1, Finish: "tool-calls", Model: "m", StartedAt: time.Now(), CompletedAt: time.Now()}
	for i := range int64(32) {
		input := fmt.Sprintf(`{"n":%d,"command":%q}`, i, strings.Repeat("<rm> ", 600))
		step.Parts = append(step.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint("c", i), ToolName: "shell",
			Input: []byte(input)})
		step.Approvals = append(step.Approvals, store.Approval{ID: db.NewID("apr", time.Now()), Call: i})
	}
	is.NoErr(st.JournalStep(ctx, claim, step))
	_, suspended, err := st.SuspendTurn(ctx, claim, 0, time.Now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended)
	is.NoErr(st.StopRunner(ctx, "r"))
	b := dashboardtest.NewOf(t, st).SignIn("ann@example.com")
	p := b.Get("/tasks/asks")
	is.Equal(p.Status, 200)
	p.SmallerThan(dashboardtest.MaxLongPage)
	is.Equal(strings.Count(p.Body, ">Approve</button>"), 6)
	p.Shows("26 more calls need approval after these.")
	b.Get("/tasks/asks/raw/0/0/calls/5/input").Shows(`"n": 5`)
	p.Shows(`href="/tasks/asks/raw/0/0/calls/5/input"`)
}

// TestUnmadeCallIsNoText checks that the conversation does not show a call that could not be made as words of the
// worker, and that the page of the turn does, with its reason.
func TestUnmadeCallIsNoText(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := dashboardtest.Claimed(t, st, store.NewTurn{TaskID: "told", Input: "go"})
	now := time.Now()
	step := store.Step{Attempt: 1, Parts: []store.Part{{Type: store.PartText, Text: "I write it."},
		{Type: store.PartUnmade, Text: "<tool_call>{"}},
		Finish: store.FinishMistake, Feedback: "Its arguments are wrong.", Model: "m", StartedAt: now, CompletedAt: now.Add(time.Second)}
	is.NoErr(st.JournalStep(ctx, claim, step))
	step.Seq, step.Feedback = 1, "The server could not read it: raw='[tool_code"
	step.Parts = []store.Part{{Type: store.PartText, Text: "I try."}}
	is.NoErr(st.JournalStep(ctx, claim, step))
	step.Seq, step.Feedback, step.Finish, step.Parts = 2, "", "stop", []store.Part{{Type: store.PartText, Text: "Done."}}
	_, err := st.FinishTurn(ctx, claim, &step, store.Outcome{Status: store.Completed, OutputText: "Done."})
	is.NoErr(err)
	is.NoErr(st.StopRunner(ctx, "r"))
	b := dashboardtest.NewOf(t, st).SignIn("ann@example.com")
	p := b.Get("/tasks/told")
	p.Shows("I write it.", "Its arguments are wrong.", "I try.", "Done.")
	is.True(!p.Has("tool_call"))
	is.True(!p.Has("tool_code")) // the error of a server that could not read the call
	b.Get("/tasks/told/turns/0").Shows("I write it.", "Tool call that could not be made", "&lt;tool_call&gt;{",
		"raw=&#39;[tool_code")
	b.Get("/tasks/told/raw/0/0/parts/1").Shows("<tool_call>{")
}

// TestCompactionNotes checks that the page describes how a conversation was shortened, before the
// step for which it was shortened.
func TestCompactionNotes(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := dashboardtest.Claimed(t, st, store.NewTurn{TaskID: "full", Input: "go"})
	now := time.Now()
	step := store.Step{Attempt: 1, Parts: []store.Part{{Type: store.PartText, Text: "One."}}, Finish: "stop",
		Feedback: "Call a <tool>.", Model: "m", StartedAt: now, CompletedAt: now.Add(time.Second)}
	is.NoErr(st.JournalStep(ctx, claim, step))
	for _, m := range []store.Compaction{
		{Kind: store.CompactionCut, CutTo: 2048, Items: 3}, {Kind: store.CompactionFiles, Items: 1},
		{Kind: store.CompactionSummary, Items: 12, Summary: "They spoke of <b>rivers</b>.",
			Refused: true}, {Kind: store.CompactionOmission, Items: 4, Summary: "left out"},
	} {
		m.Step, m.Model, m.TokensBefore, m.TokensAfter, m.StartedAt, m.CompletedAt = 1, "small-model", 9000, 4000, now, now
		is.NoErr(st.JournalCompaction(ctx, claim, m))
	}
	step.Seq, step.Feedback, step.Parts = 1, "", []store.Part{{Type: store.PartText, Text: "Two."}}
	_, err := st.FinishTurn(ctx, claim, &step, store.Outcome{Status: store.Completed, OutputText: "Two."})
	is.NoErr(err)
	is.NoErr(st.StopRunner(ctx, "r"))
	p := dashboardtest.NewOf(t, st).SignIn("ann@example.com").Get("/tasks/full")
	p.Shows("3 long tool outputs were truncated to 2.0 KiB each. The conversation was shortened to fit small-model, from about 9,000 to 4,000 tokens.")
	p.Shows("1 attached file is listed by name only.")
	p.Shows("12 earlier model calls were summarised. The conversation was too long for small-model",
		"They spoke of &lt;b&gt;rivers&lt;/b&gt;.")
	p.Shows("4 earlier model calls were left out")
	p.Shows("Feedback to the model", "Call a &lt;tool&gt;.")
	ordertest.Below(is, strings.Index(p.Body, "One."), strings.Index(p.Body, "were summarised"))
	ordertest.Above(is, strings.Index(p.Body, "Two."), strings.Index(p.Body, "were summarised"))
}
