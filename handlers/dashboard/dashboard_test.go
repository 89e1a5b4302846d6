package dashboard_test

import (
	"strings"
	"testing"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
)

// TestMissingDependencies leaves out each value that the pages need. New names it, so that no request finds it missing.
func TestMissingDependencies(t *testing.T) {
	var whole dashboard.Config
	is, _ := dashboardtest.OnSite(t, func(c *dashboard.Config) { whole = *c })
	for name, leaveOut := range map[string]func(c *dashboard.Config){
		"a store":             func(c *dashboard.Config) { c.Store = nil },
		"a runner":            func(c *dashboard.Config) { c.Runner = nil },
		"an API":              func(c *dashboard.Config) { c.API = nil },
		"a log":               func(c *dashboard.Config) { c.Log = nil },
		"alerts":              func(c *dashboard.Config) { c.Alerts = nil },
		"MCP servers":         func(c *dashboard.Config) { c.Servers = nil },
		"the system":          func(c *dashboard.Config) { c.System = nil },
		"an inbox":            func(c *dashboard.Config) { c.Inbox = nil },
		"a reader of mail":    func(c *dashboard.Config) { c.ReadMail = nil },
		"webhooks":            func(c *dashboard.Config) { c.Webhooks = nil },
		"notice of schedules": func(c *dashboard.Config) { c.ScheduleChanged = nil },
	} {
		cfg := whole
		leaveOut(&cfg)
		_, err := dashboard.New(cfg)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	_, err := dashboard.New(whole)
	is.NoErr(err)
}
