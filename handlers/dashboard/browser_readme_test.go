package dashboard_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// officeSite returns a site with the workers and tasks of a small trading house, and the worker and
// the task for the README.
func officeSite(t *testing.T) (s *dashboardtest.Site, reporter workers.Worker, task string) {
	t.Helper()
	s = dashboardtest.New(t)
	buyer := s.Worker(s.Owner, workers.NewWorker{Title: "Green buyer", Summary: "Compares offers with past lots",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	reader := s.Worker(s.Owner, workers.NewWorker{Title: "Invoice reader", Summary: "Reads an invoice into JSON"})
	reporter = s.Worker(s.Owner, workers.NewWorker{Title: "Quarterly reporter",
		Summary:      "Totals an export and writes what stands out",
		Instructions: "You write the quarterly report for the management.\n\n- Total revenue by region, and compare it with the quarter before.\n- Name the two largest changes and their causes.\n- Keep to one page, and publish it as report.md."})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: reader.ID, Title: "INV-20431 from Nordfrakt",
		Input: "Read the invoice.\n\n" + dashboardtest.Scripted("say Total **€4,310.00**, due on 14 October.")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: reader.ID, Title: "INV-20436 from Hafenlogistik",
		Input: "Read the invoice.\n\n" + dashboardtest.Scripted("say Total **€918.40**, due on 2 November.")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: buyer.ID, Title: "Jute bags, food-grade, EU",
		Input: dashboardtest.Scripted("fail 400 The supplier's page did not answer")})
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: reporter.ID, Title: "Totals of the second quarter",
		Input: dashboardtest.Scripted(
			dashboardtest.Calling("write_file", "path", "totals.json", "content",
				"{\"region\": \"Nordics\", \"eur\": 412380}\n"), dashboardtest.Calling("publish_file", "path", "totals.json"), "say Q2 revenue was **€1,141,300**.")})
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: reporter.ID, Title: "Compare Q3 revenue by region",
		Input: "Total revenue by region for Q2 and Q3.\nTell me what stands out, and why.\nPut it into report.md.\n" +
			dashboardtest.Scripted(append([]string{"think The totals of the second quarter are in totals.json.",
				dashboardtest.Calling("read_file", "path", "totals.json"),
				dashboardtest.Calling("write_file", "path", "report.md", "content", report), dashboardtest.Calling("publish_file",
					"path", "report.md")}, saying(report, "0ms")...)...)})
	s.Begin(s.Owner, store.NewTurn{WorkerID: reporter.ID, Title: "Forecast of the fourth quarter",
		Input: dashboardtest.Scripted("say Reading the order book.", "wait 10m")})
	s.Asks(buyer, "Offer from Finca El Roble")
	is.New(t).NoErr(s.Store.Workers.SetDefaultModels(t.Context(), s.Owner.Caller, "",
		"anthropic:claude-sonnet-4-5")) // no turn starts any more
	return s, reporter, turn.TaskID
}

// TestBrowserReadme opens the pages of the README. The folder of SCREENSHOTS gets the pictures,
// which belong into .github.
func TestBrowserReadme(t *testing.T) {
	t.Parallel()
	s, reporter, task := officeSite(t)
	w := newWindow(s).borrow(s.SignIn("ann@example.com"))
	w.open("/tasks/" + task)
	w.sees("Benelux", "report.md")
	w.picture("dashboard.png", 1280, 1000)
	w.open("/tasks")
	w.sees("Finca El Roble", "Compare Q3 revenue")
	w.picture("tasks.png", 1280, 660)
	w.open("/workers/" + reporter.ID)
	w.sees("Quarterly reporter")
	w.picture("worker.png", 1100, 820)
	w.open("/")
	w.sees("What should be done?")
	w.picture("home.png", 1100, 820)
}

// picture writes a screenshot of a window of that size into the folder of SCREENSHOTS.
func (w *window) picture(name string, width, height int64) {
	w.T.Helper()
	is := is.New(w.T)
	dir := os.Getenv(screenshotsVariable)
	if dir == "" {
		return
	}
	call(w, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
	picture, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	is.NoErr(err)
	is.NoErr(os.MkdirAll(dir, 0o755))
	is.NoErr(os.WriteFile(filepath.Join(dir, name), picture, 0o600))
}
