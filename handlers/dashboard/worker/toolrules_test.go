package worker_test

import (
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestToolRules opens the rules of a worker, sends them back unchanged, and changes them.
func TestToolRules(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk", Workspace: workers.TaskWorkspace, Settings: workers.Settings{
		Tools: workers.ToolRules{{Tool: "gone.send"}, {Tool: "web_fetch", Hosts: []string{"*.example.org",
			"a.test"}}, {Tool: "read_file"}},
		StrangerTools: workers.ToolRules{}}})
	path := "/workers/" + w.ID + "/settings"
	p := b.Get(path)
	p.Shows(`name="toolsMode" value="only" checked`, `name="tools" value="web_fetch" checked`,
		`name="tools" value="shell">`,
		`value="*.example.org a.test"`, `value="gone.send"`, `name="strangerToolsMode" value="only" checked`, `<option value="task" selected`)
	base := []string{"title", "Clerk", "visibility", "public", "toolsMode", "only", "tools", "read_file", "tools",
		"web_fetch", "toolsHosts", "*.example.org a.test",
		"toolsOther", "gone.send", "strangerToolsMode", "only", "workspace", "task"}
	now := func() workers.Worker {
		w, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
		is.NoErr(err)
		return w
	}
	is.Equal(b.Post(path, base...).Location(), path+"?done=worker-changed")
	is.Equal(now().Version, int64(1)) // saving it unchanged changes nothing: a named server may not exist any more
	p = b.Post(path, append(base, "strangerTools", "read_file", "strangerToolsOther", "gone.read")...)
	p.Shows("names &#34;gone.read&#34;, which is no tool", `name="strangerTools" value="read_file" checked`)
	is.Equal(b.Post(path, "title", "Clerk", "visibility", "public", "toolsMode", "default", "strangerToolsMode",
		"default", "workspace", "shared").Status, 303)
	is.Equal(now().Settings, workers.Settings{ApprovalTools: []string{}, MCPTools: []string{}})
	is.Equal(now().Workspace, workers.SharedWorkspace)
	p = b.Get(path)
	p.Shows(`name="toolsMode" value="default" checked`, `name="tools" value="shell" checked`,
		`name="strangerTools" value="publish_file" checked`,
		`name="strangerTools" value="shell">`) // the tools of the default, so that the user can remove some

	// Users who may not change the rules see them.
	s.Join("mo@example.com", people.RoleMember)
	mo := s.SignIn("mo@example.com")
	mo.Get(path).Shows("<dt>Tools</dt><dd>all</dd>", "<code>publish_file</code>", "one folder for all tasks")
	_, err := s.Store.Workers.UpdateWorker(t.Context(), s.Owner.Caller, w.ID,
		workers.Patch{Tools: &workers.ToolRules{{Tool: "shell", Commands: []string{"git", "ls"}}},
			StrangerTools: &workers.ToolRules{}})
	is.NoErr(err)
	mo.Get(path).Shows("<code>shell: git ls</code>", "<dt>Tools for non-members</dt><dd>none</dd>")
}
