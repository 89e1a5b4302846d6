package worker_test

import (
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestVersionPages changes a worker, compares its versions and restores the first.
func TestVersionPages(t *testing.T) {
	is, s, v := dashboardtest.AsOwner(t)
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe", Instructions: "Write.\nBe brief.\n<b>",
		Settings: workers.Settings{Model: "offline"}})
	_, err := s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, wrk.ID, workers.Patch{
		Instructions: new("Write.\nBe kind.\n<b>"), Model: new(""), ApprovalTools: &[]string{"shell"}})
	is.NoErr(err)
	base := "/workers/" + wrk.ID

	p := v.Get(base + "/versions")
	is.Equal(p.Status, 200)
	for _, text := range []string{`instructions <span class="good">+1</span> <span class="bad">−1</span>`,
		"model the default", "approvals changed", "created"} {
		p.Shows(text) // the list shows the differences
	}
	p = v.Get(base + "/versions/2")
	p.Shows("From version 1 to version 2")
	p.Shows(`<div class="del">`)
	p.Shows("Be kind.")
	p.Shows("&lt;b&gt;") // the text of users is escaped
	reversed := v.Get(base + "/versions/1?with=2")
	reversed.Shows("From version 1 to version 2") // the older one is on the left
	v.Get(base + "/versions/2?with=2").Shows("Both have the same content.")
	for _, path := range []string{"/versions/3", "/versions/x", "/versions/2?with=9", "/versions/2?with=x"} {
		is.Equal(v.Get(base+path).Status, 404)
	}
	for range 2 { // a second click restores nothing more
		p = v.Post(base+"/versions/1/restore", "token", "frm_one")
		is.Equal(p.Location(), base+"/versions?done=version-restored")
	}
	p = v.Get(base + "/versions")
	p.Shows("restored from v1")
	p.Lacks(">v4<") // there is no second version

	s.Join("mo@example.com", people.RoleMember)
	member := s.SignIn("mo@example.com")
	p = member.Get(base + "/versions")
	is.Equal(p.Status, 200)
	is.True(!strings.Contains(p.Body, "/restore")) // only the creator restores
}
