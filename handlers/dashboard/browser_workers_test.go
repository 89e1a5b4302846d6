package dashboard_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestBrowserWorkerOfTask keeps a worker that a task made.
func TestBrowserWorkerOfTask(t *testing.T) {
	_, s, w := inBrowser(t)
	s.Worker(s.Owner, workers.NewWorker{Title: "Clerk", Summary: "Keeps the books of the harbour office"})
	w.open("/")
	w.fill("What should be done?", "Write a haiku about rivers")
	w.click("Run")
	w.until("the page of the task", "location.pathname.startsWith('/tasks/tsk_')")
	s.Ended(strings.TrimPrefix(w.path(), "/tasks/"))
	w.open("/workers")
	w.sees("Clerk", "Workers made by tasks")
	w.look("workers-others")
	w.click("Workers made by tasks")
	w.arrives("/workers")
	w.sees("Write a haiku about rivers")
	w.look("workers-of-tasks")
	w.click("Write a haiku about rivers")
	w.sees("A task made this worker.")
	w.look("worker-of-task")
	w.click("Keep")
	w.sees("The worker is in the lists now.")
	w.open("/workers")
	w.sees("Clerk", "Write a haiku about rivers")
}

func TestBrowserNewWorker(t *testing.T) {
	is, s, w := inBrowser(t)
	w.open("/workers")
	w.look("workers-empty")
	w.click("New worker")
	w.arrives("/workers/new")
	w.look("worker-new")

	// The schema is checked while it is typed.
	w.click("Write it by hand")
	w.fill("Output schema", `{"type": "objekt"}`)
	w.sees("is not a Draft-07 JSON Schema")
	w.fill("Output schema", `{"type": "object"`)
	w.sees("is not JSON: line 1")
	w.look("worker-new-by-hand")
	w.fill("Output schema", `{"type": "object"}`)
	w.until("no complaint", "document.getElementById('e-outputSchema').textContent === ''")
	w.fill("Title", "Clerk")
	w.fill("Summary", "Keeps the books of the harbour office")
	w.fill("Instructions", "Be brief.")
	w.click("Create worker")
	w.sees("The worker is ready.", "Clerk", "Be brief.")

	w.open("/workers/new")
	w.fill("What should it be good at?", "summing up the minutes of meetings")
	w.click("Write the worker")
	w.sees("This is what the model wrote")

	// Files are dropped on the box.
	w.open("/workers/new")
	_, err := evaluate[bool](w, `(() => { const t = new DataTransfer(); t.items.add(new File(["The harbour opened in 1901."], "harbour.txt"));
		t.items.add(new File(["dropped"], "b.txt"));
		document.querySelector("form[data-drop]").dispatchEvent(new DragEvent("drop", {dataTransfer: t, bubbles: true, cancelable: true})); return true })()`)
	is.NoErr(err)
	is.Equal(w.text("document.querySelector('#f-files').files.length"), "2")
	w.fill("What should be done?", "Sum up harbour.txt")
	w.click("Run")
	w.until("the page of the task", "location.pathname.startsWith('/tasks/tsk_')")
	turn := s.Ended(strings.TrimPrefix(w.path(), "/tasks/"))
	files, err := s.Store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 2)
}

func TestBrowserWorker(t *testing.T) {
	is, s, w := inBrowser(t)
	long := strings.Repeat("unbreakable", 30)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Harbour clerk", Summary: "Keeps the books of the harbour office",
		OutputSchema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`),
		Visibility:   workers.Private, Instructions: "You keep the books of the harbour office.\n\n- Be brief.\n- Name your sources. " + long,
		Settings: workers.Settings{Model: "offline", ApprovalTools: []string{"publish_file", "crm.send"},
			MCPTools: []string{"crm"},
			Tools: workers.ToolRules{{Tool: "read_file"}, {Tool: "web_fetch", Hosts: []string{"example.com", "*.example.org"}},
				{Tool: "crm"}}}})
	plain := s.Worker(s.Owner, workers.NewWorker{Title: long[:150], Instructions: "Hello"})
	mo := s.Join("mo@example.com", people.RoleMember)
	w.open("/workers")
	w.look("workers")
	w.open("/workers/" + plain.ID)
	w.look("worker-idle")
	w.fill("Instruction", dashboardtest.Scripted("say hello"))
	w.click("Run")
	w.until("the page of the task", "location.pathname.startsWith('/tasks/tsk_')")
	s.Ended(strings.TrimPrefix(w.path(), "/tasks/"))
	w.open("/workers/" + plain.ID)
	w.look("worker")
	w.open("/workers/" + wrk.ID)
	w.look("worker-private")

	w.click("Edit")
	w.arrives("/workers/" + wrk.ID + "/settings")
	w.look("worker-settings")
	w.fill("Title", "Harbour office")
	w.click("Save")
	w.sees("Saved. New tasks use the new version.", "Harbour office")
	w.click("Members")
	w.arrives("/workers/" + wrk.ID + "/members")
	w.look("worker-members-none")
	w.fill("Email address", mo.Email)
	w.click("Invite")
	w.sees("Invited. This member can now see the worker.")
	w.look("worker-members")

	w.click("Schedules")
	w.arrives("/workers/" + wrk.ID + "/schedules")
	w.look("worker-schedules-none")
	w.fill("Instruction", "What is new in the harbour?")
	w.click("At an interval")
	w.fill("Every", "2")
	w.click("Create schedule")
	w.sees("every 2 hours", "Next runs")
	w.look("worker-schedules")
	w.click("Pause")
	w.sees("paused")
	w.click("Change")
	w.sees("Change a schedule")
	w.look("worker-schedule")
	w.click("Once, at a date")
	w.fill("Date and time", "2090-01-31T09:00")
	w.click("Save")
	w.sees("once, at Tue 31 Jan 2090 09:00:00 UTC")
	w.click("Cancel")
	w.sees("The schedule is cancelled.")
	is.Equal(w.asked(), "Cancel this schedule? It will not run any more.")

	w.click("Edit")
	w.arrives("/workers/" + wrk.ID + "/settings")
	w.click("Delete this worker")
	w.click("Yes, delete")
	w.click("Delete the worker")
	w.sees("The worker is deleted.")
	w.arrives("/workers")

	theirs := newWindow(s).borrow(s.SignIn(mo.Email))
	theirs.open("/workers/" + plain.ID + "/settings")
	theirs.lacks("Save")
	theirs.look("worker-definition")
}

func TestBrowserWebhook(t *testing.T) {
	is, s, w := inBrowser(t)
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(end.Close)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Harbour clerk"})
	path := "/workers/" + wrk.ID + "/webhook"
	w.open(path)
	w.look("worker-webhook-none")
	w.fill("URL", end.URL+"/hooks/harbour")
	w.click("Set up the webhook")
	w.sees("The webhook is saved.")
	hook, err := s.Store.Effects.Webhook(t.Context(), s.Owner.Caller, wrk.ID)
	is.NoErr(err)
	w.lacks(hook.Token)
	w.click("Show the token")
	w.sees(hook.Token)
	w.lacks(hook.SigningSecret)
	w.click("Send a test")
	w.sees("Sent. This page shows the result.", "the endpoint answered 500", "X-Service-Token: (hidden)")
	w.look("worker-execution")
	w.click("Send it again")
	w.sees("Sent. This page shows the result.")
	w.click("All executions")
	w.arrives(path)
	w.click("Show the token")
	w.look("worker-webhook")
	w.click("Regenerate both")
	w.sees("The old ones no longer work.")
	w.click("Remove the webhook")
	w.sees("The webhook is removed.")
}

func TestBrowserFiles(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Harbour clerk"})
	w := newWindow(s).borrow(b)
	w.open("/workers/" + wrk.ID + "/files")
	w.look("worker-files-none")
	png, err := base64.StdEncoding.DecodeString(dashboardtest.Pixel)
	is.NoErr(err)
	pdf, err := os.ReadFile("testdata/one.pdf")
	is.NoErr(err)
	b.PublishBytes(wrk, "pixel.png", png)
	b.PublishBytes(wrk, "evil.svg",
		[]byte(`<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><rect width="90" height="60" fill="teal"/><script>alert(1)</script></svg>`))
	b.PublishBytes(wrk, "one.pdf", pdf)
	b.PublishBytes(wrk, "evil.html", []byte(`<script>fetch("/workers").then(() => alert(1))</script><p>Hello`))
	s.Publish(wrk, "reports/"+strings.Repeat("long", 40)+".md",
		"# Harbour\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"+dashboardtest.Hostile)
	w.open("/workers/" + wrk.ID + "/files")
	w.look("worker-files")
	for name, address := range b.Get("/workers/" + wrk.ID + "/files").Previews() {
		w.open(address)
		w.look("worker-file-" + strings.TrimPrefix(filepath.Ext(name), "."))
		if strings.HasSuffix(name, ".png") || strings.HasSuffix(name, ".svg") {
			w.until("the picture of "+name, "document.querySelector('img.preview').naturalWidth > 0")
		}
	}
	// The file itself can act only as a page of its own origin.
	w.open("/api/workers/" + wrk.ID + "/files/evil.html")
	w.sees("Hello")
	is.Equal(w.text("self.origin"), "null")
}

// TestBrowserWorkerWithoutScript reads and changes a worker without JavaScript.
func TestBrowserWorkerWithoutScript(t *testing.T) {
	_, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Harbour clerk", Instructions: "Be brief."})
	s.Publish(wrk, "haiku.md", "# Harbour")
	w.script(false)
	w.open("/workers")
	w.click("Harbour clerk")
	w.sees("Recent tasks", "Be brief.")
	w.click("Files")
	w.click("haiku.md")
	w.sees("Harbour")
	w.click("Schedules")
	w.sees("There are no schedules yet")
	w.fill("Instruction", "What is new?")
	w.click("Once, after a delay") // its fields are shown without a script
	w.fill("In", "3")
	w.click("Create schedule")
	w.sees("once, 3 hours after creation")
	w.click("Edit")
	w.arrives("/workers/" + wrk.ID + "/settings")
	w.fill("Output schema", "{")
	w.click("Save")
	w.sees("is not JSON: line 1")
	w.click("Overview")
	w.sees("Recent tasks")
	w.fill("Instruction", dashboardtest.Scripted("say hello"))
	w.click("Run")
	w.until("the page of the task", "location.pathname.startsWith('/tasks/tsk_')")
}

// TestBrowserStartersAndVersions tries a starter, changes its worker at the same time as another
// user, and restores its first version.
func TestBrowserStartersAndVersions(t *testing.T) {
	is, s, w := inBrowser(t)
	w.open("/workers/new")
	w.look("worker-new-starters")
	w.click("Try it Meeting notes to actions")
	w.until("the page of the task", "location.pathname.startsWith('/tasks/tsk_')")
	turn := s.Ended(strings.TrimPrefix(w.path(), "/tasks/"))
	page := "/workers/" + turn.WorkerID
	w.open(page)
	w.sees("Meeting notes to actions", "live", "Use by API")
	w.look("worker-starter")

	w.open(page + "/settings")
	w.fill("Instructions", "Mine.")
	w.sees("Changed: Instructions")
	_, err := s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, turn.WorkerID,
		workers.Patch{Instructions: new("Theirs.")})
	is.NoErr(err)
	w.click("Save")
	w.sees("Somebody else changed this", "Theirs.", "Mine.")
	w.look("worker-settings-both")
	w.click("Save")
	w.sees("Saved. New tasks use the new version.")
	w.click("Versions")
	w.arrives(page + "/versions")
	w.look("worker-versions")
	w.click("Compare v3")
	w.sees("From version 2 to version 3")
	w.look("worker-version")
	w.open(page + "/versions/1")
	w.click("Restore version 1")
	w.sees("Restored as a new version.", "restored from v1")

	w.click("Schedules")
	w.arrives(page + "/schedules")
	w.fill("Cron expression", "0 7 * * 1")
	w.sees("Mon ", "07:00:00 UTC")
	w.fill("Cron expression", "x")
	w.until("what is wrong", "document.querySelector('[data-says].bad') !== null")
}
