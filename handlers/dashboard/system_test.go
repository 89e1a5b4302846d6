package dashboard_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/store"
)

func TestSystemPage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	alive := true
	s := newSite(t, func(c *dashboard.Config) {
		c.System = dashboard.System{Shell: "confined", Layers: []dashboard.Layer{{Name: "namespaces", Active: true, Detail: "own root"}, {Name: "landlock"}},
			SchedulerAlive: func() bool { return alive }, StartedAt: time.Now().Add(-3 * time.Hour)}
	})
	s.join("ada@example.com", store.RoleAdmin)
	is.Equal(s.signIn("ada@example.com").get("/settings/system").status, http.StatusForbidden) // it is the whole server's

	b := s.signIn("ann@example.com")
	p := b.get("/settings/system")
	is.Equal(p.status, http.StatusOK)
	is.True(p.has("0 running, 0 queued", "writable", "alive", "for 3 h 0 min", "own root", "never. Make one", s.store.Dir(), "nowhere: start with"))
	alive = false
	is.NoErr(s.store.Backup(t.Context(), io.Discard))
	p = b.get("/settings/system")
	is.True(p.has("stands still", "just now"))
	is.True(!p.has("Make one"))
}

func TestBrowserSystem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := newWindow(s).borrow(s.signIn("ann@example.com"))
	w.open("/settings")
	w.click("System")
	w.sees("Free on the disk")
	w.look("system")
}
