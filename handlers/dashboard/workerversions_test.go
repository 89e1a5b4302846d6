package dashboard_test

import (
	"strings"
	"testing"

	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestVersionPages changes a worker, compares its versions and restores the first.
func TestVersionPages(t *testing.T) {
	is, s, v := asOwner(t)
	wrk := s.worker(s.owner, workers.NewWorker{Title: "Scribe", Instructions: "Write.\nBe brief.\n<b>",
		Settings: workers.Settings{Model: "offline"}})
	_, err := s.store.Workers.UpdateWorker(t.Context(), s.owner.Caller, wrk.ID, workers.Patch{
		Instructions: new("Write.\nBe kind.\n<b>"), Model: new(""), ApprovalTools: &[]string{"shell"}})
	is.NoErr(err)
	base := "/workers/" + wrk.ID

	p := v.get(base + "/versions")
	is.Equal(p.status, 200)
	for _, text := range []string{`instructions <span class="good">+1</span> <span class="bad">−1</span>`, "model the default", "approvals changed", "created"} {
		p.shows(text) // the list shows the differences
	}
	p = v.get(base + "/versions/2")
	p.shows("From version 1 to version 2")
	p.shows(`<div class="del">`)
	p.shows("Be kind.")
	p.shows("&lt;b&gt;") // the text of users is escaped
	reversed := v.get(base + "/versions/1?with=2")
	reversed.shows("From version 1 to version 2") // the older one is on the left
	v.get(base + "/versions/2?with=2").shows("Both have the same content.")
	for _, path := range []string{"/versions/3", "/versions/x", "/versions/2?with=9", "/versions/2?with=x"} {
		is.Equal(v.get(base+path).status, 404)
	}
	for range 2 { // a second click restores nothing more
		p = v.post(base+"/versions/1/restore", "token", "frm_one")
		is.Equal(p.location(), base+"/versions?done=version-restored")
	}
	p = v.get(base + "/versions")
	p.shows("restored from v1")
	p.lacks(">v4<") // there is no second version

	s.join("mo@example.com", people.RoleMember)
	member := s.signIn("mo@example.com")
	p = member.get(base + "/versions")
	is.Equal(p.status, 200)
	is.True(!strings.Contains(p.body, "/restore")) // only the creator restores
}
