package dashboard_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// followUp sends the follow-up form of a task. files alternates names and contents.
func (b *browser) followUp(task, input string, files ...string) page {
	b.t.Helper()
	return b.send(b.form("/tasks/"+task, []string{"input", input, "budget", "standard"}, files...))
}

// form returns a request with a multipart form.
func (b *browser) form(path string, fields []string, files ...string) *http.Request {
	b.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for i := 0; i+1 < len(fields); i += 2 {
		b.ok(m.WriteField(fields[i], fields[i+1]))
	}
	for i := 0; i+1 < len(files); i += 2 {
		part, err := m.CreateFormFile("files", files[i])
		if err == nil {
			_, err = part.Write([]byte(files[i+1]))
		}
		b.ok(err)
	}
	b.ok(m.Close())
	return b.request(http.MethodPost, path, body.String(), "Content-Type", m.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

// ended waits until the newest turn of a task ends, and returns it.
func (s *site) ended(taskID string) store.Turn {
	s.t.Helper()
	task, _, err := s.store.Task(s.t.Context(), s.owner.Caller, taskID)
	s.ok(err)
	turn, err := s.store.TurnAt(s.t.Context(), task, task.TurnCount-1)
	if err == nil {
		err = s.runner.Wait(s.t.Context(), turn.ID)
	}
	if err == nil {
		turn, err = s.store.Turn(s.t.Context(), turn.ID)
	}
	s.ok(err)
	return turn
}

// TestTaskPage checks that the page shows everything that a turn can have.
func TestTaskPage(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "all", Title: "A bit of all", Input: scripted(
		"think Let me see.", "wait 5ms", "say I write.", calling("write_file", "path", "out/poem.md", "content", "# Poem"),
		calling("publish_file", "path", "out/poem.md"), calling("read_file", "path", "missing.txt"), "say Here is **your** poem.", "usage 300 45")})
	is.Equal(turn.Status, store.Completed)
	p := b.get("/tasks/all")
	p.shows("<h1>A bit of all</h1>", `<a class="link" href="/workers/`+w.ID+`">Scribe</a>`, "Done</span>")
	p.shows(`<details class="fold reasoning"`, "Let me see.")
	p.shows("I write.", `<span class="tool">write_file</span><span class="arg">out/poem.md</span><span class="res">6 B`, "&#34;path&#34;: &#34;out/poem.md&#34;")
	p.shows(`<span class="tool">read_file</span><span class="arg">missing.txt</span><span class="res bad">`, "no file or folder &#34;missing.txt&#34;")
	p.shows("Here is <strong>your</strong> poem.")
	is.Equal(strings.Count(p.body, "<strong>your</strong>"), 1) // the page shows the answer once
	p.shows(`/files/out/poem.md?v=`, ">poem.md</span>")
	p.shows(`viewBox="0 0 600 26"`, `aria-label="The model worked for`, "in 4 calls", "in 3 calls")
	p.shows("Continue this task", `enctype="multipart/form-data"`, "Run again", "Edit and run again")
	p.shows(`<section id="now"><h2>Last turn<`, "4 steps</span></h2>")
	p.lacks("Now<", "Step 4")
	is.Equal(p.has("live.js"), false) // nothing runs
	is.Equal(p.has("Stop</button>"), false)
	p.smallerThan(maxPage)
	file := regexp.MustCompile(`href="(/api/workers/[^"]*)"`).FindStringSubmatch(p.body)
	is.Equal(b.get(file[1]).body, "# Poem") // the session gives access to the file
	b.get("/tasks/all/calls/0/2/0").shows("<h1><code>read_file</code></h1>", "missing.txt")
	is.Equal(b.get("/tasks/all/raw/0/output").body, "Here is **your** poem.")
	is.True(strings.HasPrefix(b.get("/tasks/all/raw/0/output").header.Get("Content-Type"), "text/plain"))
	is.Equal(b.get("/tasks/all/raw/0/0/parts/0").body, "Let me see.")
	is.True(strings.Contains(b.get("/tasks/all/raw/0/0/calls/0/input").body, `"content": "# Poem"`))
	for _, path := range []string{"/turns/1", "/turns/x", "/calls/0/9/0", "/calls/0/0/1", "/calls/0/0/-1", "/raw/", "/raw/0", "/raw/0/x", "/raw/0/0",
		"/raw/0/0/0/0", "/raw/0/0/parts/9", "/raw/0/0/calls/0/x", "/raw/0/0/calls/0/input/x", "/raw/9/input", "/raw/0/99999999999999999999/feedback"} {
		is.Equal(b.get("/tasks/all"+path).status, 404)
	}
}

// TestTaskEnds checks that the page explains how turns ended.
func TestTaskEnds(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe",
		OutputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "json", Title: "Count", Input: "Count." + "\n\n" + scripted(`json {"n":7}`)})
	p := b.get("/tasks/json")
	p.shows("Structured output", "&#34;n&#34;: 7")
	is.Equal(strings.Count(p.body, "&#34;n&#34;"), 2) // in the script and as the output, but not as an answer

	free := s.worker(s.owner, workers.NewWorker{Title: "Free"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: free.ID, TaskID: "failed", Input: scripted("fail 400 the model is on strike")})
	b.get("/tasks/failed").shows("Failed.", "The model is on strike.", "Try again</button>")

	n := store.NewTurn{Caller: s.owner.Caller, WorkerID: free.ID, TaskID: "short", Budget: store.BudgetLow,
		Input: scripted(slices.Repeat([]string{calling("list_files"), calling("list_files", "path", ".")}, 10)...)}
	_, err := s.store.CreateTurn(t.Context(), n)
	is.NoErr(err)
	s.runner.Wake()
	is.Equal(s.ended("short").IncompleteLimit, "steps")
	b.get("/tasks/short").shows("Incomplete.", "the budget &#34;low&#34; has used up its model calls")
}

// TestLongTask checks that the pages of a long task are bounded and that links reach all of it.
func TestLongTask(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	quotes := strings.Repeat(`"<&>' `, 2000)
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "long", Input: quotes + "\n\n" + scripted(
		"repeat 30", calling("write_file", "path", "a.txt", "content", quotes[:800]),
		calling("write_file", "path", "a.txt", "content", quotes[:801]), // more equal calls in a row would count as a loop
		"repeat 29", calling("write_file", "path", "a.txt", "content", quotes[:800]),
		"repeat 3", "think "+quotes, "repeat 3", "say "+quotes)})
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.Usage.Steps, int64(61))
	for i := range 15 {
		s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "long", Input: fmt.Sprint("turn ", i, " ", quotes[:6000], "\n\n", scripted("say "+quotes[:9000]))})
	}
	small := func(path string) page {
		p := b.get(path)
		is.Equal(p.status, 200)
		p.smallerThan(maxLongPage)
		return p
	}
	turns := map[string]bool{}
	for next := "/tasks/long"; next != ""; {
		p := small(next)
		for _, m := range regexp.MustCompile(`id="turn-(\d+)"`).FindAllStringSubmatch(p.body, -1) {
			is.True(!turns[m[1]])
			turns[m[1]] = true
		}
		next = link(p, "« Older turns")
	}
	is.Equal(len(turns), 16)
	steps := map[string]bool{}
	for next := "/tasks/long/turns/0"; next != ""; {
		p := small(next)
		for _, m := range regexp.MustCompile(`<p>Step (\d+) ·`).FindAllStringSubmatch(p.body, -1) {
			is.True(!steps[m[1]])
			steps[m[1]] = true
		}
		next = link(p, "Later steps »")
	}
	is.Equal(len(steps), 61)
	small("/tasks/long/calls/0/3/0")
	is.Equal(b.get("/tasks/long/raw/0/input").body, turn.Input)
	is.Equal(b.get("/tasks/long/raw/0/output").body, turn.OutputText)
}

// TestFollowUp continues a task with files. Two clicks must create one turn.
func TestFollowUp(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "talk", Input: scripted("say one")})
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(b.get("/tasks/talk").body)[1]
	for range 2 {
		p := b.send(b.form("/tasks/talk", []string{"token", token, "input", scripted(calling("read_file", "path", "notes.txt"), "say {{last}}"),
			"budget", "low"}, "notes.txt", "remember the milk"))
		is.Equal(p.status, 303)
		is.Equal(p.location(), "/tasks/talk#newest")
	}
	turn := s.ended("talk")
	is.Equal(turn.Seq, int64(1)) // the second click created no turn
	is.Equal(turn.TriggeredBy, people.TriggerUI)
	is.Equal(turn.Budget, store.BudgetLow)
	is.True(strings.Contains(turn.OutputText, "remember the milk"))
	b.get("/tasks/talk").shows(">notes.txt</span>", "remember the milk", "Turn 2")

	p := b.send(b.form("/tasks/talk", []string{"token", token, "input", "line\r\nanother", "budget", "low"}))
	is.Equal(p.status, 303) // the form comes from the browser's history, and has another text
	is.Equal(s.ended("talk").Input, "line\nanother")

	for name, fields := range map[string][]string{"empty": {"input", ""}, "budget": {"input", "kept text", "budget", "huge"}} {
		p := b.send(b.form("/tasks/talk", fields))
		p.answers(422).shows(map[string]string{"empty": "is required", "budget": "kept text"}[name])
	}
	tooMany := make([]string, 2*21)
	for i := range tooMany {
		tooMany[i] = "a.txt"
	}
	b.followUp("talk", "Keep these words", tooMany...).answers(422).shows("A request has at most 20 files.", "Keep these words</textarea>")
	r := b.form("/tasks/talk", []string{"input", "cut"})
	r.Header.Set("Content-Type", "multipart/form-data; boundary=other")
	is.Equal(b.send(r).status, 400)
	is.Equal(b.post("/tasks/talk", "input", "no multipart").status, 400)
	cross := b.form("/tasks/talk", []string{"input", "from elsewhere"})
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	is.Equal(b.send(cross).status, 403)
	is.Equal(s.ended("talk").Input, "line\nanother") // the refused form had no effect

	is.Equal(b.post("/tasks/talk/archive").location(), "/tasks?done=task-archived")
	b.get("/tasks/talk").shows("The task is archived and takes no new instructions.", `<span class="pill">archived</span>`)
	is.Equal(b.followUp("talk", "more").status, 422)
	is.NoErr(s.store.DeleteWorker(t.Context(), s.owner.Caller, w.ID))
	b.get("/tasks/talk").shows("The worker is deleted", "Scribe (deleted)")
}

// TestCancelTask opens a running task and cancels it.
func TestCancelTask(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: scripted("say first")})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: scripted("wait 1h", "say never")})
	s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "slow", Input: scripted("say queued")})
	p := b.get("/tasks/slow")
	p.shows(`<script src="/assets/`, `live.js"`, "Stop</button>", `<noscript><meta http-equiv="refresh" content="10"></noscript>`)
	// Ended turns have no live part.
	ordertest.Below(is, strings.Index(p.body, `id="turn-0"`), strings.Index(p.body, `id="flow-1"`))
	p.shows(`id="turn-2"`, `id="flow-2"`, "Queued")
	is.Equal(b.get("/tasks/slow?still").has("http-equiv"), false)
	stream := strings.ReplaceAll(regexp.MustCompile(`data-stream="([^"]+)"`).FindStringSubmatch(p.body)[1], "&amp;", "&")
	is.True(strings.HasPrefix(stream, "/tasks/slow/live?") && strings.Contains(stream, "turn=1"))
	cancelled := b.post("/tasks/slow/cancel")
	is.Equal(cancelled.location(), "/tasks/slow?done=task-cancelled")
	is.Equal(s.ended("slow").Status, store.Aborted)
	events := b.get(stream).body
	is.True(strings.Contains(events, `"end-1"`) && strings.Contains(events, `"end-2"`) && strings.HasSuffix(events, "data: [DONE]\n\n"))
	is.Equal(strings.Contains(events, `"turn-0"`), false) // it begins after the pieces that the page has
	after := b.get("/tasks/slow?done=task-cancelled")
	after.shows("The task is cancelled.", "Cancelled.", "Cancelled</span>")
	is.Equal(after.has("live.js"), false)
	is.Equal(b.post("/tasks/slow/cancel").status, 303) // a second cancel changes nothing
}

// TestApprovalPage approves and denies tool calls.
func TestApprovalPage(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	b, member := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	w := s.worker(s.owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	asked := func(id string) string {
		s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: id, Input: scripted(calling("write_file", "path", "<b>.txt", "content", "x"), "say over")})
		return s.approval(id)
	}
	id := asked("yes")
	b.get("/tasks/yes").
		shows("Write &lt;b&gt;.txt?", `<span class="pill">write_file</span>`, `action="/tasks/yes/approvals/`+id+`"`, "waits for approval")
	b.get("/tasks").shows("Waiting for you", `href="/tasks/yes"`)
	other := member.get("/tasks/yes")
	other.shows("Write &lt;b&gt;.txt?", "an Owner or an Admin must decide")
	is.Equal(other.has(">Approve</button>"), false)
	is.Equal(member.post("/tasks/yes/approvals/"+id, "decision", "approve").status, 403)
	is.Equal(b.post("/tasks/yes/approvals/"+id, "decision", "maybe").status, 422)
	is.Equal(b.post("/tasks/yes/approvals/apr_none", "decision", "approve").status, 404)
	is.Equal(b.post("/tasks/yes/approvals/"+id, "decision", "approve").location(), "/tasks/yes?done=call-approved")
	is.Equal(s.ended("yes").Status, store.Completed)
	b.get("/tasks/yes").shows("Approved by", `<span class="tool">write_file</span>`)
	late := b.post("/tasks/yes/approvals/"+id, "decision", "deny")
	is.Equal(late.location(), "/tasks/yes?done=decided-already") // an outdated page leads to the task

	id = asked("no")
	is.Equal(b.post("/tasks/no/approvals/"+id, "decision", "deny", "reason", strings.Repeat("x", 1001)).status, 422)
	is.Equal(b.post("/tasks/no/approvals/"+id, "decision", "deny", "reason", "not <that> file").location(), "/tasks/no?done=call-denied")
	is.Equal(s.ended("no").Status, store.Completed)
	b.get("/tasks/no").shows("Denied by", "Not &lt;that&gt; file.", "a person has denied this call")
}

// TestQuestionPage answers a worker's questions with a button and as text.
func TestQuestionPage(t *testing.T) {
	is, s := onSite(t)
	s.join("mo@example.com", people.RoleMember)
	b, member := s.signIn("ann@example.com"), s.signIn("mo@example.com")
	w := s.worker(s.owner, workers.NewWorker{Title: "Curious"})
	ask := func(id, question string) string {
		s.begin(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: id, Input: scripted("tool ask_user "+question, "say It is {{last}}")})
		return s.approval(id)
	}
	id := ask("one", `{"question": "Which <b>?", "choices": ["red & hot", "blue"]}`)
	b.get("/tasks/one").
		shows("Which &lt;b&gt;?", `name="choice" value="1">red &amp; hot</button>`, "waits for an answer", `name="answer"`)
	b.get("/tasks?waitingFor=person").shows(`1<span class="unseen"> waiting for you</span>`, `href="/tasks/one"`)
	is.Equal(member.get("/tasks").has("waiting for you"), false)
	b.get("/tasks?waitingFor=model").shows("No task matches")
	is.Equal(b.get("/tasks?waitingFor=rain").status, 422)
	is.Equal(member.get("/tasks/one").has(`name="answer"`), false)
	is.Equal(member.post("/tasks/one/approvals/"+id, "answer", "red").status, 403)
	is.Equal(b.post("/tasks/one/approvals/"+id, "choice", "3").status, 422)
	is.Equal(b.post("/tasks/one/approvals/"+id, "decision", "approve").status, 422) // the form is for another kind
	is.Equal(b.post("/tasks/one/approvals/"+id, "choice", "1").location(), "/tasks/one?done=question-answered")
	s.ended("one")
	b.get("/tasks/one").shows("Answered by", "red &amp; hot")
	is.Equal(b.post("/tasks/one/approvals/"+id, "answer", "late").location(), "/tasks/one?done=decided-already")
	id = ask("two", `{"question": "When?"}`)
	is.Equal(b.post("/tasks/two/approvals/"+id, "answer", "at\r\nnoon").location(), "/tasks/two?done=question-answered")
	s.ended("two")
	b.get("/tasks/two").shows(`at\nnoon`)

	// A follow-up is the answer, too. An instruction that runs again is not.
	ask("three", `{"question": "Which?", "choices": ["red", "blue"]}`)
	is.Equal(b.followUp("three", "2").status, 303)
	is.Equal(s.ended("three").OutputText, `It is {"answer":"blue"}`)
	ask("four", `{"question": "Which?"}`)
	is.Equal(b.post("/tasks/four/turns/0/again", "token", "t").status, 303)
	is.Equal(b.send(b.form("/tasks/four", []string{"input", "edited", "from", "0"})).status, 303)
	task, _, err := s.store.Task(t.Context(), s.owner.Caller, "four")
	is.NoErr(err)
	is.Equal(task.TurnCount, int64(3))
	is.Equal(b.post("/tasks/four/cancel").status, 303)
}

// TestManyApprovals has a turn with more approvals, and longer arguments, than a page can show.
func TestManyApprovals(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := claimed(t, st, store.NewTurn{TaskID: "asks", Input: strings.Repeat(`"<>`, 9000)})
	step := store.Step{Attempt: 1, Finish: "tool-calls", Model: "m", StartedAt: time.Now(), CompletedAt: time.Now()}
	for i := range int64(32) {
		input := fmt.Sprintf(`{"n":%d,"command":%q}`, i, strings.Repeat("<rm> ", 600))
		step.Parts = append(step.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint("c", i), ToolName: "shell", Input: []byte(input)})
		step.Approvals = append(step.Approvals, store.Approval{ID: db.NewID("apr", time.Now()), Call: i})
	}
	is.NoErr(st.JournalStep(ctx, claim, step))
	_, suspended, err := st.SuspendTurn(ctx, claim, 0, time.Now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended)
	is.NoErr(st.StopRunner(ctx, "r"))
	b := newSiteOf(t, st).signIn("ann@example.com")
	p := b.get("/tasks/asks")
	is.Equal(p.status, 200)
	p.smallerThan(maxLongPage)
	is.Equal(strings.Count(p.body, ">Approve</button>"), 6)
	p.shows("26 more calls need approval after these.")
	b.get("/tasks/asks/raw/0/0/calls/5/input").shows(`"n": 5`)
	p.shows(`href="/tasks/asks/raw/0/0/calls/5/input"`)
}

// approval waits until a task asks for an approval, and returns its id.
func (s *site) approval(taskID string) string {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		list, _, err := s.store.Approvals(s.t.Context(), s.owner.Caller, store.ApprovalQuery{TaskID: taskID, Limit: 5})
		s.ok(err)
		if len(list) > 0 && list[0].Status == store.ApprovalPending && s.runner.Running() == 0 {
			return list[0].ID
		}
		s.ok(s.t.Context().Err())
	}
}

// TestUnmadeCallIsNoText checks that the conversation does not show a call that could not be made as words of the
// worker, and that the page of the turn does, with its reason.
func TestUnmadeCallIsNoText(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := claimed(t, st, store.NewTurn{TaskID: "told", Input: "go"})
	now := time.Now()
	step := store.Step{Attempt: 1, Parts: []store.Part{{Type: store.PartText, Text: "I write it."}, {Type: store.PartUnmade, Text: "<tool_call>{"}},
		Finish: store.FinishMistake, Feedback: "Its arguments are wrong.", Model: "m", StartedAt: now, CompletedAt: now.Add(time.Second)}
	is.NoErr(st.JournalStep(ctx, claim, step))
	step.Seq, step.Feedback = 1, "The server could not read it: raw='[tool_code"
	step.Parts = []store.Part{{Type: store.PartText, Text: "I try."}}
	is.NoErr(st.JournalStep(ctx, claim, step))
	step.Seq, step.Feedback, step.Finish, step.Parts = 2, "", "stop", []store.Part{{Type: store.PartText, Text: "Done."}}
	_, err := st.FinishTurn(ctx, claim, &step, store.Outcome{Status: store.Completed, OutputText: "Done."})
	is.NoErr(err)
	is.NoErr(st.StopRunner(ctx, "r"))
	b := newSiteOf(t, st).signIn("ann@example.com")
	p := b.get("/tasks/told")
	p.shows("I write it.", "Its arguments are wrong.", "I try.", "Done.")
	is.True(!p.has("tool_call"))
	is.True(!p.has("tool_code")) // the error of a server that could not read the call
	b.get("/tasks/told/turns/0").shows("I write it.", "Tool call that could not be made", "&lt;tool_call&gt;{", "raw=&#39;[tool_code")
	b.get("/tasks/told/raw/0/0/parts/1").shows("<tool_call>{")
}

// TestCompactionNotes checks that the page describes how a conversation was shortened, before the
// step for which it was shortened.
func TestCompactionNotes(t *testing.T) {
	t.Parallel()
	is, ctx, st := is.New(t), t.Context(), storetest.Open(t, store.Options{})
	claim := claimed(t, st, store.NewTurn{TaskID: "full", Input: "go"})
	now := time.Now()
	step := store.Step{Attempt: 1, Parts: []store.Part{{Type: store.PartText, Text: "One."}}, Finish: "stop", Feedback: "Call a <tool>.", Model: "m", StartedAt: now, CompletedAt: now.Add(time.Second)}
	is.NoErr(st.JournalStep(ctx, claim, step))
	for _, m := range []store.Compaction{
		{Kind: store.CompactionCut, CutTo: 2048, Items: 3}, {Kind: store.CompactionFiles, Items: 1},
		{Kind: store.CompactionSummary, Items: 12, Summary: "They spoke of <b>rivers</b>.", Refused: true}, {Kind: store.CompactionOmission, Items: 4, Summary: "left out"},
	} {
		m.Step, m.Model, m.TokensBefore, m.TokensAfter, m.StartedAt, m.CompletedAt = 1, "small-model", 9000, 4000, now, now
		is.NoErr(st.JournalCompaction(ctx, claim, m))
	}
	step.Seq, step.Feedback, step.Parts = 1, "", []store.Part{{Type: store.PartText, Text: "Two."}}
	_, err := st.FinishTurn(ctx, claim, &step, store.Outcome{Status: store.Completed, OutputText: "Two."})
	is.NoErr(err)
	is.NoErr(st.StopRunner(ctx, "r"))
	p := newSiteOf(t, st).signIn("ann@example.com").get("/tasks/full")
	p.shows("3 long tool outputs were truncated to 2.0 KiB each. The conversation was shortened to fit small-model, from about 9,000 to 4,000 tokens.")
	p.shows("1 attached file is listed by name only.")
	p.shows("12 earlier model calls were summarised. The conversation was too long for small-model", "They spoke of &lt;b&gt;rivers&lt;/b&gt;.")
	p.shows("4 earlier model calls were left out")
	p.shows("Feedback to the model", "Call a &lt;tool&gt;.")
	ordertest.Below(is, strings.Index(p.body, "One."), strings.Index(p.body, "were summarised"))
	ordertest.Above(is, strings.Index(p.body, "Two."), strings.Index(p.body, "were summarised"))
}
