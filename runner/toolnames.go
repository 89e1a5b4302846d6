package runner

import (
	"slices"
	"strings"

	"journeyman/runner/tool"
	"journeyman/store"
)

// ToolNames lists the tools that every worker has, in the order in which the model sees
// them.
func (r *Runner) ToolNames() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.Name
	}
	return names
}

// CheckTools adds to f an error for each list of s that names an unknown tool, with the
// nearest known name. Without the error, people would believe that such a rule protects
// them. It accepts names of tools of MCP servers that have not listed their tools yet.
func (r *Runner) CheckTools(f *store.Fields, s store.WorkerSettings) {
	check := func(path string, names []string, known func(string) bool) {
		unknown := slices.IndexFunc(names, func(name string) bool { return !known(name) })
		if unknown >= 0 {
			f.Add(path, "names %q, which is no tool; the nearest is %q. There are the tools %s, "+
				"and \"server\" or \"server.tool\" for MCP servers",
				names[unknown], nearest(names[unknown], r.knownTools()), strings.Join(r.OwnTools(), ", "))
		}
	}
	ruled := func(l store.ToolRules) (names []string) {
		for _, r := range l {
			names = append(names, r.Tool)
		}
		return names
	}
	// Approvals may also name a remote tool as the model does, with "__": see needsApproval.
	check("tools", ruled(s.Tools), r.knowsTool)
	check("strangerTools", ruled(s.StrangerTools), r.knowsTool)
	check("approvalTools", s.ApprovalTools, func(name string) bool {
		return strings.Contains(name, ".") || strings.Contains(name, "__") || r.knowsTool(name)
	})
}

// OwnTools lists the tools of this program that a rule may name. Some of them may be
// missing on this machine.
func (r *Runner) OwnTools() []string {
	names := tool.Names()
	for _, name := range r.ToolNames() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// knownTools lists the names that rules may use, as far as they are known.
func (r *Runner) knownTools() []string {
	names := r.OwnTools()
	if r.cfg.Remote != nil {
		names = append(names, r.cfg.Remote.Known()...)
	}
	return names
}

// knowsTool reports whether rules may use a name. While a server has not listed its tools
// yet, rules may name any tool of it.
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
