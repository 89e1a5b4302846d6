package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// busySite returns a site with running, waiting, failed and completed tasks, and a window of its owner.
func busySite(t *testing.T) (is *is.I, s *dashboardtest.Site, w *window, careful workers.Worker) {
	t.Helper()
	is, s, w = inBrowser(t)
	careful = s.Worker(s.Owner, workers.NewWorker{Title: "Green buyer", Summary: "Compares offers with past lots",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	reader := s.Worker(s.Owner, workers.NewWorker{Title: "Invoice reader", Summary: "Reads an invoice into JSON"})
	for _, title := range []string{"INV-20431 from Nordfrakt", "INV-20436 from Hafenlogistik"} {
		s.CarryOut(s.Owner, store.NewTurn{WorkerID: reader.ID, Title: title, Input: dashboardtest.Scripted("say Read")})
	}
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: reader.ID, Title: "Jute bags, food-grade, EU",
		Input: dashboardtest.Scripted("fail 400 the supplier is unknown")})
	s.Begin(s.Owner, store.NewTurn{WorkerID: reader.ID, Title: "Compare revenue by region",
		Input: dashboardtest.Scripted("wait 2m", "say x")})
	s.Asks(careful, "Offer from Finca El Roble")
	return is, s, w, careful
}

// TestBrowserLists uses the first page, the list of workers with its pins, and the list of tasks: it has filters
// and actions on several tasks, shows changes, and keeps the focus, the selection and the typed text.
func TestBrowserLists(t *testing.T) {
	is, s, w, careful := busySite(t)
	w.open("/")
	w.sees("First steps", "Connect a model", "Waiting for you", "Running", "Failed in the last seven days")
	w.look("home")
	w.click("Hide permanently")
	w.until("no first steps", `!document.querySelector(".firststeps")`)
	w.open("/workers")
	w.look("workers")
	w.click("Pin Invoice reader")
	w.until("the pin", `document.querySelector(".pins")?.innerText.includes("Invoice reader")`)
	w.click("Unpin Invoice reader")
	w.until("no pin", `!document.querySelector(".pins")`)

	w.open("/tasks?status=error")
	w.click("Select Jute bags, food-grade, EU")
	w.click("Run again")
	w.sees("One task runs again.")

	w.open("/tasks")
	w.click("More filters")
	w.fill("Status", "completed")
	w.click("Filter")
	w.until("the filter", "location.search.includes('status=completed')")
	w.sees("INV-20431 from Nordfrakt")
	w.lacks("Jute bags, food-grade, EU")
	w.fill("Text", "zebra")
	w.click("Filter")
	w.sees("No task matches")
	w.look("tasks-nothing")

	w.open("/tasks")
	w.sees("Offer from Finca El Roble", "asks: write_file", "the supplier is unknown")
	w.look("tasks")
	_, err := evaluate[bool](w, `(() => { document.querySelector("[data-search]").value = "half a word";
		document.querySelectorAll("tbody input[type=checkbox]")[2].click();
		window.kept = document.querySelectorAll("tbody tr a.title")[3]; window.kept.focus(); return true })()`)
	is.NoErr(err)
	turn := s.Asks(careful, "Refund for order 88213")
	w.sees("Refund for order 88213")
	w.until("the count in the title", "document.title.startsWith('(2)')")
	is.Equal(w.text(`document.querySelector("#nav-tasks .count").firstChild.data`), "2")
	is.Equal(w.text(`[document.activeElement === window.kept, window.kept.isConnected, document.querySelector("[data-search]").value,
		document.querySelectorAll("tbody input:checked").length].join()`), "true,true,half a word,1")
	is.True(strings.Contains(w.text(`document.querySelector("link[rel=icon]").href`), "icon-waiting"))

	// A lost connection is shown, until the page has all changes again.
	_, err = s.Runner.AbortTask(t.Context(), s.Owner.Caller, turn.TaskID)
	is.NoErr(err)
	w.until("the count after a decision", "document.title.startsWith('(1)')")
}

// TestBrowserKeyboard moves in the list by keyboard, selects, opens and goes to other pages. It searches with
// Ctrl+K and opens a result.
func TestBrowserKeyboard(t *testing.T) {
	is, _, w, _ := busySite(t)
	w.open("/tasks")
	w.press("jjx")
	is.Equal(w.text(`document.querySelectorAll("tbody tr")[1].querySelector("input").checked`), "true")
	w.sees("Selected tasks")
	w.press("k")
	w.press(kb.Enter)
	w.sees("Offer from Finca El Roble")
	w.until("the task", "location.pathname.startsWith('/tasks/tsk_')")
	w.press("gw")
	w.arrives("/workers")
	w.press("c")
	w.arrives("/workers/new")
	w.press("n")
	w.arrives("/")
	w.press("?")
	w.sees("Keyboard shortcuts", "Go to “Waiting for you”")
	w.look("shortcuts")
	w.press(kb.Escape)
	w.press("/")
	is.Equal(w.text("document.activeElement.name"), "q")
	w.press("gt")                                                                   // typed into the search
	is.Equal(strings.TrimPrefix(w.text("document.activeElement.value"), "/"), "gt") // the driver types the slash, too
	is.Equal(w.path(), "/")

	palette := func(text string) {
		is.NoErr(chromedp.Do(w.ctx, chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))))
		w.until("the palette", `document.querySelector("#palette").matches(":popover-open")`)
		w.press(text)
	}
	w.open("/tasks")
	palette("inv")
	w.until("results", `document.querySelector("#palette [aria-selected=true]")?.innerText.startsWith("Invoice reader")`)
	w.sees("INV-20431 from Nordfrakt")
	w.look("palette")
	w.press(kb.ArrowDown + kb.ArrowDown)
	w.until("a task is chosen", `document.querySelector("#palette [aria-selected=true]").innerText.includes("INV-204")`)
	w.press(kb.Enter)
	w.until("the task", "location.pathname.startsWith('/tasks/tsk_')")
	palette("invoice")
	w.until("the worker", `document.querySelector("#palette [aria-selected=true]")?.innerText.startsWith("Invoice reader")`)
	is.NoErr(chromedp.Do(w.ctx, chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))))
	w.until("the box of the worker", "location.pathname.startsWith('/workers/wrk_') && location.hash === '#f-input'")

	// Without scripts, the same form leads to a page.
	w.script(false)
	w.open("/workers")
	w.fill("Search", "jute")
	w.press(kb.Enter)
	w.arrives("/search")
	w.sees("Jute bags, food-grade, EU")
	w.script(true)
	w.open("/search?q=jute")
	w.look("search")
}

func TestBrowserMail(t *testing.T) {
	is, s, worker, receive := dashboardtest.NewMailSite(t)
	w := newWindow(s).borrow(s.SignIn("ann@example.com"))
	w.open("/mail")
	w.sees("There is no mail yet", "swaks --server 127.0.0.1:2525", worker.ID+"@mail.example")
	w.look("mail-empty")
	w.click("Held")
	w.arrives("/mail/held")
	w.look("mail-held-empty")

	receive("eve@elsewhere.example", dashboardtest.HostileMail)
	w.open("/mail/held")
	w.look("mail-held")
	w.click("<img src=x")
	w.sees(`</pre><script>alert("text")</script>`)
	w.click("Header")
	w.look("mail-message")
	w.click("Release to the worker")
	w.sees("The mail is released")
	w.click("Open the task")
	w.until("the task", "location.pathname.startsWith('/tasks/')")
	w.until("its end", "document.querySelector('#main').innerText.includes('Done')")

	w.open("/mail/outbox")
	w.sees("eve@elsewhere.example", "Queued")
	w.look("mail-outbox")
	w.click("(not written yet)")
	w.click("Send now")
	w.sees("The reply will be sent as soon as possible.")
	w.look("mail-reply")
	is.Equal(w.asked(), "")
}

func TestBrowserUsage(t *testing.T) {
	_, s, w := inBrowser(t)
	w.open("/usage")
	w.look("usage-empty")
	s.Used(7, 90)
	limit := 25.0
	storetest.CapCredits(t, s.Store, s.Owner.Caller, &limit)
	w.open("/usage")
	w.look("usage")
	w.click("90 days")
	w.sees("in the last 90 days")
	w.click("Turns")
	w.sees("Turns by day and worker")
	w.click("Trigger")
	w.sees("Turns by day and trigger")
	w.click("Day by day")
	w.look("usage-90")
}
