package tool

import "context"

// A Toolset holds the tools of MCP servers that one turn can call, and how the model sees
// tools. It is saved when the turn begins, so that the turn has the same tools after a restart.
type Toolset struct {
	Tools []RemoteTool `json:"tools,omitempty"`
	Note  string       `json:"note,omitempty"` // tells the model which tools are missing; "" if none are
	// Lean reports whether the turn has few tools with short descriptions. They fit into the
	// small context window of its model.
	Lean bool `json:"lean,omitempty"`
}

// A RemoteTool is a tool that an MCP server has described.
type RemoteTool struct {
	Spec
	Server string `json:"server"` // the operator's name for the server
	Tool   string `json:"tool"`   // the server's name for the tool

	Resource bool `json:"resource,omitempty"` // reads resources of the server; the server has not described it
}

// A Source provides the tools of MCP servers. It is safe for concurrent use.
type Source interface {
	// Toolset returns the tools that wanted names, and those that every worker has. Each
	// name is SERVER or SERVER.TOOL. Toolset waits a limited time for a server that is not
	// ready, and then leaves out its tools. secret returns a secret of the turn's worker, for
	// servers whose configuration refers to secrets.
	Toolset(ctx context.Context, wanted []string, secret SecretSource) Toolset

	// Known returns the names that a worker can want: every server, and SERVER.TOOL of each
	// server that has listed its tools already.
	Known() []string

	// Tool makes a callable tool of a description. The description may be older than this
	// process. Calls of the tool return an *Error while its server is down.
	Tool(RemoteTool) Tool
}

// Empty reports whether the toolset has nothing to save and nothing to tell the model.
func (o Toolset) Empty() bool { return len(o.Tools) == 0 && o.Note == "" && !o.Lean }
