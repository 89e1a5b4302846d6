package tool

import "context"

// A Toolset holds the MCP tools that one turn can call, and how tools and workers are described
// to the model. It is saved when the turn begins, so that the turn has the same tools after a restart.
type Toolset struct {
	Tools []RemoteTool `json:"tools,omitempty"`
	Note  string       `json:"note,omitempty"` // tells the model which tools are missing; "" if none are
	// Lean reports whether the turn gets few tools with short descriptions, because the context
	// window of its model is small.
	Lean bool `json:"lean,omitempty"`
}

// A RemoteTool is a tool that an MCP server has described.
type RemoteTool struct {
	Spec
	Server string `json:"server"` // the operator's name for the server
	Tool   string `json:"tool"`   // the server's name for the tool

	Resource bool `json:"resource,omitempty"` // the tool reads resources of the server; the server does not describe it
}

// A Source provides the tools of MCP servers. It is safe for concurrent use.
type Source interface {
	// Toolset returns the tools in wanted, and those that every worker gets. Each name is
	// SERVER or SERVER.TOOL. Toolset waits a limited time for a server that is not ready, and
	// then omits the tools of that server. secret returns secrets of the turn's worker, for
	// servers whose configuration refers to secrets.
	Toolset(ctx context.Context, wanted []string, secret SecretSource) Toolset

	// Known returns the names that a worker can use in wanted: every server, and SERVER.TOOL
	// for each server that has already listed its tools.
	Known() []string

	// Tool returns a callable tool for a description. The description may be older than this
	// process. Calls of the tool return an *Error while its server is unavailable.
	Tool(RemoteTool) Tool
}

// Empty reports whether the toolset contains nothing to save.
func (o Toolset) Empty() bool { return len(o.Tools) == 0 && o.Note == "" && !o.Lean }
