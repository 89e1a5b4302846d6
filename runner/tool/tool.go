// Package tool holds what a worker can do besides talking: one file a tool, one
// list of them all.
//
// It may import sandbox and nothing else of ours. What a tool needs of the turn
// it runs in, it asks of a Host. A tool never trusts its arguments: a model wrote
// them, perhaps at the bidding of a hostile document.
package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"journeyman/runner/sandbox"
)

// A Tool is something a model may ask for. Implementations hold no state of a
// turn and are safe for concurrent use.
type Tool interface {
	Spec() Spec

	// Run carries one call out. Its result must be JSON: what the model and the
	// reader of the task page see. A *Error is told to the model, which may try
	// something else; any other error ends the turn. Run returns soon after ctx
	// ends.
	Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error)
}

// A Spec describes a tool.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"` // for the model: what it does, when to use it, its limits
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments, an object

	// Repeatable says that a call cut off by a crash may simply be made again: it
	// reads only, or doing it twice leaves what doing it once leaves.
	Repeatable bool `json:"repeatable,omitempty"`
}

// A Host is the turn as a tool sees it.
type Host interface {
	// Workspace is the worker's folder.
	Workspace() *sandbox.Workspace

	// Publish copies the workspace file at path as it is now and gives it an
	// address. It takes effect together with the call's result, or not at all.
	Publish(ctx context.Context, path, title string) (File, error)

	// AddSource notes a web page that the answer may rest on, whose title may be
	// empty. It, too, takes effect together with the call's result.
	AddSource(url, title string)
}

// A File is a published file.
type File struct {
	Path      string `json:"path"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
	URL       string `json:"url"`
}

// An Error is a failed call that the model should hear about and can act on.
type Error struct{ Message string }

// All lists the tools that need nothing but a workspace, in the order a model is
// shown them. A tool is added by its file and its place here.
func All() []Tool {
	return []Tool{
		readFile{newPDFReader()}, writeFile{}, editFile{}, listFiles{}, searchFiles{}, publishFile{}, updatePlan{},
	}
}

// Find is the tool of that name among tools, nil if there is none.
func Find(tools []Tool, name string) Tool {
	for _, t := range tools {
		if t.Spec().Name == name {
			return t
		}
	}
	return nil
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an *Error.
func Errorf(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}
