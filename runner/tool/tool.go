// Package tool contains the tools that workers call. Each tool has a file of its own, and All
// lists them.
//
// Of this module, the package may import only dial, workspace, sandbox, diff, visible, and the readers and writers of
// documents. A tool gets the data of its turn from a Host. A tool never trusts its arguments: a model wrote them, and a hostile
// document may have misled the model.
package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"journeyman/runner/workspace"
)

// A Tool is a function that a model may call. Implementations keep no state of a turn and are
// safe for concurrent use.
type Tool interface {
	Spec() Spec

	// Run makes one call. It returns JSON for the model and for the task's page. If it returns
	// an *Error, the model gets the error as the result and can react. Any other error ends the
	// turn. Run returns soon after ctx ends.
	Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error)
}

// A Spec describes a tool.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"` // for the model: what it does, when to use it, its limits
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments, which are an object

	// Repeatable reports whether the runner may repeat a call after a crash. It is set if the
	// call only reads, or if a second call changes nothing more.
	Repeatable bool `json:"repeatable,omitempty"`

	// Parallel reports whether a call may run at the same time as other such calls of its step.
	// It is set if the call only reads, or if another turn does the work. Other calls run
	// alone, in the order of the step.
	Parallel bool `json:"parallel,omitempty"`
}

// A Host gives a tool access to its turn.
type Host interface {
	// Workspace returns the turn's folder.
	Workspace() *workspace.Workspace

	// Publish copies the current contents of the file at path, and gives the copy an address.
	// The copy is published together with the call's result, or not at all.
	Publish(ctx context.Context, path, title string) (File, error)

	// ShowImage adds an image to the call's result, in the form that Documents.Picture returns. path is
	// its path in the workspace, "b.pdf#page=3" for a page of a document, "" for none. ShowImage returns an *Error if the model that made the call
	// takes no images, if data is no picture that can be read, or for more than MaxImages. The image is
	// saved together with the call's result, or not at all.
	ShowImage(ctx context.Context, path string, data []byte) (Picture, error)

	// CheckHost returns an *Error for a host that the turn must not access. Tools that follow
	// redirects call it for the host of each redirect.
	CheckHost(host string) error

	// Secret returns the value of a secret that may be sent to a host, or an *Error. A tool may
	// put the value only into a request, never into a result.
	Secret(name, host string) (string, error)

	// Hide returns a text without the values of secrets. The runner also hides them in every
	// result. A tool that cuts a text from outside must call Hide before: Hide does not
	// recognize a part of a value.
	Hide(text string) string

	// AddSource records a web page as a possible source of the answer. title may be empty. The
	// source is saved together with the call's result, or not at all.
	AddSource(url, title string)

	// RunWorker starts an errand of another worker. A repeated call does not start it again.
	// Until the errand has a result, RunWorker returns ErrLater, which Run must return, too.
	RunWorker(ctx context.Context, e Errand) (json.RawMessage, error)

	// CallToken returns the token of this call, which MCP requests contain in the field
	// CallMeta.
	CallToken() (string, error)
}

// A File is a published file.
type File struct {
	Path      string `json:"path"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
	URL       string `json:"url"`
}

// An Error is a failure that the model can react to. It becomes the result of the call.
type Error struct{ Message string }

// All returns the tools that need only a Host and Documents. The model gets the tools in this
// order. A new tool has its own file, and an entry in this list.
func All(docs Documents) []Tool {
	return []Tool{
		readFile{docs}, writeFile{docs}, editFile{}, listFiles{}, searchFiles{docs}, viewImage{docs}, makeChart{docs}, publishFile{},
		updatePlan{}, askUser{}, runWorker{},
	}
}

// Names returns the names of all tools of this program. It includes those of WebFetch,
// WebSearch and Shell, which may not be available on every server.
func Names() []string {
	var names []string
	// Zero values are sufficient, because Spec reads no field of a tool.
	for _, t := range append(All(Documents{}), webFetch{}, webSearch{}, shell{}) {
		names = append(names, t.Spec().Name)
	}
	return names
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf creates an *Error.
func Errorf(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}
