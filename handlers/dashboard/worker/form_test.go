package worker_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/net/html"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func TestFormWorker(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	form := map[string]string{"title": "Clerk", "instructions": "Be brief.", "outputSchema": ` {"type": "object"} `,
		"model": "offline", "mcpTools": "crm"}
	post := func(path string) dashboardtest.Page {
		var fields []string
		for name, v := range form {
			fields = append(fields, name, v)
		}
		return b.Post(path, fields...)
	}
	w := s.MadeWorker(post("/workers"))
	is.Equal(w.Visibility, workers.Public)
	is.Equal(string(w.OutputSchema), `{"type": "object"}`)

	settings := "/workers/" + w.ID + "/settings"
	update := func() workers.Worker {
		is.Equal(post(settings).Status, http.StatusSeeOther)
		now, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
		is.NoErr(err)
		return now
	}
	form["visibility"], form["outputSchema"] = "public", "{\n\"type\":\"object\"}" // the same values
	now := update()
	is.Equal(now.Version, int64(1))
	for _, change := range []struct{ field, value string }{
		{"instructions", ""}, {"outputSchema", ""}, {"model", ""}, {"mcpTools", ""}, {"approvalTools", "shell"},
		{"effort", "low"}, {"effort", ""}, {"temperature", "0,5"}, {"temperature", "0"}, {"temperature", ""},
	} {
		form[change.field] = change.value
		before := now.Version
		now = update()
		is.Equal(now.Version, before+1)
	}
	form["title"], form["summary"], form["visibility"] = "Chief clerk", "x", "private"
	last := update()
	is.Equal(last.Version, now.Version) // these fields belong to no version
	is.Equal(last.Title+last.Summary+string(last.Visibility), "Chief clerkxprivate")

	p := b.Post(settings, "outputSchema", "{", "summary", strings.Repeat("x", 81), "effort", "most", "temperature", "warm")
	p.Answers(http.StatusUnprocessableEntity).Shows(`id="e-summary"`, `id="e-title"`, `id="e-outputSchema"`,
		`id="e-effort"`, `id="e-temperature"`) // all faults at once
}

func TestFormWorkerOnce(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			ids[i] = b.Post("/workers", "from", "prompt", "prompt", "sums up minutes", "token", "one").Location()
		})
	}
	wg.Wait()
	for _, id := range ids {
		is.Equal(id, ids[0])
	}
	w := s.MadeWorker(dashboardtest.Page{Header: http.Header{"Location": {ids[0]}}})
	is.True(w.Instructions != "" && w.Title != "")
	others, _, err := s.Store.Workers.List(t.Context(), s.Owner.Caller, workers.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(len(others), 1)
	s.Join("mo@example.com", people.RoleMember)
	same := []string{"title", "x", "token", "two"}
	mine := s.MadeWorker(b.Post("/workers", same...))
	theirs := s.MadeWorker(s.SignIn("mo@example.com").Post("/workers", same...))
	is.True(theirs.ID != mine.ID) // a token belongs to its user
	is.Equal(s.MadeWorker(b.Post("/workers", same...)).ID, mine.ID)
	first, second := s.MadeWorker(b.Post("/workers", "title", "x")), s.MadeWorker(b.Post("/workers", "title", "x"))
	is.True(first.ID != second.ID) // without a token nothing is remembered
}

// TestTwoPeopleEdit opens the settings of a worker in two browsers and saves both forms.
func TestTwoPeopleEdit(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	for name, tt := range map[string]struct {
		theirs     workers.Patch
		change     []string // fields of the second form that its user changed
		status     int
		want       string // instructions, title, model and tools afterwards
		says, form string
	}{
		"different fields": {workers.Patch{Model: new("offline")}, []string{"instructions", "Mine."},
			http.StatusSeeOther, "Mine. Clerk offline", "", ""},
		"different, of no version": {workers.Patch{Title: new("Theirs")}, []string{"instructions", "Mine."},
			http.StatusSeeOther, "Mine. Theirs ", "", ""},
		"the same field": {workers.Patch{Instructions: new("Theirs."), Model: new("offline")}, []string{"instructions",
			"Mine."},
			http.StatusConflict, "Theirs. Clerk offline", "Theirs.", "Mine."},
		"the same title": {workers.Patch{Title: new("Theirs")}, []string{"title", "Mine"}, http.StatusConflict,
			"Be brief. Theirs ", "Theirs", "Mine"},
		"the same value": {workers.Patch{Instructions: new("Same.")}, []string{"instructions", "Same."},
			http.StatusSeeOther, "Same. Clerk ", "", ""},
		"nothing": {workers.Patch{Instructions: new("Theirs.")}, nil, http.StatusSeeOther, "Theirs. Clerk ", "",
			""},
		"tools and approvals": {workers.Patch{ApprovalTools: &[]string{"shell"}}, []string{"toolsMode", "only", "tools",
			"read_file"}, http.StatusSeeOther, "Be brief. Clerk  read_file shell", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk", Instructions: "Be brief."})
			settings := "/workers/" + w.ID + "/settings"
			values := formValues(b.Get(settings).Body)
			is.Equal(values["revision"], w.Revision())
			_, err := s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, w.ID, tt.theirs)
			is.NoErr(err)
			send := func() dashboardtest.Page {
				for i := 0; i+1 < len(tt.change); i += 2 {
					values[tt.change[i]] = tt.change[i+1]
				}
				var fields []string
				for field, v := range values {
					fields = append(fields, field, v)
				}
				return b.Post(settings, fields...)
			}
			p := send()
			is.Equal(p.Status, tt.status)
			now, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
			is.NoErr(err)
			got := now.Instructions + " " + now.Title + " " + now.Settings.Model
			if len(now.Settings.ApprovalTools) > 0 {
				got += " " + strings.Join(now.Settings.Tools.Words(), ",") + " " + strings.Join(now.Settings.ApprovalTools, ",")
			}
			is.Equal(got, tt.want)
			if tt.status != http.StatusConflict {
				return
			}
			p.Shows("Somebody else changed this", tt.says, tt.form) // the page shows both
			// The values of the page can be saved.
			values = formValues(p.Body)
			is.Equal(values["revision"], now.Revision())
			is.Equal(values["model"], now.Settings.Model) // the other user's changes stay
			is.Equal(send().Status, http.StatusSeeOther)
		})
	}
}

// formValues returns the values that a browser would send of a page's form, without check boxes.
func formValues(body string) map[string]string {
	_, body, _ = strings.Cut(body, `id="edit"`)
	body, _, _ = strings.Cut(body, "</form>")
	root, _ := html.Parse(strings.NewReader(body)) // a string can always be read
	values := map[string]string{}
	chosen := "" // the name of the select around an option
	for n := range root.Descendants() {
		attribute := map[string]string{}
		for _, a := range n.Attr {
			attribute[a.Key] = a.Val
		}
		_, checked := attribute["checked"]
		_, selected := attribute["selected"]
		switch {
		case n.Data == "select":
			chosen = attribute["name"]
		case n.Data == "option" && selected:
			value, given := attribute["value"]
			if !given {
				value = n.FirstChild.Data
			}
			values[chosen] = value
		case n.Data == "textarea" && n.FirstChild != nil:
			values[attribute["name"]] = n.FirstChild.Data
		case n.Data == "input" && attribute["type"] != "checkbox" && (attribute["type"] != "radio" || checked):
			values[attribute["name"]] = attribute["value"]
		}
	}
	return values
}
