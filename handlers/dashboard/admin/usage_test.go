package admin_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

func TestUsagePage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)

	p := b.Get("/usage")
	p.Answers(http.StatusOK).Shows("Nothing was used in these days", "curl "+s.URL+"/api/tasks",
		"There is no monthly cap") // empty, with advice

	s.Used(25, 90)
	limit := 2.5
	storetest.CapCredits(t, s.Store, s.Owner.Caller, &limit)
	is.NoErr(s.Store.Effects.MeterCaller(t.Context(), s.Owner.Caller, store.Usage{ModelCost: 10_000_000}))
	for _, tt := range []struct{ query, says string }{
		{"", "Credits by day and worker"},
		{"?days=7&show=tokens&by=key", "Tokens by day and API key"},
		{"?days=90&show=turns&by=trigger", "Turns by day and trigger"},
		{"?days=90&show=failures&by=worker", "Failures by day and worker"},
		{"?days=90&show=tokens&by=worker", "Tokens by day and worker"},
		{"?days=9999&show=%3Cb%3E&by=nothing", "Credits by day and worker"}, // unknown values count as absent
	} {
		p := b.Get("/usage" + tt.query)
		p.Answers(http.StatusOK).Shows(tt.says, "<svg", `class="f0"`, `class="bar-hit"`)
		p.Lacks("style=", "<b>Worker")       // colours are in the style sheet; titles are text
		p.SmallerThan(dashboardtest.MaxPage) // with as many parts as have a colour
	}
	b.Get("/usage").
		Shows("1.50 of 2.50 credits are left", "&lt;b&gt;Worker&lt;/b&gt;", `class="fr"`, "The table leaves out 6 more.")

	s.Join("mo@example.com", people.RoleMember)
	s.SignIn("mo@example.com").Get("/usage").Answers(http.StatusForbidden).Shows("The role member may not see usage")
}

func TestUsageCSV(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Used(2, 10)
	p := s.SignIn("ann@example.com").Get("/usage.csv?days=7")
	is.Equal(p.Header.Get("Content-Type"), "text/csv; charset=utf-8")
	is.Equal(p.Header.Get("Content-Disposition"), `attachment; filename="usage.csv"`)
	rows, err := csv.NewReader(strings.NewReader(p.Body)).ReadAll()
	is.NoErr(err)
	is.Equal(len(rows), 1+2*7)
	is.Equal(rows[0][9], "credits")
	ordertest.Below(is, rows[1][0], rows[14][0]) // oldest first
	is.Equal(rows[14][9], "1.2")
	is.Equal(rows[14][10], "65")
}
