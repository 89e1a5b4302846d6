package admin_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/storetest"
)

func TestSystemPage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	alive := true
	s := dashboardtest.New(t, func(c *dashboard.Config) {
		c.System = func() admin.System {
			return admin.System{Shell: "confined", Layers: []admin.Layer{{Name: "namespaces", Active: true, Detail: "own root"},
				{Name: "landlock"}},
				SchedulerAlive: func() bool { return alive }, StartedAt: time.Now().Add(-3 * time.Hour)}
		}
	})
	b := s.SignIn("ann@example.com")
	p := b.Get("/settings/system")
	p.Answers(http.StatusOK).Shows("0 running, 0 queued", "writable", "running", "Up for", "3 h 0 min", "own root",
		s.Store.Dir(), "off: start the server with",
		"1,000,000 tokens (by the price table)", "before instructions and files", "being measured", "none since the start")
	is.Equal(p.Has("never", "Create a backup"), !storetest.OnServer())
	is.NoErr(s.Store.MeasureStorage(t.Context()))
	_, err := s.Store.EndPruning(t.Context(), 0, 0)
	is.NoErr(err)
	b.Get("/settings/system").Shows("Tasks and their turns", "Webhook deliveries", "0 tasks, 0 webhook records")
	alive = false
	if !storetest.OnServer() {
		_, err = s.Store.Backup(t.Context(), io.Discard)
		is.NoErr(err)
		b.Get("/settings/system").Shows("just now")
	}
	p = b.Get("/settings/system")
	p.Shows("stopped: schedules do not run")
	p.Lacks("Create a backup")
}

// TestDoctorOnSystemPage runs the checks with the button, as a user who may see the page.
func TestDoctorOnSystemPage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	runs := 0
	s := dashboardtest.New(t, func(c *dashboard.Config) {
		c.Examine = func(ctx context.Context) []handlers.Checks {
			runs++
			_, limited := ctx.Deadline()
			is.True(limited) // the checks have a time limit
			return []handlers.Checks{{Title: "Disk", List: []handlers.Check{
				{Name: "free space", Status: handlers.CheckFailed, Detail: "3 MiB <left>", Advice: "delete what is not needed"},
				{Name: "free files", Status: handlers.CheckOK, Detail: "many"}}}}
		}
	})
	other := s.Stranger("eve@example.com") // an Owner of another organization than the one that runs the server
	b := s.SignIn("ann@example.com")
	b.Get("/settings/system").Shows("The checks have not run", "Check now")
	is.Equal(runs, 0) // opening the page runs no checks
	p := b.Post("/settings/system/doctor", "")
	is.Equal(p.Location(), "/settings/system?done=checked#doctor")
	b.Get("/settings/system?done=checked").Shows("The checks have finished", "1 failed, 0 warnings, 1 passed, 0 skipped",
		"3 MiB &lt;left&gt;", "delete what is not needed")
	is.Equal(runs, 1)
	b.Get("/settings/system").Shows("3 MiB &lt;left&gt;") // the result stays
	p = other.Get("/settings/system")
	is.Equal(p.Status, http.StatusForbidden)
	p.Shows("Only an Owner of the first organization of this server")
	other.Get("/settings").Lacks("/settings/system")
	is.Equal(other.Post("/settings/system/doctor", "").Status, http.StatusForbidden)
	is.Equal(runs, 1)
	is.True(s.Store.Gate.BeginMaintenance())
	is.Equal(b.Post("/settings/system/doctor", "").Location(),
		"/settings/system?done=checked#doctor") // the checks change nothing
	is.Equal(runs, 2)
	dashboardtest.New(t).SignIn("ann@example.com").Get("/settings/system").Lacks("Check now") // a server without checks
}

// TestSystemPageOfNodes shows the page of a server that shares its database.
func TestSystemPageOfNodes(t *testing.T) {
	t.Parallel()
	if !storetest.OnServer() {
		t.Skip("several nodes need a database on a server: .ci/postgres runs a command with one")
	}
	s := dashboardtest.NewOf(t, storetest.Open(t, store.Options{Node: &store.Node{URL: "http://node1.test:8080",
		Version: "7.8.9"}}))
	b := s.SignIn("ann@example.com")
	p := b.Get("/settings/system")
	p.Answers(http.StatusOK).Shows("Nodes", "http://node1.test:8080", "7.8.9", "this node", "leader",
		"has renewed its lease")
	p.Lacks("has lost its lease", "The clock of this node differs")
}
