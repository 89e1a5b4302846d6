// Package toolset decides which tools a turn has, and what its model reads about them. The rules of the worker refuse
// calls, secrets are sent in place of their names and removed from results, and models with a small window get lean
// tools.
//
// It imports the tools, their form for models and prompts, and the records of store. It calls no tool, makes no
// request and reads no row: the runner loads what a Set holds. Other packages must read the value of a
// secret through Secrets.Value only.
package toolset

import (
	"encoding/json"
	"slices"

	"journeyman/runner/arguments"
	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/workers"
)

// A Set holds the tools that a turn may call. It does not change after the runner has loaded it. The zero
// value has no tools.
type Set struct {
	Permission
	Own      []Tool       // tools of this program
	Source   tool.Source  // makes the tools in Remote callable; nil if no MCP servers are configured
	Remote   tool.Toolset // tools of MCP servers that the turn may call
	Names    Names
	Approval []string // names of tools whose calls need approval
	Secrets  Secrets  // that tools may send

	Blindness string // why there is no tool view_image; "" if there may be one
}

// ViewImage is the name of the tool that shows pictures.
const ViewImage = "view_image"

// Own are the tools of this program.
type Own struct {
	List  []Tool
	Specs []model.Tool // List in the form for the model
	Lean  []model.Tool // Specs in the form for models with a small window
}

// NewOwn returns the tools of a list with their specs, which it builds once.
func NewOwn(list []tool.Tool) Own {
	specs := Specs(list)
	return Own{Named(list), specs, LeanSpecs(specs)}
}

// A Tool is a tool of this program with its name. Spec builds the whole description at each call,
// so the name is read only once.
type Tool struct {
	tool.Tool
	Name string
}

// Named returns tools with their names.
func Named(tools []tool.Tool) []Tool {
	own := make([]Tool, len(tools))
	for i, t := range tools {
		own[i] = Tool{t, t.Spec().Name}
	}
	return own
}

// Without returns the tools except those with one of the names.
func Without(tools []Tool, names ...string) []Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return slices.Contains(names, t.Name) })
}

// Setting returns the data about tools for the preamble of a turn.
func (s *Set) Setting(c store.Claim, tools []model.Tool, programs []string) prompt.Setting {
	setting := prompt.Setting{OwnFolder: c.OwnFolder, Lean: s.Remote.Lean, Programs: programs,
		Schema: c.OutputSchema != nil}
	for _, t := range tools {
		setting.Tools = append(setting.Tools, t.Name)
	}
	return setting
}

// Describe returns the tools for the model request: first the runner's own tools that the turn may
// call, then the remote tools.
func (s *Set) Describe(own []model.Tool) (tools []model.Tool) {
	tools = make([]model.Tool, 0, len(own)+len(s.Remote.Tools))
	for _, t := range own {
		if own, _ := s.Find(t.Name); own != nil {
			tools = append(tools, t)
		}
	}
	for _, t := range s.Remote.Tools {
		shown := model.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}
		if s.Remote.Lean {
			shown = lean(shown)
		}
		tools = append(tools, shown)
	}
	// Tell the model in advance, so that it plans for the wait and for a denial.
	for i, t := range tools {
		if s.NeedsApproval(t.Name, nil) {
			tools[i].Description += " A person decides on each call before it runs, and may deny it."
		}
	}
	return tools
}

// Check returns the tool of a call, or an error that tells the model why the call must not run. A
// model may also call tools that are not in its list.
func (s *Set) Check(c store.ToolCall) (tool.Tool, error) {
	if why := view.InputError(c.Input); why != "" {
		return nil, tool.Errorf("%s", why)
	}
	t, id := s.Find(c.ToolName)
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
func (s *Set) noTool(name string) error {
	if name == ViewImage && s.Blindness != "" && s.Allows(ID{Name: ViewImage}) {
		return tool.Errorf("no picture can be shown: %s", s.Blindness)
	}
	var names []string
	for _, t := range s.Own {
		if s.Allows(ID{Name: t.Name}) {
			names = append(names, t.Name)
		}
	}
	for _, t := range s.Remote.Tools {
		names = append(names, t.Name)
	}
	if len(names) == 0 || len(name) > maxNearest {
		return tool.Errorf("there is no tool %q", name)
	}
	return tool.Errorf("there is no tool %q; the nearest is %q", name, Nearest(name, names))
}

// Find returns the tool of that name that the turn may call, and its id in rules. It returns nil if
// there is none.
func (s *Set) Find(name string) (tool.Tool, ID) {
	// Own tools have precedence: a remote server must not replace a tool by using its name.
	if i := slices.IndexFunc(s.Own, func(t Tool) bool { return t.Name == name }); i >= 0 {
		if id := (ID{Name: name}); s.Allows(id) {
			return s.Own[i].Tool, id
		}
		return nil, ID{}
	}
	for _, o := range s.Remote.Tools {
		if o.Name == name && s.Source != nil {
			return s.Source.Tool(o), IDOf(o)
		}
	}
	return nil, ID{}
}

// Fitted returns a call with arguments of the types that its tool wants.
func (s *Set) Fitted(c store.ToolCall) store.ToolCall {
	if t, _ := s.Find(c.ToolName); t != nil && view.InputError(c.Input) == "" {
		c.Input = arguments.Fit(t.Spec().InputSchema, c.Input)
	}
	return c
}

// Parallel returns how many of the first calls may run in parallel. It is at least 1.
func (s *Set) Parallel(calls []store.ToolCall) int {
	n := slices.IndexFunc(calls, func(c store.ToolCall) bool {
		t, _ := s.Find(c.ToolName)
		saves := c.ToolName == workers.HostsTool && tool.FetchSaves(c.Input) // a later call may read that file
		return t != nil && (saves || !t.Spec().Parallel)                     // a call without a tool does nothing
	})
	if n < 0 {
		n = len(calls)
	}
	return max(n, 1)
}

// IsRemote reports whether a tool belongs to an MCP server.
func (s *Set) IsRemote(name string) bool {
	return slices.ContainsFunc(s.Remote.Tools, func(o tool.RemoteTool) bool { return o.Name == name })
}

// NeedsApproval reports whether people must approve calls of a tool. A worker's list may contain a
// remote tool's name for the model, or SERVER, or SERVER.TOOL. All three forms must work, because
// users would rely on a name without effect. A question needs no approval, because it waits for a
// person anyway. Calls that write a file like write_file need approval as write_file does.
func (s *Set) NeedsApproval(name string, input json.RawMessage) bool {
	if name == tool.AskUser {
		return false
	}
	named := func(name string) bool { return slices.Contains(s.Approval, name) }
	if named("write_file") && (name == "make_chart" || name == workers.HostsTool && tool.FetchSaves(input)) {
		return true
	}
	return named(name) || slices.ContainsFunc(s.Remote.Tools, func(o tool.RemoteTool) bool {
		return o.Name == name && (named(o.Server) || named(o.Server+"."+o.Tool))
	})
}

// IDOf returns the id of a remote tool in rules.
func IDOf(o tool.RemoteTool) ID { return ID{Name: o.Name, Server: o.Server, Tool: o.Tool} }

// Asks returns the kind of decision that a call needs from a person, or "".
func (s *Set) Asks(c store.ToolCall) store.ApprovalKind {
	_, err := s.Check(c)
	c = s.Fitted(c)
	switch {
	case err != nil:
		return ""
	case c.ToolName == tool.AskUser && tool.CheckQuestion(c.Input) == nil:
		return store.KindQuestion
	case s.NeedsApproval(c.ToolName, c.Input):
		return store.KindApproval
	}
	return ""
}

// A Names holds what the preamble of one turn names besides its tools. It is stored with the turn's
// toolset, because a changed preamble costs the provider's cache of the prompt.
type Names struct {
	Workers  string   `json:"workers,omitempty"`  // list of those that run_worker can call, "" for none
	Programs []string `json:"programs,omitempty"` // of the shell
}
