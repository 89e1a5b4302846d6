package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestVersions changes a worker, reads its versions, and restores the first.
func TestVersions(t *testing.T) {
	is, s := onServer(t)
	made := s.must(t, "POST", "/api/workers", `{"instructions":"One.","title":"T","outputSchema":{"type":"object"}}`)
	base := "/api/workers/" + made.text("id")
	is.Equal(made.at("version"), 1.0)
	ran := s.must(t, "POST", "/api/tasks", `{"workerId":"`+made.text("id")+`","taskId":"first","input":"x"}`)
	is.Equal(ran.at("metadata.taskId"), "first")
	changed := s.must(t, "PATCH", base, `{"instructions":"Two.","outputSchema":null}`)
	is.Equal(changed.at("version"), 2.0)
	is.Equal(s.must(t, "PATCH", base, `{"title":"Other","instructions":"Two."}`).at("version"), 2.0) // no new version
	s.must(t, "POST", "/api/tasks", `{"taskId":"first","input":"y"}`)
	turns := s.must(t, "GET", "/api/tasks/first/turns", "")
	is.Equal(turns.at("items.0.workerVersion"), 1.0)
	is.Equal(turns.at("items.1.workerVersion"), 2.0)

	page := s.must(t, "GET", base+"/versions?limit=1", "")
	is.Equal(page.at("items.0.version"), 2.0)
	is.Equal(page.at("items.0.changed"), []any{"instructions", "outputSchema"})
	is.Equal(page.at("items.0.userId"), s.owner.UserID)
	page = s.must(t, "GET", base+"/versions?limit=1&cursor="+page.text("nextCursor"), "")
	is.Equal(page.at("items.0.version"), 1.0)
	is.Equal(page.at("nextCursor"), nil)
	first := s.must(t, "GET", base+"/versions/1", "")
	is.Equal(first.at("instructions"), "One.")
	is.Equal(first.at("outputSchema"), map[string]any{"type": "object"})

	key := "Idempotency-Key: restore once"
	restored := s.must(t, "POST", base+"/versions/1/restore", "", key, "If-Match: "+changedTag(t, s, base))
	is.Equal(restored.at("version"), 3.0)
	is.Equal(restored.at("instructions"), "One.")
	is.Equal(restored.at("title"), "Other")
	again := s.must(t, "POST", base+"/versions/1/restore", "", key)
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.must(t, "GET", base+"/versions", "").at("items.0.restoredFrom"), 1.0)

	for _, path := range []string{"/versions/4", "/versions/0", "/versions/one", "/versions/-1"} {
		is.Equal(s.do(t, "GET", base+path, "").status, http.StatusNotFound)
		is.Equal(s.do(t, "POST", base+path+"/restore", "").status, http.StatusNotFound)
	}
	is.Equal(s.do(t, "GET", base+"/versions?limit=0", "").status, http.StatusBadRequest)
	is.Equal(s.do(t, "GET", base+"/versions?cursor=x", "").status, http.StatusBadRequest)
}

func changedTag(t *testing.T, s *site, base string) string {
	t.Helper()
	return s.must(t, "GET", base+"/template", "").header.Get("ETag")
}

// TestIfMatch changes a worker that another client has changed.
func TestIfMatch(t *testing.T) {
	_, s := onServer(t, idle)
	base := "/api/workers/" + s.must(t, "POST", "/api/workers", `{"instructions":"One."}`).text("id")
	old := changedTag(t, s, base)
	s.must(t, "PATCH", base, `{"summary":"Changed by another."}`)
	now := changedTag(t, s, base)
	for name, tt := range map[string]struct {
		header string
		status int
	}{
		"none":               {"", http.StatusOK},
		"any":                {"*", http.StatusOK},
		"old":                {old, http.StatusPreconditionFailed},
		"present":            {now, http.StatusOK},
		"one of two":         {old + ", " + now, http.StatusOK},
		"weak":               {"W/" + now, http.StatusPreconditionFailed}, // weak tags never match here
		"without quotes":     {strings.Trim(now, `"`), http.StatusBadRequest},
		"one quote":          {`"`, http.StatusBadRequest},
		"empty":              {`""`, http.StatusPreconditionFailed},
		"of a later version": {`"v9-000000000000"`, http.StatusPreconditionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			header := ""
			if tt.header != "" {
				header = "If-Match: " + tt.header
			}
			r := s.do(t, "PATCH", base, `{"instructions":"One."}`, header)
			is.Equal(r.status, tt.status)
			if tt.status == http.StatusPreconditionFailed {
				is.Equal(r.text("code"), "precondition_failed")
				is.True(strings.Contains(r.text("error"), "its version is 1 now")) // the error names the current version
			}
		})
	}
}
