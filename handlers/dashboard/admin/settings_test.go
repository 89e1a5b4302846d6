package admin_test

import (
	"encoding/csv"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func TestKeysPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	me := func(secret string) int {
		t.Helper()
		return s.Visitor().Send(s.Request(http.MethodGet, "/api/me", "", "Authorization", "Bearer "+secret)).Status
	}
	secretOf := func(p dashboardtest.Page) string {
		t.Helper()
		found := regexp.MustCompile(`data-copy="(jm_live_[\w-]{43})"`).FindStringSubmatch(p.Body)
		if p.Status != http.StatusOK || len(found) != 2 {
			t.Fatalf("%d: no key on the page:\n%s", p.Status, p.Body)
		}
		return found[1]
	}
	b.Post("/settings/keys", "name", "").Answers(http.StatusUnprocessableEntity).Shows("Must have 1 to 200 characters.")

	p := b.Post("/settings/keys", "name", `<script>alert(1)</script>`)
	is.Equal(p.Location(),
		"/settings/keys?made=1") // reloading the next page creates no second key
	s.SignIn("ann@example.com").Get(p.Location()).Lacks(`data-copy="jm_live_`) // another browser does not see it
	p = b.Get(p.Location())
	old := secretOf(p)
	is.True(p.Has("curl "+s.URL+"/api/tasks", "&lt;script&gt;alert(1)&lt;/script&gt;") && !p.Has("<script>alert"))
	is.Equal(p.Header.Get("Cache-Control"), "no-store")
	is.Equal(me(old), http.StatusOK)
	again := b.Get("/settings/keys?made=1")
	is.True(!again.Has(old) && again.Has("was already shown")) // shown once

	roll := regexp.MustCompile(`/settings/keys/key_\w+/roll`).FindString(p.Body)
	rolled := b.Get(b.Post(roll).Location())
	next := secretOf(rolled)
	rolled.Shows("The old one works for another 24 hours")
	is.Equal(me(old), http.StatusOK)
	is.Equal(me(next), http.StatusOK)
	is.Equal(b.Post(roll).Status, http.StatusConflict) // once
	is.Equal(b.Post(strings.Replace(roll, "/roll", "/revoke", 1)).Location(), "/settings/keys?done=key-revoked")
	is.Equal(me(old), http.StatusUnauthorized) // at once
	is.Equal(me(next), http.StatusOK)
	b.Get("/settings/keys").Shows("revoked", "active")

	s.Join("ada@example.com", people.RoleAdmin)
	is.Equal(s.SignIn("ada@example.com").Post(roll).Status, http.StatusForbidden) // the key would make her an Owner
	is.Equal(b.Post("/settings/keys/key_none/revoke").Status, http.StatusNotFound)
}

func TestKeysPaging(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	for range 60 {
		_, _, err := s.Store.People.CreateKey(t.Context(), s.Owner.Caller, people.NewKey{Name: "many"})
		is.NoErr(err)
	}
	p := b.Get("/settings/keys")
	p.SmallerThan(50 << 10)
	next := regexp.MustCompile(`href="(/settings/keys\?cursor=[^"]+)"`).FindStringSubmatch(p.Body)
	is.Equal(len(next), 2)
	p = b.Get(next[1])
	is.Equal(strings.Count(p.Body, "/revoke\""), 11) // with the first key
	is.Equal(b.Get("/settings/keys?cursor=x").Status, http.StatusBadRequest)
}

func TestMembersPage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	bob := s.Join("bob@example.com", people.RoleMember)
	b, his := s.SignIn("ann@example.com"), s.SignIn("bob@example.com")
	b.Get("/settings/members").Shows("bob@example.com", "you", "Invite somebody")
	b.Post("/settings/members", "email", "bob@example.com", "role", "member").
		Answers(http.StatusUnprocessableEntity).Shows("Belongs to a member already.")
	b.Post("/settings/members", "email", "x", "role", "king").
		Shows("Must be an email address.", "Must be owner, admin or member")

	at := "/settings/members/" + bob.UserID
	is.Equal(his.Get("/settings/keys").Status, http.StatusForbidden)
	is.Equal(b.Post(at+"/role", "role", "admin").Location(), "/settings/members?done=role-changed")
	is.Equal(his.Get("/settings/keys").Status, http.StatusOK) // at once
	is.Equal(his.Post("/settings/members/"+s.Owner.UserID+"/role", "role", "member").Status, http.StatusForbidden)
	is.Equal(his.Post("/settings/members/"+s.Owner.UserID+"/reset").Status, http.StatusForbidden)
	is.Equal(his.Post("/settings/members/"+s.Owner.UserID+"/remove").Status, http.StatusForbidden)
	is.Equal(his.Post(at+"/role", "role", "owner").Status, http.StatusForbidden)
	is.Equal(b.Post("/settings/members/"+s.Owner.UserID+"/role", "role", "admin").Status,
		http.StatusConflict) // the last owner
	his.Get("/settings/members").Lacks(`value="owner"`)

	p := b.Get(b.Post(at + "/reset").Location())
	link := regexp.MustCompile(`data-copy="` + s.URL + `(/reset/[^"]+)"`).FindStringSubmatch(p.Body)
	is.Equal(len(link), 2)
	is.Equal(his.Get("/account").Status, http.StatusOK) // until the link is used
	is.Equal(b.Post(at+"/remove").Location(), "/settings/members?done=member-removed")
	is.Equal(his.Get("/account").Status, http.StatusSeeOther) // at once
	is.Equal(s.Visitor().Get(link[1]).Status, http.StatusNotFound)
	s.Visitor().Post("/sign-in", "email", "bob@example.com", "password", dashboardtest.Password).
		Answers(http.StatusUnprocessableEntity).Shows("This user is in no organization.")
	is.Equal(b.Post(at+"/remove").Status, http.StatusNotFound)
	is.Equal(b.Post("/settings/members/"+s.Owner.UserID+"/remove").Status, http.StatusConflict)
}

func TestOrganizationPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	for _, wrong := range []string{"x", "-1", "NaN", "1e999"} {
		p := b.Post("/settings/organization", "name", "Acme", "monthlyCreditCap", wrong)
		p.Answers(http.StatusUnprocessableEntity).Shows("Must be 0 or more", `value="`+wrong+`"`)
	}
	is.Equal(b.Post("/settings/organization", "name", "Acme <b>", "monthlyCreditCap", " 12.5 ").Location(),
		"/settings/organization?done=saved")
	b.Get("/settings/organization").Shows("Acme &lt;b&gt;", `value="12.5"`)
	is.Equal(b.Post("/settings/organization", "name", "Acme", "monthlyCreditCap", "").Status, http.StatusSeeOther)
	_, limited, err := s.Store.People.Allowance(t.Context(), s.Owner.OrganizationID)
	is.NoErr(err)
	is.True(!limited)
}

func TestAuditPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	for range 60 {
		_, _, err := s.Store.People.CreateKey(t.Context(), s.Owner.Caller, people.NewKey{Name: `=HYPERLINK("x"),<script>`})
		is.NoErr(err)
	}
	p := b.Get("/settings/audit?action=key.create&email=ann%40example.com")
	is.True(p.Has("created an API key", "&lt;script&gt;", "ann@example.com") && !p.Has("<script>alert", "signed in"))
	p.SmallerThan(50 << 10)
	next := regexp.MustCompile(`href="(/settings/audit\?[^"]*cursor=[^"]+)"`).FindStringSubmatch(p.Body)
	p = b.Get(strings.ReplaceAll(next[1], "&amp;", "&"))
	is.Equal(strings.Count(p.Body, "<th scope=\"row\">"), 10)
	p.Lacks("Older »")
	b.Get("/settings/audit?to=2020-01-01").Shows("No entry matches")
	b.Get("/settings/audit?from=yesterday&cursor=x").Answers(http.StatusUnprocessableEntity).Shows("Must be a date")

	p = b.Get("/settings/audit.csv?action=key.create")
	is.Equal(p.Header.Get("Content-Type"), "text/csv; charset=utf-8")
	rows, err := csv.NewReader(strings.NewReader(p.Body)).ReadAll()
	is.NoErr(err)
	is.Equal(len(rows), 62)               // the header, the first key and these
	is.Equal(rows[61][1], "command line") // the creator of the first key
	is.Equal(rows[1][1:4], []string{"ann@example.com", "test", "key.create"})
	is.Equal(b.Get("/settings/audit.csv?from=x").Status, http.StatusBadRequest)
}

// TestSettingsByRole checks that the settings list the pages that the role may open.
func TestSettingsByRole(t *testing.T) {
	_, s, owner := dashboardtest.AsOwner(t)
	s.Join("mo@example.com", people.RoleMember)
	s.Join("ada@example.com", people.RoleAdmin)
	admin, member := s.SignIn("ada@example.com"), s.SignIn("mo@example.com")
	owner.Get("/settings").Shows("/settings/keys", "/settings/organization", "/settings/system")
	admin.Get("/settings").Shows("/settings/keys")
	admin.Get("/settings/keys").Lacks("/settings/organization", "/settings/system")
	member.Get("/settings").Shows(`href="/account"`)
	member.Get("/settings").Lacks("/settings/keys")
}

// TestAuditNames checks that the log names the changed records, with links, and shows neither ids
// nor empty values.
func TestAuditNames(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w, _, err := s.Store.Workers.CreateWorker(t.Context(), s.Owner.Caller, workers.NewWorker{Title: "Scribe <b>"},
		db.IdempotencyKey{})
	is.NoErr(err)
	b.Post("/workers/"+w.ID+"/members", "email", "ann@example.com")
	s.Join("mo@example.com", people.RoleMember)
	is.Equal(b.Post("/workers/"+w.ID+"/members", "email", "mo@example.com").Status, http.StatusSeeOther)
	is.Equal(b.Post("/settings/organization", "name", "Acme", "monthlyCreditCap", "5").Status, http.StatusSeeOther)
	p := b.Get("/settings/audit?action=worker.member.add")
	p.Shows(`invited somebody to a worker: <a class="inline" href="/workers/`+w.ID+`">Scribe &lt;b&gt;</a>`,
		"mo@example.com")
	p = b.Get("/settings/audit")
	is.True(p.Has("changed the credit cap") && !p.Has("none</td>", "<code>"))
	shown := regexp.MustCompile(`>[^<]*\b[a-z]{2,5}_[0-9a-z]{26}`).FindString(p.Body)
	is.Equal(shown, "") // an id alone is not readable
	for _, action := range people.Actions() {
		if what := regexp.MustCompile(`value="` + regexp.QuoteMeta(action) + `">([^<]*)<`).FindStringSubmatch(p.Body); len(what) != 2 || strings.Contains(what[1], ".") {
			t.Errorf("%s has no words: %v", action, what)
		}
	}
}
