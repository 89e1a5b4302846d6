package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// progressEvery is the time between progress messages to a client that asked for them.
const progressEvery = 5 * time.Second

// runWorker sends an instruction to a worker. The turn is committed before the wait begins, so a
// client that stops waiting loses nothing.
func (s *Server) runWorker(ctx context.Context, c *call) (*sdk.CallToolResult, error) {
	turn, wait := c.turn(), c.wait(forever)
	if err := c.args.Invalid.Err(); err != nil {
		return nil, err
	}
	content, err := c.args.Canonical()
	if err != nil {
		return nil, err
	}
	// Each client numbers its messages from the beginning, so these ids do not identify repeated
	// calls. Clients that repeat calls send a key.
	if key, _ := c.tool.Params.Meta["idempotencyKey"].(string); key != "" {
		c.request.Header.Set("Idempotency-Key", key)
	}
	// The worker may be in the tool's name, which is not part of the arguments.
	content = append([]byte(turn.WorkerID+"\n"), content...)
	if turn.IdempotencyKey, err = handlers.IdempotencyKey(c.request, c.who.KeyID, content); err != nil {
		return nil, err
	}
	turn.IdempotencyKey.Retry = false // equal arguments may be a new call
	in := runner.Instruction{NewTurn: turn, Log: []any{"request", c.requestID}}
	accepted, own, err := s.cfg.Runner.AcceptFor(ctx, c.callToken(), in)
	switch {
	case err != nil:
		return nil, err
	case own && wait > 0:
		// The calling turn is suspended until the new one has ended. If it kept its slot, turns
		// that call each other could take all slots.
		return pendingResult(accepted.Turn), nil
	case own:
		return s.await(ctx, c, accepted.Turn, 0)
	}
	if accepted, err = s.cfg.Runner.Accept(ctx, in); err != nil {
		return nil, err
	}
	return s.await(ctx, c, accepted.Turn, wait)
}

// callToken returns the token of the tool call that makes the request, or "" if no turn of this server
// makes it. Only the store can check whether the token is genuine.
func (c *call) callToken() string {
	token, _ := c.tool.Params.Meta[runner.CallMeta].(string)
	return token
}

// pendingResult returns the answer for a call of a turn of this server. It has no result: the runner
// replaces it with the result when the new turn has ended.
func pendingResult(t store.Turn) *sdk.CallToolResult {
	return &sdk.CallToolResult{Meta: sdk.Meta{runner.ChildMeta: t.ID},
		Content: []sdk.Content{&sdk.TextContent{Text: "The worker runs in task " + t.TaskID + "."}}}
}

// getTask returns the state of a task with its newest turn.
func (s *Server) getTask(ctx context.Context, c *call) (*sdk.CallToolResult, error) {
	id, wait := c.args.Text("task"), c.wait(0)
	c.args.Invalid.Check(id != "", "task", "is required")
	if err := c.args.Invalid.Err(); err != nil {
		return nil, err
	}
	_, turns, err := s.cfg.Store.TaskTurns(ctx, c.who.Caller, id)
	if err != nil {
		return nil, err
	}
	if len(turns) == 0 {
		return nil, db.Errorf(db.NotFound, "task %q has no turns", id)
	}
	_, own, err := s.cfg.Store.CallOfToken(ctx, c.callToken())
	if err != nil {
		return nil, err
	}
	if own {
		wait = 0 // a turn that waits here would hold a slot that the task may need
	}
	return s.await(ctx, c, turns[len(turns)-1], wait)
}

// await waits until a turn has ended, wait is over, or the client has disconnected. It returns the
// state of the turn at that moment.
func (s *Server) await(ctx context.Context, c *call, t store.Turn, wait time.Duration) (
	*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.out.keepAlive(s.cfg.SilentFor, s.cfg.LookEvery)()
	// ctx does not end by itself when the client closes its request.
	defer context.AfterFunc(c.request.Context(), cancel)()
	if err := s.waitFor(ctx, c.tool, t, wait); err != nil {
		return nil, err
	}
	// t may be outdated: TurnRun reads the state of the turn after the wait.
	wrk, err := s.cfg.Store.WorkerOfTurn(ctx, t)
	if err != nil {
		return nil, err
	}
	v, err := s.views.TurnRun(ctx, wrk, t, view.SDK5)
	if err != nil {
		return nil, err
	}
	return s.result(v, t), nil
}

// waitFor waits for the end of a turn, and sends progress messages meanwhile.
func (s *Server) waitFor(ctx context.Context, req *sdk.CallToolRequest, t store.Turn, wait time.Duration) error {
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.cfg.Runner.Wait(timed, t.ID) }() // ends with timed; waitFor waits for it
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	s.progress(ctx, req, t, 0)
	for n := 1; ; n++ {
		select {
		case err := <-ended:
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return nil // the answer says that the turn continues
			}
			return err
		case <-tick.C:
			s.progress(ctx, req, t, n)
		}
	}
}

// progress sends the state of a turn to a client that asked for progress. It ignores errors,
// because the answer does not depend on these messages.
func (s *Server) progress(ctx context.Context, req *sdk.CallToolRequest, t store.Turn, n int) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	now, err := s.cfg.Store.Turn(ctx, t.ID)
	if err != nil {
		return
	}
	_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(n),
		Message: fmt.Sprintf("task %s: %s, %d steps", now.TaskID, now.Status, now.Usage.Steps)})
}

// A taskView is the state of a task after one of its turns.
type taskView struct {
	TaskID           string           `json:"taskId"`
	TurnID           string           `json:"turnId"`
	Status           store.Status     `json:"status"` // of the turn
	TaskStatus       store.Status     `json:"taskStatus"`
	Output           string           `json:"output"`
	StructuredOutput json.RawMessage  `json:"structuredOutput,omitempty"`
	Files            []view.File      `json:"files"`
	Sources          []view.Source    `json:"sources"`
	Error            *view.RunError   `json:"error,omitempty"`
	Incomplete       *view.Incomplete `json:"incompleteDetails,omitempty"`
	URL              string           `json:"url"`

	PendingApprovals []view.PendingApproval `json:"pendingApprovals,omitempty"` // the task waits for these approvals
}

// waitReason describes why a task waits, and who can end the wait.
func (s *Server) waitReason(t store.Turn, p view.PendingApproval) string {
	if p.Question == nil {
		return fmt.Sprintf("It waits for a person to approve the call of %s.", p.ToolName)
	}
	text := "It waits for an answer to this question: " + *p.Question
	if len(p.Choices) > 0 {
		text += " (likely answers: " + strings.Join(p.Choices, "; ") + ")"
	}
	return text + " Ask the user to answer on the task's page, " + s.views.TaskURL(t.OrganizationID, t.TaskID) + "#asked"
}

// result returns the answer as text, the files as links, and everything as structured content.
func (s *Server) result(v view.Run, t store.Turn) *sdk.CallToolResult {
	status, taskStatus := *v.Metadata.TurnStatus, *v.Metadata.TaskStatus
	res := &sdk.CallToolResult{IsError: status == store.Failed || status == store.Aborted}
	res.StructuredContent = taskView{TaskID: t.TaskID, TurnID: t.ID, Status: status, TaskStatus: taskStatus,
		Output: v.OutputText, StructuredOutput: v.StructuredOutput, Files: v.Files, Sources: v.Sources, Error: v.Error,
		Incomplete: v.IncompleteDetails, URL: s.views.TaskURL(t.OrganizationID, t.TaskID), PendingApprovals: v.Metadata.PendingApprovals}
	addText := func(text string) {
		if text != "" {
			res.Content = append(res.Content, &sdk.TextContent{Text: text})
		}
	}
	if v.Error != nil {
		addText(fmt.Sprintf("The task ended without success: %s (%s)", v.Error.Message, v.Error.Code))
	}
	if addText(v.OutputText); !status.Ended() {
		addText(fmt.Sprintf("The task is %s. It goes on; call %s with task %q for its result.",
			taskStatus, getTaskName, t.TaskID))
	}
	// Many clients show the text and not the structured content, so the text also contains it.
	for _, p := range v.Metadata.PendingApprovals {
		addText(s.waitReason(t, p))
	}
	for _, f := range v.Files {
		res.Content = append(res.Content,
			&sdk.ResourceLink{URI: f.URL, Name: f.Filename, MIMEType: f.MediaType, Size: &f.Size})
	}
	addText("Task " + t.TaskID + ": " + s.views.TaskURL(t.OrganizationID, t.TaskID))
	return res
}
