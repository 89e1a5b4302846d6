package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// report is the answer of the tests: each kind of block, as a model would write it.
const report = `## What stands out

Three of four regions grew. **UK & Ireland** grew fastest, and **Benelux is the only one that fell**:

| Region | Q2 | Q3 | Change |
|:--|--:|--:|--:|
| UK & Ireland | 158,020 | 192,480 | +21.8% |
| Nordics | 412,380 | 487,120 | +18.1% |
| Benelux | 201,550 | 176,310 | −12.5% |

1. The Benelux fall comes from **one customer**.
2. The pound moved by 1.1% (see [ECB rates](https://ecb.example/rates)).

- [x] Read the export
- [ ] Ask sales

> Ordered twice in Q2 and not at all in Q3.

` + "``" + "`python\n# Sum by region.\ndef total(rows):\n    return sum(r[\"eur\"] for r in rows)  # 42\n``" + "`\n\nDone with `totals.json`."

// saying returns the script lines for a text with pauses.
func saying(text, pause string) (lines []string) {
	for _, line := range strings.Split(text, "\n") {
		lines = append(lines, "say "+line, "wait "+pause)
	}
	return lines
}

// TestBrowserStream watches an answer grow. The server's Markdown must not move the text that the
// user reads, and must end like the page that is loaded later.
func TestBrowserStream(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Quarterly reporter",
		Settings: workers.Settings{ApprovalTools: []string{"list_files"}}})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "stream", Title: "Compare Q3 revenue by region",
		Input: "Read sales-q3.csv and total revenue by region for Q2 and Q3.\n\n" + dashboardtest.Scripted(
			dashboardtest.Calling("write_file", "path", "totals.json", "content",
				"{\"region\": \"Nordics\", \"eur\": 487120}\n"), dashboardtest.Calling("read_file", "path", "totals.json"), "say Q3 revenue was **€1,226,950**, up **7.5%** on Q2. I listed the rest in `totals.json`.")})
	lines := []string{"think The totals are known from turn 1. Benelux fell while all others rose.",
		`tool update_plan {"items":[{"text":"Read the sales export","state":"done"},{"text":"Write up what stands out","state":"in_progress"},{"text":"Publish report.md"}]}`,
		dashboardtest.Calling("write_file", "path", "template.md", "content",
			"# Report\n\n## Summary\n\n{{one sentence about the quarter}}\n\n| Region | Q3 |\n"),
		dashboardtest.Calling("edit_file", "path", "template.md", "old", "{{one sentence about the quarter}}", "new",
			"{{one sentence about the largest change}}\n{{one sentence about its cause}}"),
		dashboardtest.Calling("read_file", "path", "template.md"), dashboardtest.Calling("read_file", "path", "missing.md"),
		dashboardtest.Calling("publish_file", "path", "template.md"), dashboardtest.Calling("list_files")}
	s.Begin(s.Owner, store.NewTurn{WorkerID: wrk.ID, TaskID: "stream",
		Input: "Compare the regions and tell me what stands out. Put it into report.md from the template.\n\n" +
			dashboardtest.Scripted(append(lines, saying(report, "60ms")...)...)})
	id := s.Approval("stream")
	w.open("/tasks/stream")
	w.sees("Waiting for your approval")
	w.look("task-approval")
	w.text(`(() => {
		window.shift = 0; window.moved = []; window.same = true; window.states = new Set(); window.carets = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) { window.shift += e.value; window.moved.push(e.value.toFixed(4) + ' ' + e.sources.map((x) => (x.node?.id || x.node?.className || x.node?.nodeName) + ' ' + [x.previousRect.y, x.currentRect.y, x.previousRect.height, x.currentRect.height, x.previousRect.x, x.currentRect.x].map(Math.round)).join('; ')); } }).observe({type: 'layout-shift', buffered: false});
		new MutationObserver(() => {
			window.states.add(document.querySelector('#ticker .status').textContent.trim());
			window.carets = Math.max(window.carets, document.querySelectorAll('#flow-1 .md .caret').length);
		}).observe(document.body, {childList: true, subtree: true});
	})()`)
	call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	_, err := s.Runner.DecideApproval(t.Context(), s.Owner.Caller, "stream", id, store.Decision{Approved: true})
	is.NoErr(err)
	w.until("the table", "document.querySelector('#flow-1 .tablebox tbody td')")
	w.shoot("task-live-1280-light.png")
	w.until("the end", "document.querySelector('#end-1 .acts')")
	is.Equal(w.text("window.same"), "true") // without loading the page again
	is.Equal(w.text("window.carets"), "1")  // one caret, at the end of the text
	if w.text("window.shift < 0.02") != "true" {
		t.Errorf("the page has shifted by %s: %s", w.text("window.shift"), w.text("window.moved.join('\\n')"))
	}
	is.True(strings.Contains(w.text("[...window.states].join()"), "Writing the answer"))
	is.Equal(w.text("document.querySelector('#bar-state').innerText.trim()"), "Done")
	w.lacks("Stop")
	live := w.text("[...document.querySelectorAll('#flow-1 > .md')].at(-1).innerHTML.replace(/ id=\"[^\"]*\"/g, '')")
	w.open("/tasks/stream")
	w.until("the loaded page", "document.querySelector('#box-1 .answer')")
	is.Equal(w.text("document.querySelector('#box-1 .answer').innerHTML"), live) // the same as on the loaded page
	is.Equal(w.text("document.querySelectorAll('.answer .s1').length > 0"), "true")
	w.look("task")
	w.click("8 steps")
	w.click("edit_file")
	w.sees("largest change")
	w.look("task-unfolded")
}
