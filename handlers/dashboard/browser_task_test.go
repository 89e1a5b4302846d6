package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestBrowserLive watches a task run, approves one of its calls, and compares the end with the
// server's page. Typed text stays, and the page does not reload repeatedly.
func TestBrowserLive(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"list_files", "write_file"}}})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "live", Title: "A live task",
		Input: dashboardtest.Scripted("say Before.")})
	w.open("/tasks/live")
	w.fill("Follow-up", "Do it.\n\n"+dashboardtest.Scripted(dashboardtest.Calling("list_files"),
		"think Let me <b>see</b>.", "wait 400ms", "say The first words", "wait 400ms", "say and then", "wait 400ms", "say <i>more</i>.",
		dashboardtest.Calling("write_file", "path", "a.txt", "content", "<script>"), dashboardtest.Calling("publish_file",
			"path", "a.txt"), "wait 2s", "say All **done**."))
	w.click("Send")
	w.arrives("/tasks/live")
	w.sees("Allow list_files?")
	// From here on the page records each text of the answer.
	w.text(`(() => { window.had = []; new MutationObserver(() => {
		const text = document.querySelector('#flow-1 > .md');
		if (text && window.had.at(-1) !== text.textContent) window.had.push(text.textContent);
	}).observe(document.querySelector('#turns'), {childList: true, subtree: true, characterData: true}); })()`)
	_, err := s.Runner.DecideApproval(t.Context(), s.Owner.Caller, "live", s.Approval("live"),
		store.Decision{Approved: true})
	is.NoErr(err)
	w.sees("The first words and then more.")
	had := w.text("window.had.join('|')")
	ordertest.AtLeast(is, strings.Count(had, "|"), 1) // the text grew
	is.True(strings.HasSuffix(had, "The first words\nand then\nmore."))
	is.Equal(w.text("document.querySelector('#flow-1 .reasoning').open"), "false") // folded
	w.click("Reasoning")
	w.until("the reasoning", "document.querySelector('#flow-1 .reasoning').open")
	w.sees("Let me <b>see</b>.")

	w.sees("waits for approval", "Write a.txt?")
	is.True(w.text("window.had.length") != "undefined")                                          // without loading the page again
	is.Equal(w.text("document.querySelector('#flow-1 .reasoning').open"), "true")                // elements that the user has opened stay open
	is.Equal(w.text("document.querySelectorAll('#turn-0').length"), "1")                         // ended turns stay
	is.Equal(w.text("document.querySelector('#bar-state').innerText.trim()"), "Waiting for you") // not "Running"
	w.click("Approve")
	w.sees("The call is approved and runs.")
	w.fill("Follow-up", "Half a thought")
	is.Equal(w.text("String(document.querySelector('#box-1 .acts'))"), "null") // the task still runs
	w.text("window.same = true")
	w.sees("All done.")
	w.until("the end", "document.querySelector('#box-1 .acts')")
	is.Equal(w.text("window.same"), "true")
	is.Equal(w.text("document.querySelector('#f-input').value"), "Half a thought")
	is.Equal(w.text("performance.getEntriesByType('resource').filter((r) => new URL(r.name).pathname === '/tasks/live').length <= 3"), "true")
	is.Equal(w.text("document.querySelector('#bar-state').innerText.trim()"), "Done")
	is.True(strings.HasPrefix(w.text("document.querySelector('#now').innerText"), "Last turn")) // no longer "Now"
	is.Equal(w.text("document.querySelector('#f-input').placeholder"), "Continue this task")
	w.sees("a.txt", "Run again")
	w.lacks("Stop")
}

// TestBrowserCancel cancels a running task and opens it without scripts.
func TestBrowserCancel(t *testing.T) {
	_, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Slow"})
	w.open("/tasks")
	w.look("tasks-none")
	s.Begin(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "slow", Input: dashboardtest.Scripted("say Working.",
		dashboardtest.Calling("list_files"), "say On it.", "wait 1h", "say never")})
	w.open("/tasks/slow")
	w.sees("Working.", "On it.")
	w.look("task-running")
	w.script(false)
	w.open("/tasks/slow?still")
	w.sees("Working.", "Running", "Check again")
	w.script(true)
	w.open("/tasks/slow")
	w.sees("On it.")
	w.click("Stop")
	w.sees("The task is cancelled.", "Cancelled.", "On it.")
	w.look("task-cancelled")
}

// TestBrowserTaskPages opens pages whose texts try to change the page.
func TestBrowserTaskPages(t *testing.T) {
	is, s, w := inBrowser(t)
	evil := `<script>alert(1)</script><img src=x onerror=alert(1)>` + strings.Repeat("unbroken", 30)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: evil[:180],
		OutputSchema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)})
	free := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "json", Title: "Structured",
		Input: "Where?\n\n" + dashboardtest.Scripted(`json {"city":"<b>Rome</b>"}`)})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: free.ID, TaskID: "fails", Title: "Fails",
		Input: dashboardtest.Scripted("say first", dashboardtest.Calling("read_file", "path", "none"), "fail 400 the model is on strike")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: free.ID, TaskID: "evil", Title: evil,
		Input: evil + "\n\n" + dashboardtest.Scripted("think "+evil, "say "+evil,
			dashboardtest.Calling("write_file", "path", "long.txt", "content", strings.Repeat(evil,
				40)), "say | a | b |", "say |---|---|", "say | "+evil+" | "+strings.Repeat("x", 300)+" |")})
	steps := make([]string, 0, 60)
	for i := range 30 {
		steps = append(steps, fmt.Sprint("wait ", i%7*3, "ms"), dashboardtest.Calling("write_file", "path", "n.txt",
			"content", fmt.Sprint(i)))
	}
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: free.ID, TaskID: "steps", Title: "Many steps",
		Input: "Work.\n\n" + dashboardtest.Scripted(append(steps, "say Done.")...)})
	for _, page := range []string{"/tasks/json", "/tasks/fails", "/tasks/evil", "/tasks/steps", "/tasks/steps/turns/0", "/tasks/evil/calls/0/0/0"} {
		w.open(page)
		w.look(strings.ReplaceAll(strings.TrimPrefix(page, "/"), "/", "-"))
	}
	w.open("/tasks/steps")
	w.until("the link", "document.querySelector('.reply > p > .link')")
	w.click(strings.TrimSpace(w.text("document.querySelector('.reply > p > .link').innerText")))
	w.arrives("/tasks/steps/turns/0")
	w.click("Later steps »")
	w.sees("Step 31")
	is.Equal(w.path(), "/tasks/steps/turns/0")
}

// TestBrowserFollowUp sends an instruction with a chosen and a dropped file, by keyboard.
func TestBrowserFollowUp(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Reader"})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "read", Title: "Reading",
		Input: dashboardtest.Scripted("say Ready.")})
	chosen := filepath.Join(t.TempDir(), "chosen.txt")
	is.NoErr(os.WriteFile(chosen, []byte("from the disk"), 0o600))
	w.open("/tasks/read")
	w.sees("Ready.")
	wrong := filepath.Join(t.TempDir(), "wrong.txt")
	is.NoErr(os.WriteFile(wrong, []byte("private"), 0o600))
	w.choose("#f-files", wrong, chosen)
	w.click("Remove wrong.txt")
	is.Equal(w.text("document.activeElement.id"), "f-input") // the removed button had the focus
	is.Equal(w.text(`(() => {
		const carried = new DataTransfer();
		carried.items.add(new File(['from a drop'], '<b>dropped.txt'));
		document.querySelector('form[data-drop]').dispatchEvent(new DragEvent('drop', {dataTransfer: carried, bubbles: true, cancelable: true}));
		return document.querySelector('#f-files').files.length;
	})()`), "2")
	w.fill("Follow-up", dashboardtest.Scripted(dashboardtest.Calling("read_file", "path", "chosen.txt"), "say {{last}}",
		dashboardtest.Calling("read_file", "path", "_b_dropped.txt"), "say {{last}}"))
	is.NoErr(chromedp.Do(w.ctx, chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))))
	w.sees("Turn 2", "chosen.txt", "dropped.txt", "Reading")
	w.until("the end", "document.querySelector('#box-1 .acts')")
	turn := s.Ended("read")
	is.Equal(turn.Status, store.Completed)
	files, err := s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2)
	w.look("task-files")
}

// observeLost records that the banner of a lost connection was shown.
const observeLost = `(() => {
	const lost = document.querySelector('#lost')
	new MutationObserver(() => { lost.shown ||= !lost.hidden && lost.innerText.includes('Connection lost.') })
		.observe(lost, {attributes: true, childList: true, subtree: true})
	return 'observed'
})()`

// TestBrowserReconnects closes the connection of a stream, which must continue where it stopped.
func TestBrowserReconnects(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.Begin(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "broken", Title: "Broken",
		Input: "Go.\n\n" + dashboardtest.Scripted(
			"think one", dashboardtest.Calling("list_files"), "think two", dashboardtest.Calling("list_files"), "say The end.")})
	w.open("/tasks/broken")
	w.until("the first step", "document.querySelectorAll('#flow-0 .reasoning').length === 1 && document.querySelector('#flow-0 .call .res.wait')")
	w.text("document.querySelector('#flow-0 .reasoning').mark = 'same'")
	first := s.Approval("broken")
	w.text(observeLost) // the page may have reconnected before the test reads it
	s.Drop()
	w.until("the lost connection", "document.querySelector('#lost').shown")
	w.until("the new connection", "document.querySelector('#lost').hidden")
	_, err := s.Runner.DecideApproval(t.Context(), s.Owner.Caller, "broken", first, store.Decision{Approved: true})
	is.NoErr(err)
	w.until("the second step", "document.querySelectorAll('#flow-0 .reasoning').length === 2")
	is.Equal(w.text("document.querySelector('#flow-0 .reasoning').mark"), "same")
	is.Equal(w.text("[...document.querySelectorAll('#flow-0 .reasoning .textual')].map((e) => e.textContent).join()"), "one,two") // nothing is repeated
	_, err = s.Runner.DecideApproval(t.Context(), s.Owner.Caller, "broken", s.Approval("broken"),
		store.Decision{Approved: true})
	is.NoErr(err)
	w.until("the end", "document.querySelector('#end-0') && document.body.innerText.includes('The end.')")
}
