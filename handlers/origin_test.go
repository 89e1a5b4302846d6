package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"journeyman/store/workers"
)

// TestOrigin checks the origin of workers that come about in different ways.
func TestOrigin(t *testing.T) {
	is, s := onServer(t)
	id := s.run(t, fields{"input": "Once only"}).text("id")
	made := s.must(t, "GET", "/api/workers/"+id+"/template", "")
	is.Equal(made.at("origin"), "task")
	is.Equal(made.at("instructions"), "Once only")
	s.run(t, fields{"workerId": id, "input": "Again"}) // a further task changes nothing
	is.Equal(s.must(t, "GET", "/api/workers/"+id+"/template", "").at("origin"), "task")

	is.Equal(s.must(t, "POST", "/api/workers", `{"title":"By hand"}`).at("origin"), "created")
	ran := s.must(t, "POST", "/api/workers", `{"input":"Go"}`, "Prefer: wait=20").text("id")
	is.Equal(s.must(t, "GET", "/api/workers/"+ran+"/template", "").at("origin"), "created")
	r := s.do(t, "POST", "/api/workers", `{"origin":"task"}`)
	is.Equal(r.at("origin"), "created") // only a task makes such a worker
	is.Equal(r.header.Get("X-Ignored-Fields"), "origin")

	file := s.do(t, "GET", "/api/workers/"+id+"/export", "")
	is.True(!strings.Contains(string(file.body), "origin"))
	copied := s.must(t, "POST", "/api/workers/import", string(file.body), "Content-Type: application/yaml")
	is.Equal(copied.at("origin"), "created") // somebody imported it
	r = s.do(t, "POST", "/api/workers/import", string(file.body)+"origin: task\n", "Content-Type: application/yaml")
	is.Equal(r.refused(), "400 invalid_request origin")
}

// TestKeepWorker keeps a worker that a task made.
func TestKeepWorker(t *testing.T) {
	is, s := onServer(t)
	id := s.run(t, fields{"input": "Once only"}).text("id")
	address := "/api/workers/" + id
	member, _ := s.member(t, "mo@acme.test")
	is.Equal(member.do(t, "PATCH", address, `{"origin":"created"}`).status, 403) // only its creator may keep it
	for name, tt := range map[string]struct{ body, says string }{
		"unknown": {`{"origin":"hand"}`, "must be created or task"},
		"empty":   {`{"origin":""}`, "must be created or task"},
		"number":  {`{"origin":1}`, "must be a string"},
		"null":    {`{"origin":null}`, "must not be null"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.do(t, "PATCH", address, tt.body)
			is.Equal(r.refused(), "400 invalid_request origin")
			is.True(strings.Contains(r.text("details.0.message"), tt.says))
		})
	}
	before := s.do(t, "GET", address+"/template", "")
	r := s.must(t, "PATCH", address, `{"origin":"task"}`)
	is.Equal(r.at("origin"), "task")
	is.Equal(r.header.Get("ETag"), before.header.Get("ETag")) // nothing has changed

	r = s.must(t, "PATCH", address, `{"origin":"created"}`, "Prefer: handling=strict", "If-Match: "+before.header.Get("ETag"))
	is.Equal(r.at("origin"), "created")
	is.Equal(r.at("version"), 1.0) // its instructions are the same
	is.True(r.header.Get("ETag") != before.header.Get("ETag"))
	is.Equal(s.must(t, "GET", address+"/versions", "").size("items"), 1)
	is.Equal(s.must(t, "PATCH", address, `{"origin":"created"}`).at("origin"), "created")
	r = s.do(t, "PATCH", address, `{"origin":"task","title":"T"}`)
	is.Equal(r.refused(), "400 invalid_request origin")
	is.True(strings.Contains(r.text("details.0.message"), "created or kept"))
	is.True(s.must(t, "GET", address+"/template", "").text("title") != "T") // nothing was changed
	s.must(t, "PATCH", address, `{"instructions":"Other"}`)
	is.Equal(s.must(t, "POST", address+"/versions/1/restore", "").at("origin"), "created") // no version has an origin
}

// TestWorkersByOrigin reads the lists of workers page by page.
func TestWorkersByOrigin(t *testing.T) {
	is, s := onServer(t, idle)
	var all []string
	want := map[string][]string{}
	for i := range 7 {
		origin := []string{"created", "task", "task"}[i%3]
		id := ""
		if origin == "task" {
			id = s.do(t, "POST", "/api/tasks", fmt.Sprintf(`{"input":"Number %d"}`, i), "Prefer: respond-async").text("id")
		} else {
			id = s.newWorker(t, fields{"title": fmt.Sprint("Number ", i)})
		}
		all, want[origin] = append([]string{id}, all...), append([]string{id}, want[origin]...)
	}
	want[""] = all
	var cursor string
	for _, origin := range []string{"", string(workers.CreatedOrigin), string(workers.TaskOrigin)} {
		var got []string
		for path := "/api/workers?limit=2&q=number&origin=" + origin; ; {
			r := s.must(t, "GET", path+"&cursor="+cursor, "")
			for i := range r.size("items") {
				got = append(got, r.text(fmt.Sprintf("items.%d.id", i)))
				is.True(origin == "" || r.at(fmt.Sprintf("items.%d.origin", i)) == origin)
			}
			if cursor = r.text("nextCursor"); cursor == "" {
				break
			}
		}
		is.Equal(got, want[origin])
	}
	r := s.do(t, "GET", "/api/workers?origin=hand&limit=0", "")
	is.Equal(r.refused(), "400 invalid_request limit origin")
	cursor = s.must(t, "GET", "/api/workers?origin=task&limit=1", "").text("nextCursor")
	is.Equal(s.do(t, "GET", "/api/workers?limit=1&cursor="+cursor, "").refused(), "400 invalid_request cursor") // of another list
	is.Equal(s.do(t, "GET", "/api/workers?origin=created&cursor="+cursor, "").refused(), "400 invalid_request cursor")
}
