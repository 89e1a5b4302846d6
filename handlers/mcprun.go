package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store"
)

// progressEvery is how often a client that asks for it hears that a run goes on.
const progressEvery = 5 * time.Second

// mcpRun hands an instruction to a worker. The turn is committed before anything
// is waited for, so a client that gives up loses nothing.
func (a *API) mcpRun(ctx context.Context, c *mcpCall, args *body, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	turn := store.NewTurn{Caller: c.who.Caller, WorkerID: c.worker, TaskID: value(args.text("task")), Input: args.instruction(), Budget: args.budget()}
	if c.worker == "" {
		turn.WorkerID = value(args.text("worker"))
		args.invalid.Check(turn.WorkerID != "", "worker", "is required")
	}
	args.invalid.Check(turn.TaskID == "" || store.ValidTaskID(turn.TaskID), "task", "must have 1 to 128 characters from A-Z, a-z, 0-9 and . _ : -")
	wait := args.seconds(forever)
	if err := args.invalid.Err(); err != nil {
		return nil, err
	}
	content, err := args.canonical()
	if err != nil {
		return nil, err
	}
	// The ids of messages begin anew with each client, so they do not tell a call made
	// again from a new one. Clients that repeat calls say so by a key.
	if key, _ := req.Params.Meta["idempotencyKey"].(string); key != "" {
		c.Header.Set("Idempotency-Key", key)
	}
	if turn.Once, err = once(c.request, append([]byte(turn.WorkerID+"\n"), content...)); err != nil {
		return nil, err
	}
	turn.Once.Retry = false
	accepted, err := a.commit(c.request, turn, false)
	if err != nil {
		return nil, err
	}
	return a.mcpAwait(ctx, c, req, accepted.Turn, wait)
}

func (a *API) mcpGetTask(ctx context.Context, c *mcpCall, args *body, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	id, wait := value(args.text("task")), args.seconds(0)
	args.invalid.Check(id != "", "task", "is required")
	if err := args.invalid.Err(); err != nil {
		return nil, err
	}
	task, _, err := a.store.Task(ctx, c.who.Caller, id)
	if err != nil {
		return nil, err
	}
	turns, err := a.store.Turns(ctx, task.Num)
	if err != nil {
		return nil, err
	}
	if len(turns) == 0 {
		return nil, store.Errorf(store.NotFound, "task %q has no turns", id)
	}
	return a.mcpAwait(ctx, c, req, turns[len(turns)-1], wait)
}

// mcpAwait waits for a turn's end, at most for wait and as long as the client is
// there, and tells how the turn stands then.
func (a *API) mcpAwait(ctx context.Context, c *mcpCall, req *sdk.CallToolRequest, t store.Turn, wait time.Duration) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.out.keepAlive(a.cfg.Timing.SilentFor, a.cfg.Timing.SpaceEvery)()
	defer context.AfterFunc(c.Context(), cancel)() // the client's leaving does not reach ctx by itself
	if err := a.mcpWait(ctx, req, t, wait); err != nil {
		return nil, err
	}
	wrk, err := a.store.WorkerOfTurn(ctx, t)
	if err != nil {
		return nil, err
	}
	v, err := a.turnRun(ctx, wrk, t, false)
	if err != nil {
		return nil, err
	}
	return a.mcpResult(v, t)
}

// mcpWait waits and tells of progress meanwhile.
func (a *API) mcpWait(ctx context.Context, req *sdk.CallToolRequest, t store.Turn, wait time.Duration) error {
	timed, cancel := ctx, context.CancelFunc(func() {})
	if wait < forever {
		timed, cancel = context.WithTimeout(ctx, wait)
	}
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.runner.Wait(timed, t.ID) }() // ends with timed, and nobody leaves here before
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	a.mcpProgress(ctx, req, t, 0)
	for n := 1; ; n++ {
		select {
		case err := <-ended:
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return nil // how it stands is told all the same
			}
			return err
		case <-tick.C:
			a.mcpProgress(ctx, req, t, n)
		}
	}
}

// mcpProgress tells a client that asked for it how far a turn is. It is a courtesy:
// what goes wrong with it is not told.
func (a *API) mcpProgress(ctx context.Context, req *sdk.CallToolRequest, t store.Turn, n int) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	now, err := a.store.Turn(ctx, t.ID)
	if err != nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n),
		Message: fmt.Sprintf("task %s: %s, %d steps", now.TaskID, now.Status, now.Usage.Steps)})
}

// mcpTask is how a task stands after one of its turns.
type mcpTask struct {
	TaskID           string          `json:"taskId"`
	TurnID           string          `json:"turnId"`
	Status           store.Status    `json:"status"`
	Output           string          `json:"output"`
	StructuredOutput json.RawMessage `json:"structuredOutput,omitempty"`
	Files            []fileView      `json:"files"`
	Sources          []sourceView    `json:"sources"`
	Error            *runError       `json:"error,omitempty"`
	Incomplete       *incomplete     `json:"incompleteDetails,omitempty"`
	URL              string          `json:"url"`

	PendingApprovals []pendingApproval `json:"pendingApprovals,omitempty"` // that the task waits for
}

// mcpResult gives the answer as text, files as links, and all of it as structured
// content.
func (a *API) mcpResult(v runView, t store.Turn) (*sdk.CallToolResult, error) {
	status := v.Metadata.TaskStatus
	res := &sdk.CallToolResult{IsError: status == store.Failed || status == store.Aborted,
		StructuredContent: mcpTask{TaskID: t.TaskID, TurnID: t.ID, Status: status, Output: v.OutputText, StructuredOutput: v.StructuredOutput,
			Files: v.Files, Sources: v.Sources, Error: v.Error, Incomplete: v.IncompleteDetails, URL: a.taskURL(t.TaskID),
			PendingApprovals: v.Metadata.PendingApprovals}}
	say := func(text string) {
		if text != "" {
			res.Content = append(res.Content, &sdk.TextContent{Text: text})
		}
	}
	if v.Error != nil {
		say(fmt.Sprintf("The task ended without success: %s (%s)", v.Error.Message, v.Error.Code))
	}
	if say(v.OutputText); !status.Ended() {
		say(fmt.Sprintf("The task is %s. It goes on; call %s with task %q for its result.", status, getTaskTool, t.TaskID))
	}
	for _, p := range v.Metadata.PendingApprovals {
		say(fmt.Sprintf("It waits for a person to approve the call of %s.", p.ToolName))
	}
	for _, f := range v.Files {
		res.Content = append(res.Content, &sdk.ResourceLink{URI: f.URL, Name: f.Filename, MIMEType: f.MediaType, Size: &f.Size})
	}
	say("Task " + t.TaskID + ": " + a.taskURL(t.TaskID))
	return res, nil
}
