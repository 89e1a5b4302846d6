package dashboard_test

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// used records usage of n workers on each of the last days.
func (s *site) used(number, days int) {
	s.t.Helper()
	for i := range number {
		w, _, err := s.store.Workers.CreateWorker(s.t.Context(), s.owner.Caller,
			workers.NewWorker{Title: "<b>Worker</b> " + strconv.Itoa(i) + strings.Repeat(` "`, 60)}, db.IdempotencyKey{})
		s.ok(err)
		storetest.Exec(s.t, s.store, `INSERT INTO usage (organization_id, day, worker_id, api_key_id, triggered_by, turns, failures, steps, input_tokens, output_tokens, cost, duration_ms)
			WITH RECURSIVE d(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < ?) SELECT ?, ? - n, ?, ?, 'api',
			7 + n % 5, n % 3, 20, 1200 + 100 * (n % 7), 340, 12000000 * (1 + n % 4), 65000 FROM d`,
			days-1, s.owner.OrganizationID, time.Now().Unix()/86400, w.ID, s.owner.KeyID)
	}
}

func TestUsagePage(t *testing.T) {
	is, s, b := asOwner(t)

	p := b.get("/usage")
	p.answers(http.StatusOK).shows("Nothing was used in these days", "curl "+s.url+"/api/tasks", "There is no monthly cap") // empty, with advice

	s.used(25, 90)
	limit := 2.5
	storetest.CapCredits(t, s.store, s.owner.Caller, &limit)
	is.NoErr(s.store.MeterCaller(t.Context(), s.owner.Caller, store.Usage{ModelCost: 10_000_000}))
	for _, tt := range []struct{ query, says string }{
		{"", "Credits by day and worker"},
		{"?days=7&show=tokens&by=key", "Tokens by day and API key"},
		{"?days=90&show=turns&by=trigger", "Turns by day and trigger"},
		{"?days=90&show=failures&by=worker", "Failures by day and worker"},
		{"?days=90&show=tokens&by=worker", "Tokens by day and worker"},
		{"?days=9999&show=%3Cb%3E&by=nothing", "Credits by day and worker"}, // unknown values count as absent
	} {
		p := b.get("/usage" + tt.query)
		p.answers(http.StatusOK).shows(tt.says, "<svg", `class="f0"`, `class="bar-hit"`)
		p.lacks("style=", "<b>Worker") // colours are in the style sheet; titles are text
		p.smallerThan(maxPage)         // with as many parts as have a colour
	}
	b.get("/usage").
		shows("1.50 of 2.50 credits are left", "&lt;b&gt;Worker&lt;/b&gt;", `class="fr"`, "The table leaves out 6 more.")

	s.join("mo@example.com", people.RoleMember)
	s.signIn("mo@example.com").get("/usage").answers(http.StatusForbidden).shows("The role member may not see usage")
}

func TestUsageCSV(t *testing.T) {
	is, s := onSite(t)
	s.used(2, 10)
	p := s.signIn("ann@example.com").get("/usage.csv?days=7")
	is.Equal(p.header.Get("Content-Type"), "text/csv; charset=utf-8")
	is.Equal(p.header.Get("Content-Disposition"), `attachment; filename="usage.csv"`)
	rows, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	is.NoErr(err)
	is.Equal(len(rows), 1+2*7)
	is.Equal(rows[0][9], "credits")
	ordertest.Below(is, rows[1][0], rows[14][0]) // oldest first
	is.Equal(rows[14][9], "1.2")
	is.Equal(rows[14][10], "65")
}

func TestBrowserUsage(t *testing.T) {
	_, s, w := inBrowser(t)
	w.open("/usage")
	w.look("usage-empty")
	s.used(7, 90)
	limit := 25.0
	storetest.CapCredits(t, s.store, s.owner.Caller, &limit)
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
