package dashboard_test

import (
	"encoding/csv"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func TestKeysPage(t *testing.T) {
	is, s, b := asOwner(t)
	me := func(secret string) int {
		t.Helper()
		return s.visitor().send(s.request(http.MethodGet, "/api/me", "", "Authorization", "Bearer "+secret)).status
	}
	secretOf := func(p page) string {
		t.Helper()
		found := regexp.MustCompile(`data-copy="(jm_live_[\w-]{43})"`).FindStringSubmatch(p.body)
		if p.status != http.StatusOK || len(found) != 2 {
			t.Fatalf("%d: no key on the page:\n%s", p.status, p.body)
		}
		return found[1]
	}
	b.post("/settings/keys", "name", "").answers(http.StatusUnprocessableEntity).shows("Must have 1 to 200 characters.")

	p := b.post("/settings/keys", "name", `<script>alert(1)</script>`)
	is.Equal(p.location(), "/settings/keys?made=1")                            // reloading the next page creates no second key
	s.signIn("ann@example.com").get(p.location()).lacks(`data-copy="jm_live_`) // another browser does not see it
	p = b.get(p.location())
	old := secretOf(p)
	is.True(p.has("curl "+s.url+"/api/tasks", "&lt;script&gt;alert(1)&lt;/script&gt;") && !p.has("<script>alert"))
	is.Equal(p.header.Get("Cache-Control"), "no-store")
	is.Equal(me(old), http.StatusOK)
	again := b.get("/settings/keys?made=1")
	is.True(!again.has(old) && again.has("was already shown")) // shown once

	roll := regexp.MustCompile(`/settings/keys/key_\w+/roll`).FindString(p.body)
	rolled := b.get(b.post(roll).location())
	next := secretOf(rolled)
	rolled.shows("The old one works for another 24 hours")
	is.Equal(me(old), http.StatusOK)
	is.Equal(me(next), http.StatusOK)
	is.Equal(b.post(roll).status, http.StatusConflict) // once
	is.Equal(b.post(strings.Replace(roll, "/roll", "/revoke", 1)).location(), "/settings/keys?done=key-revoked")
	is.Equal(me(old), http.StatusUnauthorized) // at once
	is.Equal(me(next), http.StatusOK)
	b.get("/settings/keys").shows("revoked", "active")

	s.join("ada@example.com", people.RoleAdmin)
	is.Equal(s.signIn("ada@example.com").post(roll).status, http.StatusForbidden) // the key would make her an Owner
	is.Equal(b.post("/settings/keys/key_none/revoke").status, http.StatusNotFound)
}

func TestKeysPaging(t *testing.T) {
	is, s, b := asOwner(t)
	for range 60 {
		_, _, err := s.store.People.CreateKey(t.Context(), s.owner.Caller, people.NewKey{Name: "many"})
		is.NoErr(err)
	}
	p := b.get("/settings/keys")
	p.smallerThan(50 << 10)
	next := regexp.MustCompile(`href="(/settings/keys\?cursor=[^"]+)"`).FindStringSubmatch(p.body)
	is.Equal(len(next), 2)
	p = b.get(next[1])
	is.Equal(strings.Count(p.body, "/revoke\""), 11) // with the first key
	is.Equal(b.get("/settings/keys?cursor=x").status, http.StatusBadRequest)
}

func TestMembersPage(t *testing.T) {
	is, s := onSite(t)
	bob := s.join("bob@example.com", people.RoleMember)
	b, his := s.signIn("ann@example.com"), s.signIn("bob@example.com")
	b.get("/settings/members").shows("bob@example.com", "you", "Invite somebody")
	b.post("/settings/members", "email", "bob@example.com", "role", "member").
		answers(http.StatusUnprocessableEntity).shows("Belongs to a member already.")
	b.post("/settings/members", "email", "x", "role", "king").
		shows("Must be an email address.", "Must be owner, admin or member")

	at := "/settings/members/" + bob.UserID
	is.Equal(his.get("/settings/keys").status, http.StatusForbidden)
	is.Equal(b.post(at+"/role", "role", "admin").location(), "/settings/members?done=role-changed")
	is.Equal(his.get("/settings/keys").status, http.StatusOK) // at once
	is.Equal(his.post("/settings/members/"+s.owner.UserID+"/role", "role", "member").status, http.StatusForbidden)
	is.Equal(his.post("/settings/members/"+s.owner.UserID+"/reset").status, http.StatusForbidden)
	is.Equal(his.post("/settings/members/"+s.owner.UserID+"/remove").status, http.StatusForbidden)
	is.Equal(his.post(at+"/role", "role", "owner").status, http.StatusForbidden)
	is.Equal(b.post("/settings/members/"+s.owner.UserID+"/role", "role", "admin").status, http.StatusConflict) // the last owner
	his.get("/settings/members").lacks(`value="owner"`)

	p := b.get(b.post(at + "/reset").location())
	link := regexp.MustCompile(`data-copy="` + s.url + `(/reset/[^"]+)"`).FindStringSubmatch(p.body)
	is.Equal(len(link), 2)
	is.Equal(his.get("/account").status, http.StatusOK) // until the link is used
	is.Equal(b.post(at+"/remove").location(), "/settings/members?done=member-removed")
	is.Equal(his.get("/account").status, http.StatusSeeOther) // at once
	is.Equal(s.visitor().get(link[1]).status, http.StatusNotFound)
	s.visitor().post("/sign-in", "email", "bob@example.com", "password", password).
		answers(http.StatusUnprocessableEntity).shows("This user is in no organization.")
	is.Equal(b.post(at+"/remove").status, http.StatusNotFound)
	is.Equal(b.post("/settings/members/"+s.owner.UserID+"/remove").status, http.StatusConflict)
}

func TestOrganizationPage(t *testing.T) {
	is, s, b := asOwner(t)
	for _, wrong := range []string{"x", "-1", "NaN", "1e999"} {
		p := b.post("/settings/organization", "name", "Acme", "monthlyCreditCap", wrong)
		p.answers(http.StatusUnprocessableEntity).shows("Must be 0 or more", `value="`+wrong+`"`)
	}
	is.Equal(b.post("/settings/organization", "name", "Acme <b>", "monthlyCreditCap", " 12.5 ").location(), "/settings/organization?done=saved")
	b.get("/settings/organization").shows("Acme &lt;b&gt;", `value="12.5"`)
	is.Equal(b.post("/settings/organization", "name", "Acme", "monthlyCreditCap", "").status, http.StatusSeeOther)
	_, limited, err := s.store.People.Allowance(t.Context(), s.owner.OrganizationID)
	is.NoErr(err)
	is.True(!limited)
}

func TestAuditPage(t *testing.T) {
	is, s, b := asOwner(t)
	for range 60 {
		_, _, err := s.store.People.CreateKey(t.Context(), s.owner.Caller, people.NewKey{Name: `=HYPERLINK("x"),<script>`})
		is.NoErr(err)
	}
	p := b.get("/settings/audit?action=key.create&email=ann%40example.com")
	is.True(p.has("created an API key", "&lt;script&gt;", "ann@example.com") && !p.has("<script>alert", "signed in"))
	p.smallerThan(50 << 10)
	next := regexp.MustCompile(`href="(/settings/audit\?[^"]*cursor=[^"]+)"`).FindStringSubmatch(p.body)
	p = b.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	is.Equal(strings.Count(p.body, "<th scope=\"row\">"), 10)
	p.lacks("Older »")
	b.get("/settings/audit?to=2020-01-01").shows("No entry matches")
	b.get("/settings/audit?from=yesterday&cursor=x").answers(http.StatusUnprocessableEntity).shows("Must be a date")

	p = b.get("/settings/audit.csv?action=key.create")
	is.Equal(p.header.Get("Content-Type"), "text/csv; charset=utf-8")
	rows, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	is.NoErr(err)
	is.Equal(len(rows), 62)               // the header, the first key and these
	is.Equal(rows[61][1], "command line") // the creator of the first key
	is.Equal(rows[1][1:4], []string{"ann@example.com", "test", "key.create"})
	is.Equal(b.get("/settings/audit.csv?from=x").status, http.StatusBadRequest)
}

// registered matches the registration of a page in the source.
var registered = regexp.MustCompile(`\b[a-z]+\.(On|Open|May)\((?:store\.(\w+), )?"([A-Z]+)", "(/[^"]*)"`)

// TestSettingsByRole checks that the settings list the pages that the role may open.
func TestSettingsByRole(t *testing.T) {
	_, s, owner := asOwner(t)
	s.join("mo@example.com", people.RoleMember)
	s.join("ada@example.com", people.RoleAdmin)
	admin, member := s.signIn("ada@example.com"), s.signIn("mo@example.com")
	owner.get("/settings").shows("/settings/keys", "/settings/organization", "/settings/system")
	admin.get("/settings").shows("/settings/keys")
	admin.get("/settings/keys").lacks("/settings/organization", "/settings/system")
	member.get("/settings").shows(`href="/account"`)
	member.get("/settings").lacks("/settings/keys")
}

// TestAuditNames checks that the log names the changed records, with links, and shows neither ids
// nor empty values.
func TestAuditNames(t *testing.T) {
	is, s, b := asOwner(t)
	w, _, err := s.store.Workers.CreateWorker(t.Context(), s.owner.Caller, workers.NewWorker{Title: "Scribe <b>"},
		db.IdempotencyKey{})
	is.NoErr(err)
	b.post("/workers/"+w.ID+"/members", "email", "ann@example.com")
	s.join("mo@example.com", people.RoleMember)
	is.Equal(b.post("/workers/"+w.ID+"/members", "email", "mo@example.com").status, http.StatusSeeOther)
	is.Equal(b.post("/settings/organization", "name", "Acme", "monthlyCreditCap", "5").status, http.StatusSeeOther)
	p := b.get("/settings/audit?action=worker.member.add")
	p.shows(`invited somebody to a worker: <a class="inline" href="/workers/`+w.ID+`">Scribe &lt;b&gt;</a>`, "mo@example.com")
	p = b.get("/settings/audit")
	is.True(p.has("changed the credit cap") && !p.has("none</td>", "<code>"))
	shown := regexp.MustCompile(`>[^<]*\b[a-z]{2,5}_[0-9a-z]{26}`).FindString(p.body)
	is.Equal(shown, "") // an id alone is not readable
	for _, action := range people.Actions() {
		if what := regexp.MustCompile(`value="` + regexp.QuoteMeta(action) + `">([^<]*)<`).FindStringSubmatch(p.body); len(what) != 2 || strings.Contains(what[1], ".") {
			t.Errorf("%s has no words: %v", action, what)
		}
	}
}
