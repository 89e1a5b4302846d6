package handlers

import (
	"context"
	"encoding/json"
	"path"
	"slices"

	"journeyman/runner"
	"journeyman/store"
)

// A runView is the interface's worker object: a worker as one of its tasks
// stands. It has the fields of both shapes.
type runView struct {
	ID                string           `json:"id"`
	CreatedAt         int64            `json:"created_at"`
	Error             *runError        `json:"error"`
	IncompleteDetails *incomplete      `json:"incomplete_details"`
	Files             []fileView       `json:"files"`
	Messages          []runner.Message `json:"messages"`
	Metadata          runMetadata      `json:"metadata"`
	Object            string           `json:"object"`
	Output            []outputItem     `json:"output"`
	OutputText        string           `json:"output_text"`
	Running           bool             `json:"running"`
	Sources           []sourceView     `json:"sources"`
	Status            store.Status     `json:"status"`
	Costs             costs            `json:"costs"`
	Usage             runner.TurnUsage `json:"usage"`
	StructuredOutput  json.RawMessage  `json:"structured_output"`
	URL               string           `json:"url"`
}

type runError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

type incomplete struct {
	Reason string `json:"reason"`
	Limit  string `json:"limit,omitempty"`
}

type runMetadata struct {
	TaskID      string        `json:"taskId,omitempty"`
	TurnID      string        `json:"turnId,omitempty"`
	TaskStatus  store.Status  `json:"taskStatus,omitempty"`
	TriggeredBy store.Trigger `json:"triggeredBy,omitempty"`
	Budget      store.Budget  `json:"budget,omitempty"`
	Model       string        `json:"model,omitempty"`

	PendingApprovals []pendingApproval `json:"pendingApprovals,omitempty"` // that the task waits for
}

type costs struct {
	Internal float64 `json:"internalCostUsd"`
	Model    float64 `json:"modelCostUsd"`
	Sandbox  float64 `json:"sandboxCostUsd"`
	Tool     float64 `json:"toolCostUsd"`
}

type fileView struct {
	Filename  string `json:"filename"`
	MediaType string `json:"mediaType"`
	URL       string `json:"url"`
	Size      int64  `json:"size"`
}

type sourceView struct {
	ID    string  `json:"id"`
	Title *string `json:"title"`
	Type  string  `json:"type"`
	URL   string  `json:"url"`
}

type outputItem struct {
	ID      string       `json:"id"`
	Content []outputText `json:"content"`
	Role    string       `json:"role"`
	Status  string       `json:"status"`
	Type    string       `json:"type"`
}

type outputText struct {
	Text string `json:"text"`
	Type string `json:"type"`
}

// workerRun is the run view of a worker without a task.
func (a *API) workerRun(w store.Worker) runView {
	return runView{ID: w.ID, CreatedAt: w.CreatedAt.Unix(), Files: []fileView{}, Messages: []runner.Message{}, Object: "worker",
		Output: []outputItem{}, Sources: []sourceView{}, Status: store.Pending, URL: a.workerURL(w.ID)}
}

// taskRun is the run view of a worker as a task of it stands.
func (a *API) taskRun(ctx context.Context, w store.Worker, taskNum int64, approvals bool) (runView, error) {
	conv, err := a.store.Conversation(ctx, taskNum)
	if err != nil || len(conv.Turns) == 0 {
		return runView{}, err
	}
	return a.conversationRun(w, conv, approvals), nil
}

// turnRun is the run view of a worker as its task stood with a turn: whoever sent
// that is told of it, whatever has been sent since.
func (a *API) turnRun(ctx context.Context, w store.Worker, t store.Turn, approvals bool) (runView, error) {
	conv, err := a.store.Conversation(ctx, t.TaskNum)
	if err != nil {
		return runView{}, err
	}
	later := func(num int64) bool { return num > t.Num } // turns of a task are numbered in their order
	conv.Turns = slices.DeleteFunc(conv.Turns, func(o store.Turn) bool { return later(o.Num) })
	conv.Files = slices.DeleteFunc(conv.Files, func(f store.File) bool { return later(f.TurnNum) })
	conv.Sources = slices.DeleteFunc(conv.Sources, func(s store.Source) bool { return later(s.TurnNum) })
	return a.conversationRun(w, conv, approvals), nil
}

// conversationRun has in its messages what the AI SDK 6 knows of approvals where
// approvals says so.
func (a *API) conversationRun(w store.Worker, conv store.Conversation, approvals bool) runView {
	v := a.workerRun(w)
	v.Messages = a.runner.Messages(conv)
	if approvals {
		v.Messages = a.runner.MessagesWithApprovals(conv)
	}
	v.Files = a.fileViews(runner.PublishedFiles(conv.Files))
	for _, s := range conv.Sources {
		v.Sources = append(v.Sources, sourceView{ID: s.ID, Title: optional(s.Title), Type: "url", URL: s.URL})
	}
	v.describe(conv.Turns)
	v.Metadata.PendingApprovals = pendingApprovals(conv)
	return v
}

// describe fills in what the turns say of the run: mostly the last one does.
func (v *runView) describe(turns []store.Turn) {
	t := turns[len(turns)-1]
	v.Status = runStatus(turns)
	v.Running = v.Status != store.Completed
	v.Metadata = runMetadata{TaskID: t.TaskID, TurnID: t.ID, TaskStatus: t.Status, TriggeredBy: t.TriggeredBy, Budget: t.Budget, Model: t.Model}
	v.Usage = runner.UsageOf(t)
	v.Costs = costs{Model: store.Dollars(t.Usage.ModelCost), Tool: store.Dollars(t.Usage.ToolCost)}
	v.OutputText, v.StructuredOutput = t.OutputText, t.StructuredOutput
	if t.OutputText != "" {
		v.Output = []outputItem{{ID: runner.AnswerID(t), Content: []outputText{{Text: t.OutputText, Type: "output_text"}},
			Role: "assistant", Status: "completed", Type: "message"}}
	}
	if f := t.Failure; f != nil {
		v.Error = &runError{f.Code, f.Message, f.Retryable}
	}
	if t.IncompleteReason != "" {
		v.IncompleteDetails = &incomplete{t.IncompleteReason, t.IncompleteLimit}
	}
}

// runStatus gives the turns' states in the run view's words: completed is the end
// of the last turn, however it ended.
func runStatus(turns []store.Turn) store.Status {
	status := store.Completed
	for _, t := range turns {
		switch t.Status {
		case store.Running:
			return store.Running
		case store.Pending:
			status = store.Pending
		}
	}
	return status
}

func (a *API) fileViews(files []store.File) []fileView {
	views := make([]fileView, 0, len(files))
	for _, f := range files {
		views = append(views, fileView{Filename: path.Base(f.Path), MediaType: f.MediaType, URL: a.runner.FileURL(f), Size: f.Size})
	}
	return views
}

func (a *API) workerURL(id string) string { return a.cfg.BaseURL + "/workers/" + id }
func (a *API) taskURL(id string) string   { return a.cfg.BaseURL + TaskPath(id) }

// optional is nil for ”, to be shown as null.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
