package runner

import (
	"encoding/json"
	"slices"

	"journeyman/runner/arguments"
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
)

// A turnTools holds the tools that a turn may call. It does not change after loadToolset.
type turnTools struct {
	permission
	own      []ownTool    // tools of this program
	source   tool.Source  // makes tools in remote callable; nil if no MCP servers are configured
	remote   tool.Toolset // tools of MCP servers that the turn may call
	names    preambleNames
	approval []string // names of tools whose calls need approval
	secrets  secrets  // that tools may send

	blindness string // why there is no tool view_image; "" if there may be one
}

// viewImage is the name of the tool that shows pictures.
const viewImage = "view_image"

// ownTools are the tools of this program.
type ownTools struct {
	list  []ownTool
	specs []model.Tool // list in the form for the model
	lean  []model.Tool // specs in the form for models with a small window
}

func newOwnTools(list []tool.Tool) ownTools {
	specs := toolSpecs(list)
	return ownTools{named(list), specs, leanSpecs(specs)}
}

// An ownTool is a tool of this program with its name. Spec builds the whole description at each call,
// so the name is read only once.
type ownTool struct {
	tool.Tool
	name string
}

// named returns tools with their names.
func named(tools []tool.Tool) []ownTool {
	own := make([]ownTool, len(tools))
	for i, t := range tools {
		own[i] = ownTool{t, t.Spec().Name}
	}
	return own
}

// without returns the tools except those with one of the names.
func without(tools []ownTool, names ...string) []ownTool {
	return slices.DeleteFunc(slices.Clone(tools), func(t ownTool) bool { return slices.Contains(names, t.name) })
}

// setting returns the data about tools for the preamble of a turn.
func (s *turnTools) setting(c store.Claim, tools []model.Tool, programs []string) prompt.Setting {
	setting := prompt.Setting{OwnFolder: c.OwnFolder, Lean: s.remote.Lean, Programs: programs,
		Schema: c.OutputSchema != nil}
	for _, t := range tools {
		setting.Tools = append(setting.Tools, t.Name)
	}
	return setting
}

// describe returns the tools for the model request: first the runner's own tools that the turn may
// call, then the remote tools.
func (s *turnTools) describe(own []model.Tool) (tools []model.Tool) {
	tools = make([]model.Tool, 0, len(own)+len(s.remote.Tools))
	for _, t := range own {
		if own, _ := s.find(t.Name); own != nil {
			tools = append(tools, t)
		}
	}
	for _, t := range s.remote.Tools {
		shown := model.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
		if s.remote.Lean {
			shown = lean(shown)
		}
		tools = append(tools, shown)
	}
	// Tell the model in advance, so that it plans for the wait and for a denial.
	for i, t := range tools {
		if s.needsApproval(t.Name, nil) {
			tools[i].Description += " A person decides on each call before it runs, and may deny it."
		}
	}
	return tools
}

// check returns the tool of a call, or an error that tells the model why the call must not run. A
// model may also call tools that are not in its list.
func (s *turnTools) check(c store.ToolCall) (tool.Tool, error) {
	if why := view.InputError(c.Input); why != "" {
		return nil, tool.Errorf("%s", why)
	}
	t, id := s.find(c.ToolName)
	if t == nil {
		return nil, s.noTool(c.ToolName)
	}
	if why := s.refusal(id, c.Input); why != "" {
		return nil, tool.Errorf("%s", why)
	}
	return t, nil
}

// maxNearest is the maximum length, in bytes, of names that are compared with tool names. The model
// may write names of any length.
const maxNearest = 100

// noTool returns the error for a name that is not a tool of the turn. It suggests the nearest name.
func (s *turnTools) noTool(name string) error {
	if name == viewImage && s.blindness != "" && s.allows(toolID{name: viewImage}) {
		return tool.Errorf("no picture can be shown: %s", s.blindness)
	}
	var names []string
	for _, t := range s.own {
		if s.allows(toolID{name: t.name}) {
			names = append(names, t.name)
		}
	}
	for _, t := range s.remote.Tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 || len(name) > maxNearest {
		return tool.Errorf("there is no tool %q", name)
	}
	return tool.Errorf("there is no tool %q; the nearest is %q", name, nearest(name, names))
}

// find returns the tool of that name that the turn may call, and its id in rules. It returns nil if
// there is none.
func (s *turnTools) find(name string) (tool.Tool, toolID) {
	// Own tools have precedence: a remote server must not replace a tool by using its name.
	if i := slices.IndexFunc(s.own, func(t ownTool) bool { return t.name == name }); i >= 0 {
		if id := (toolID{name: name}); s.allows(id) {
			return s.own[i].Tool, id
		}
		return nil, toolID{}
	}
	for _, o := range s.remote.Tools {
		if o.Name == name && s.source != nil {
			return s.source.Tool(o), idOf(o)
		}
	}
	return nil, toolID{}
}

// fitted returns a call with arguments of the types that its tool wants.
func (s *turnTools) fitted(c store.ToolCall) store.ToolCall {
	if t, _ := s.find(c.ToolName); t != nil && view.InputError(c.Input) == "" {
		c.Input = arguments.Fit(t.Spec().InputSchema, c.Input)
	}
	return c
}

// parallel returns how many of the first calls may run in parallel. It is at least 1.
func (s *turnTools) parallel(calls []store.ToolCall) int {
	n := slices.IndexFunc(calls, func(c store.ToolCall) bool {
		t, _ := s.find(c.ToolName)
		saves := c.ToolName == store.HostsTool && tool.FetchSaves(c.Input) // a later call may read that file
		return t != nil && (saves || !t.Spec().Parallel)                   // a call without a tool does nothing
	})
	if n < 0 {
		n = len(calls)
	}
	return max(n, 1)
}

// isRemote reports whether a tool belongs to an MCP server.
func (s *turnTools) isRemote(name string) bool {
	return slices.ContainsFunc(s.remote.Tools, func(o tool.RemoteTool) bool { return o.Name == name })
}

// needsApproval reports whether people must approve calls of a tool. A worker's list may contain a
// remote tool's name for the model, or SERVER, or SERVER.TOOL. All three forms must work, because
// users would rely on a name without effect. A question needs no approval, because it waits for a
// person anyway. Calls that write a file like write_file need approval as write_file does.
func (s *turnTools) needsApproval(name string, input json.RawMessage) bool {
	if name == tool.AskUser {
		return false
	}
	named := func(name string) bool { return slices.Contains(s.approval, name) }
	if named("write_file") && (name == "make_chart" || name == store.HostsTool && tool.FetchSaves(input)) {
		return true
	}
	return named(name) || slices.ContainsFunc(s.remote.Tools, func(o tool.RemoteTool) bool {
		return o.Name == name && (named(o.Server) || named(o.Server+"."+o.Tool))
	})
}

// idOf returns the id of a remote tool in rules.
func idOf(o tool.RemoteTool) toolID { return toolID{name: o.Name, server: o.Server, tool: o.Tool} }

// asks returns the kind of decision that a call needs from a person, or "".
func (s *turnTools) asks(c store.ToolCall) store.ApprovalKind {
	_, err := s.check(c)
	c = s.fitted(c)
	switch {
	case err != nil:
		return ""
	case c.ToolName == tool.AskUser && tool.CheckQuestion(c.Input) == nil:
		return store.KindQuestion
	case s.needsApproval(c.ToolName, c.Input):
		return store.KindApproval
	}
	return ""
}

// A preambleNames holds what the preamble of one turn names besides its tools. It is stored with the turn's
// toolset, because a changed preamble costs the provider's cache of the prompt.
type preambleNames struct {
	Workers  string   `json:"workers,omitempty"`  // list of those that run_worker can call, "" for none
	Programs []string `json:"programs,omitempty"` // of the shell
}
