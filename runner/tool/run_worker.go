package tool

import (
	"context"
	"encoding/json"
	"errors"
)

// Limits of run_worker.
const (
	maxWorkerName   = 200     // characters
	maxErrandInput  = 100_000 // characters
	maxErrandFiles  = 20
	maxErrandTaskID = 128 // characters
)

// RunWorkerName is the name of the tool that runs another worker.
const RunWorkerName = "run_worker"

// CallMeta is the field of an MCP request's _meta with the token of the calling tool call. By
// this token, this program recognizes a call to its own MCP server. ChildMeta is the field of
// the response with the id of a turn: the result of that turn becomes the result of the call.
const (
	CallMeta  = "journeyman/call"
	ChildMeta = "journeyman/child"
)

// ErrLater is the error of Run if the result will come from another turn. When that turn has
// ended, the runner calls Run again.
var ErrLater = errors.New("the result of the call comes later")

// An Errand is a request of a turn to another worker: a new instruction, or a request for the
// result of an earlier errand.
type Errand struct {
	Worker string // id or title
	Input  string
	Files  []string // paths in the workspace; the worker gets copies
	Wait   bool     // wait for the result; otherwise the call ends when the errand is accepted
	TaskID string   // task of an earlier errand, to get its result; "" for a new errand
}

type runWorker struct{}

// Spec describes run_worker.
func (runWorker) Spec() Spec {
	return Spec{
		Name: RunWorkerName,
		Description: `Have another worker do a part of the work, from the same budget. It sees input and files (paths), and
nothing else of this task. Calls in one step run side by side. The files in the result are copies in the workspace. With
wait false, the call only starts it.`,
		InputSchema: objectSchema(`
    "worker": {"type": "string", "maxLength": 200, "description": "Its title or id"},
    "input": {"type": "string", "description": "The instruction, with all that it must know"},
    "files": {"type": "array", "maxItems": 20, "items": {"type": "string"}},
    "wait": {"type": "boolean", "description": "Default true"},
    "task": {"type": "string", "description": "Alone, the task of an earlier result, to get its answer"}`),
		Repeatable: true, // a repeated call returns the turn that it started before
		Parallel:   true,
	}
}

// Run starts a turn of another worker, or returns the result of an earlier one.
func (runWorker) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	e := Errand{TaskID: a.text("task", false, maxErrandTaskID), Wait: true}
	e.Worker = a.text("worker", e.TaskID == "", maxWorkerName)
	e.Input = a.text("input", e.TaskID == "", maxErrandInput)
	e.Files = a.paths("files", maxErrandFiles)
	// boolean returns false for an absent argument, but the default here is true.
	if a.has("wait", false) {
		e.Wait = a.boolean("wait")
	}
	switch {
	case e.TaskID != "" && (e.Worker != "" || e.Input != "" || len(e.Files) > 0):
		a.wrong("task stands alone: it asks for the answer of an earlier call")
	// text has already reported a missing input, so check only for an empty one.
	case e.TaskID == "" && string(a.fields["input"]) == `""`:
		a.wrong("input must not be empty")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	return host.RunWorker(ctx, e)
}
