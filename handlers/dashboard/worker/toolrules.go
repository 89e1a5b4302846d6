package worker

import (
	"slices"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/toolset"
	"journeyman/store/workers"
)

// toolRules is the data of the fields for one list of rules. The user chooses the default or "only
// these". The latter has check boxes for this program's tools, and text fields for their arguments
// and for MCP tools.
type toolRules struct {
	Form               *frame.Form
	Name, Legend, Hint string
	Default            string   // describes the tools that the default permits
	Tools              []string // tools with a check box
	Only               bool
	suggested          []string // tools that are checked before the user chooses
}

// Rules returns the fields of the list with that name: tools or strangerTools.
func (v workerFields) Rules(name string) toolRules {
	r := toolRules{Form: v.Form, Name: name, Tools: v.OwnTools, Only: v.Form.Get(name+"Mode") == "only",
		suggested: v.OwnTools, Legend: v.lang.T("Allowed tools"), Default: v.lang.T("Every tool"),
		Hint: v.lang.T("Calls of other tools are refused. MCP tools must be allowed in their own list below, too.")}
	if name == "strangerTools" {
		r.Legend = v.lang.T("Tools for non-members")
		r.Default = v.lang.T("Files of the task's own folder, and publishing")
		r.suggested = ruledTools(toolset.StrangerTools(workers.Settings{}))
		r.Hint = v.lang.T("Tasks of non-members, such as mail from strangers, " +
			"may call only tools that are allowed both here and above.")
	}
	return r
}

// Error returns the fault of the rules.
func (r toolRules) Error() string { return r.Form.Errors[r.Name] }

// Checked reports whether a tool is checked. Before the user restricts the tools, those of the
// default are checked, so that the user can remove some.
func (r toolRules) Checked(name string) bool {
	ticked := r.Form.Values[r.Name]
	if !r.Only && len(ticked) == 0 {
		ticked = r.suggested
	}
	return slices.Contains(ticked, name)
}

// ruledTools returns the tools that rules name.
func ruledTools(rules workers.ToolRules) (names []string) {
	for _, r := range rules {
		names = append(names, r.Tool)
	}
	return names
}

// HostsField returns the name of the field for hosts.
func (r toolRules) HostsField() string { return r.Name + "Hosts" }

// CommandsField returns the name of the field for commands.
func (r toolRules) CommandsField() string { return r.Name + "Commands" }

// OtherField returns the name of the field for other tools.
func (r toolRules) OtherField() string { return r.Name + "Other" }

// rulesOf reads the rules with that name. It returns nil if the form does not have
// them, and a pointer to nil for the default.
func rulesOf(f *frame.Form, name string) *workers.ToolRules {
	var rules workers.ToolRules
	switch f.Get(name + "Mode") {
	case "":
		return nil
	case "only":
		rules = workers.ToolRules{}
		hosts, commands := namesOf(f, name+"Hosts"), namesOf(f, name+"Commands")
		tools := namesOf(f, name)
		// A tool with an argument is allowed even if it is not checked.
		if len(hosts) > 0 && !slices.Contains(tools, workers.HostsTool) {
			tools = append(tools, workers.HostsTool)
		}
		if len(commands) > 0 && !slices.Contains(tools, workers.CommandsTool) {
			tools = append(tools, workers.CommandsTool)
		}
		for _, t := range append(tools, namesOf(f, name+"Other")...) {
			r := workers.ToolRule{Tool: t}
			switch t {
			case workers.HostsTool:
				r.Hosts = hosts
			case workers.CommandsTool:
				r.Commands = commands
			}
			rules = append(rules, r)
		}
	}
	return &rules
}

// showRules fills the fields of the list with that name. own are the tools with a check box.
func showRules(f *frame.Form, name string, rules workers.ToolRules, own []string) {
	f.Values.Set(name+"Mode", "default")
	if rules != nil {
		f.Values.Set(name+"Mode", "only")
	}
	// A text field holds the tools without a check box, so that saving the form keeps them.
	var other []string
	for _, r := range rules {
		if !slices.Contains(own, r.Tool) {
			other = append(other, r.Tool)
			continue
		}
		f.Values.Add(name, r.Tool)
		if r.Hosts != nil {
			f.Values.Set(name+"Hosts", strings.Join(r.Hosts, " "))
		}
		if r.Commands != nil {
			f.Values.Set(name+"Commands", strings.Join(r.Commands, " "))
		}
	}
	f.Values.Set(name+"Other", strings.Join(other, " "))
}
