package tool

import "context"

// An Offer is the tools of other people's servers that one turn has. It is written
// down at the turn's beginning, so that the turn has the same after a restart.
type Offer struct {
	Tools []Offered `json:"tools,omitempty"`
	Note  string    `json:"note,omitempty"` // for the model: whose tools are missing, "" if none are
}

// An Offered is a tool that a server described.
type Offered struct {
	Spec
	Server string `json:"server"` // by the operator's name for it
	Tool   string `json:"tool"`   // by the server's name for it
}

// A Source has tools that come and go. It is safe for concurrent use.
type Source interface {
	// Offer gives the tools of what wanted names, and of all that every worker has.
	// A name is that of a server, or SERVER.TOOL. It waits a bounded time for a
	// server that is not there yet, and goes without it.
	Offer(ctx context.Context, wanted []string) Offer

	// Tool makes an offered tool of its description, now or after a restart. Its
	// calls fail with an *Error when the server is not there.
	Tool(Offered) Tool
}

// Empty says that there is nothing to write down or to tell a model.
func (o Offer) Empty() bool { return len(o.Tools) == 0 && o.Note == "" }
