package runner

import (
	"slices"
	"strings"

	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// ToolNames lists the tools of every worker, in the same order as in model requests.
func (r *Runner) ToolNames() []string {
	specs := r.tools().Specs
	names := make([]string, len(specs))
	for i, t := range specs {
		names[i] = t.Name
	}
	return names
}

// CheckTools adds an error to f for each list of s that contains an unknown tool name. The error
// suggests the nearest known name. Without the error, users would rely on a rule that has no
// effect. Names of an MCP server's tools are accepted while the server has not listed its tools.
func (r *Runner) CheckTools(f *db.Fields, s workers.Settings) {
	check := func(path string, names []string, known func(string) bool) {
		unknown := slices.IndexFunc(names, func(name string) bool { return !known(name) })
		if unknown >= 0 {
			f.Add(path, "names %q, which is no tool; the nearest is %q. There are the tools %s, "+
				"and \"server\" or \"server.tool\" for MCP servers",
				names[unknown], toolset.Nearest(names[unknown], r.knownTools()), strings.Join(r.OwnTools(), ", "))
		}
	}
	ruled := func(l workers.ToolRules) (names []string) {
		for _, r := range l {
			names = append(names, r.Tool)
		}
		return names
	}
	// Approvals may also contain a remote tool's name for the model, with "__": see toolset.Set.NeedsApproval.
	check("tools", ruled(s.Tools), r.knowsTool)
	check("strangerTools", ruled(s.StrangerTools), r.knowsTool)
	check("approvalTools", s.ApprovalTools, func(name string) bool {
		return strings.Contains(name, ".") || strings.Contains(name, "__") || r.knowsTool(name)
	})
}

// OwnTools lists the tools of this program that rules may name. Some of them may not be available
// on this machine.
func (r *Runner) OwnTools() []string {
	names := tool.Names()
	for _, name := range r.ToolNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// knownTools lists all names that are known to be valid in rules.
func (r *Runner) knownTools() []string {
	names := r.OwnTools()
	if r.cfg.Remote != nil {
		names = append(names, r.cfg.Remote.Known()...)
	}
	return names
}

// knowsTool reports whether rules may contain a name. Any tool name of a server is valid while that
// server has not listed its tools.
func (r *Runner) knowsTool(name string) bool {
	known := r.knownTools()
	if slices.Contains(known, name) {
		return true
	}
	server, _, dotted := strings.Cut(name, ".")
	listed := func(k string) bool { return strings.HasPrefix(k, server+".") }
	return dotted && r.cfg.Remote != nil && slices.Contains(r.cfg.Remote.Known(), server) &&
		!slices.ContainsFunc(known, listed)
}
