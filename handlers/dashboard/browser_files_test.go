package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestBrowserWorkspace opens previews and the workspace. A published page is shown, and its script
// does not run.
func TestBrowserWorkspace(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Harbour clerk"})
	w := newWindow(s).borrow(b)
	pdf, err := os.ReadFile("testdata/one.pdf")
	is.NoErr(err)
	folder := store.FolderPath(s.Store.Dir(), store.Folder{WorkerID: wrk.ID})
	is.NoErr(os.MkdirAll(filepath.Join(folder, "reports", "2030"), 0o700))
	for name, content := range map[string]string{
		"berths.csv":         "Berth;Ship;Length;Remarks\n" + strings.Repeat("North 1;Aurora;84;stays until Tuesday, then leaves for Bergen\nNorth 2;Borealis;120;\n", 20),
		"page.html":          "<h1>Harbour</h1><p>Open from 6 to 22.</p><script>parent.document.title = 'taken'</script>",
		"figures.json":       `{"ships": 12, "berths": ["North 1", "North 2"], "note": "<b>full</b>"}`,
		"notes.md":           "# Notes\n\n- [x] Buoys painted\n- [ ] Crane tested\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
		"tide.py":            "# Tides of a day\ndef tide(hour):\n    \"\"\"Height in metres.\"\"\"\n    return 1.5 + hour % 12 / 6\n",
		"one.pdf":            string(pdf),
		"box.bin":            "\x00\x01",
		"reports/2030/a.txt": "One line",
	} {
		is.NoErr(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	is.NoErr(os.Symlink("/etc/passwd", filepath.Join(folder, "leak")))
	base := "/workers/" + wrk.ID
	w.open(base + "/workspace/")
	w.sees("berths.csv")
	w.look("workspace")
	w.open(base + "/workspace/reports/2030/a.txt")
	w.sees("One line")
	w.look("workspace-file")
	for _, name := range []string{"berths.csv", "figures.json", "notes.md", "tide.py", "one.pdf", "box.bin"} {
		w.open(base + "/workspace/" + name)
		w.look("workspace-" + strings.TrimPrefix(filepath.Ext(name), "."))
	}
	w.open(base + "/workspace/page.html")
	w.until("the page in its frame", "document.querySelector('iframe').contentDocument === null") // another origin
	w.look("workspace-html")
	is.True(w.text("document.title") != "taken") // no script of the page ran
}

// TestBrowserAlerts adds a channel, tests it and reads the result.
func TestBrowserAlerts(t *testing.T) {
	is, s, w := inBrowser(t)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	t.Cleanup(endpoint.Close)
	w.open("/settings/alerts")
	w.look("alerts-none")
	w.fill("To", endpoint.URL+"/services/T000/B000/secret")
	w.click("Add")
	w.sees("The channel is added.")
	_, err := s.Store.Effects.AddAlertChannel(t.Context(), s.Owner.Caller, store.NewAlertChannel{Email: "ann@example.com",
		Topics: []store.AlertTopic{store.TopicFailed, store.TopicWaiting}, Frequency: store.AlertDaily})
	is.NoErr(err)
	w.click("Test " + strings.TrimPrefix(endpoint.URL, "http://"))
	w.sees("Delivered. The response was: 200 OK: ok")
	w.look("alerts")
}
