package dashboard_test

import (
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestBrowserLayout measures what a picture shows at first sight and a list of faults does not: gaps
// of empty elements, frames in frames, what stands in one line, and messages that cover buttons.
func TestBrowserLayout(t *testing.T) {
	is, s, w := inBrowser(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Invoice clerk"})
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, Title: "An invoice",
		Input: dashboardtest.Scripted("say Done.")})
	s.Schedule(wrk, "Go", store.When{Type: store.CronType, Cron: "0 8 * * 1-5"})

	w.open("/tasks/" + turn.TaskID)
	is.Equal(w.text("getComputedStyle(document.querySelector('.composer textarea')).borderTopWidth"), "0px") // the box has the frame
	// The id and its button stand in one line, beside the label.
	is.Equal(w.text(inLine("#about dd.row > .mono", "#about dd.row > button", "#about dt:last-of-type")), "true")
	is.Equal(w.text(inLine(".crumbs svg", ".crumbs .late svg")), "true")

	// Without waiting decisions there is one gap between the top of the page and the search.
	w.open("/workers")
	is.Equal(w.text("document.querySelector('#deciding').checkVisibility()"), "false")

	// A list of one page has no row for other pages, and buttons are as wide as their words.
	w.open("/workers/" + wrk.ID + "/schedules")
	is.Equal(w.text("document.querySelector('.pager').checkVisibility()"), "false")
	is.Equal(w.text("document.querySelector('form.card > button').offsetWidth < 300"), "true")

	// A message covers no button at the lower edge of a page.
	for _, tt := range []struct {
		path, bar string
		width     int64
	}{
		{"/tasks/" + turn.TaskID + "?done=call-approved", ".composer", 1366},
		{"/tasks/" + turn.TaskID + "?done=call-approved", ".composer", 390},
		{"/workers/" + wrk.ID + "/settings?done=saved", ".savebar", 1366},
	} {
		w.size(tt.width, "light")
		w.open(tt.path)
		w.until("the message", "document.querySelector('.toast')")
		is.Equal(w.text(`(() => { const [a, b] = ['.toast', `+quoted(tt.bar)+`].map((css) => document.querySelector(css).getBoundingClientRect());
			return a.bottom <= b.top || a.top >= b.bottom || a.right <= b.left || a.left >= b.right; })()`), "true") // they do not overlap
	}
}

// inLine returns an expression that reports whether the centres of elements have the same height,
// within a pixel.
func inLine(selectors ...string) string {
	list := ""
	for _, css := range selectors {
		list += quoted(css) + ", "
	}
	return `(() => { const at = [` + list + `].map((css) => { const r = document.querySelector(css).getBoundingClientRect(); return r.top + r.height / 2; });
		return Math.max(...at) - Math.min(...at) <= 1; })()`
}
