package view

import (
	"context"
	"encoding/json"
	"path"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Run is the interface's worker object: a worker and the state of one of its tasks.
// It has the fields of both shapes that the interface names.
type Run struct {
	ID                string          `json:"id"`
	CreatedAt         int64           `json:"created_at"` // Unix seconds
	Error             *RunError       `json:"error"`
	IncompleteDetails *Incomplete     `json:"incomplete_details"`
	Files             []File          `json:"files"`
	Messages          []Message       `json:"messages"`
	Metadata          RunMetadata     `json:"metadata"`
	Object            string          `json:"object"`
	Output            []OutputItem    `json:"output"`
	OutputText        string          `json:"output_text"`
	Running           bool            `json:"running"`
	Sources           []Source        `json:"sources"`
	Status            store.Status    `json:"status"`
	Costs             Costs           `json:"costs"`
	Usage             Usage           `json:"usage"`
	StructuredOutput  json.RawMessage `json:"structured_output"`
	URL               string          `json:"url"`
	WaitingFor        *Waiting        `json:"waitingFor"`
}

// A RunError is the reason why a turn failed.
type RunError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Incomplete explains why an answer is not complete.
type Incomplete struct {
	Reason string `json:"reason"`
	Limit  string `json:"limit,omitempty"`
}

// RunMetadata identifies the task and the turn that a Run shows. All fields are nil for a worker
// that has no task.
type RunMetadata struct {
	TaskID      *string         `json:"taskId"`
	TurnID      *string         `json:"turnId"`
	TurnStatus  *store.Status   `json:"turnStatus"`
	TaskStatus  *store.Status   `json:"taskStatus"`
	TriggeredBy *people.Trigger `json:"triggeredBy"`
	Budget      *store.Budget   `json:"budget"`
	Model       *string         `json:"model"` // the model of the last answer; nil before the first

	PendingApprovals []PendingApproval `json:"pendingApprovals,omitempty"` // approvals that the task waits for

	StartedBy *TeamTurn  `json:"startedBy,omitempty"` // the turn of another worker that started the task
	Children  []TeamTurn `json:"children,omitempty"`  // turns of other workers that the task has started
}

// A PendingApproval is a tool call that waits for a user's decision or answer.
type PendingApproval struct {
	ID         string             `json:"id"`
	Kind       store.ApprovalKind `json:"kind"`
	Question   *string            `json:"question,omitempty"` // of a question
	Choices    []string           `json:"choices,omitempty"`  // likewise
	ToolCallID string             `json:"toolCallId"`
	ToolName   string             `json:"toolName"`
	Input      json.RawMessage    `json:"input"`
}

// PendingApprovalOf returns the view of a pending approval.
func PendingApprovalOf(a store.Approval) PendingApproval {
	question, choices := QuestionOf(a)
	return PendingApproval{ID: a.ID, Kind: a.Kind, Question: question, Choices: choices, ToolCallID: a.ToolCallID,
		ToolName: a.ToolName, Input: a.Input}
}

// QuestionOf returns the question of an approval and the answers it suggests. Both are
// nil, which JSON shows as null, for a call that is approved or denied.
func QuestionOf(a store.Approval) (question *string, choices []string) {
	if a.Kind != store.KindQuestion {
		return nil, nil
	}
	choices = []string{}
	for _, c := range a.Question.Choices {
		choices = append(choices, ValidText(c))
	}
	text := ValidText(a.Question.Text)
	return &text, choices
}

// Costs are the costs of a turn in US dollars.
type Costs struct {
	Internal float64 `json:"internalCostUsd"`
	Model    float64 `json:"modelCostUsd"`
	Sandbox  float64 `json:"sandboxCostUsd"`
	Tool     float64 `json:"toolCostUsd"`
}

// A File is a published file.
type File struct {
	Filename  string `json:"filename"`
	MediaType string `json:"mediaType"`
	URL       string `json:"url"`
	Size      int64  `json:"size"` // bytes
}

// A Source is a web page that a worker used.
type Source struct {
	ID    string  `json:"id"`
	Title *string `json:"title"`
	Type  string  `json:"type"`
	URL   string  `json:"url"`
}

// An OutputItem is the answer of a turn.
type OutputItem struct {
	ID      string       `json:"id"`
	Content []OutputText `json:"content"`
	Role    string       `json:"role"`
	Status  string       `json:"status"`
	Type    string       `json:"type"`
}

// An OutputText is a text of an OutputItem.
type OutputText struct {
	Text string `json:"text"`
	Type string `json:"type"`
}

// WorkerRun returns the run view of a worker that has no task.
func (b Builder) WorkerRun(w workers.Worker) Run { return b.newRun(w.ID, w.CreatedAt) }

// newRun returns the run view of a worker, without a task, by what it shows of the worker.
func (b Builder) newRun(workerID string, createdAt time.Time) Run {
	return Run{ID: workerID, CreatedAt: createdAt.Unix(), Files: []File{}, Messages: []Message{}, Object: "worker",
		Output: []OutputItem{}, Sources: []Source{}, Status: store.Pending, URL: b.WorkerURL(workerID)}
}

// TaskRun returns the run view of a worker and one of its tasks. sdk is the version of the AI SDK that
// reads the messages.
func (b Builder) TaskRun(ctx context.Context, w workers.Worker, task store.Task, sdk SDK) (Run, error) {
	conv, err := b.store.Conversation(ctx, task)
	if err != nil {
		return Run{}, err
	}
	v := b.run(w, conv, sdk)
	v.setStatus(conv.Task.Status)
	err = b.addTeam(ctx, &v, conv)
	return v, err
}

// TurnRun returns the run view for the client that sent a turn. It shows the task without
// the turns that came later, and the status of that turn.
func (b Builder) TurnRun(ctx context.Context, w workers.Worker, t store.Turn, sdk SDK) (Run, error) {
	conv, err := b.store.Conversation(ctx, t)
	if err != nil {
		return Run{}, err
	}
	conv.EndWith(t.Num)
	return b.LastTurnRun(ctx, w, conv, sdk)
}

// LastTurnRun is TurnRun for the last turn of a conversation that has been read.
func (b Builder) LastTurnRun(ctx context.Context, w workers.Worker, conv store.Conversation,
	sdk SDK) (Run, error) {
	v := b.run(w, conv, sdk)
	v.setStatus(*v.Metadata.TurnStatus)
	err := b.addTeam(ctx, &v, conv)
	return v, err
}

// run returns the run view of a conversation, without its status.
func (b Builder) run(w workers.Worker, conv store.Conversation, sdk SDK) Run {
	v := b.WorkerRun(w)
	b.complete(&v, conv, sdk)
	return v
}

// complete sets the fields that a conversation determines.
func (b Builder) complete(v *Run, conv store.Conversation, sdk SDK) {
	v.Messages = b.Messages(conv, sdk)
	v.Files = b.Files(store.PublishedFiles(conv.Files))
	for _, s := range conv.Sources {
		v.Sources = append(v.Sources, Source{ID: s.ID, Title: Optional(s.Title), Type: "url", URL: s.URL})
	}
	v.describe(conv.Task, conv.Turns[len(conv.Turns)-1])
	v.Metadata.PendingApprovals = pendingApprovals(conv)
}

// describe sets the fields that a task and one of its turns determine.
func (v *Run) describe(task store.Task, t store.Turn) {
	v.Metadata = RunMetadata{TaskID: &t.TaskID, TurnID: &t.ID, TurnStatus: &t.Status, TaskStatus: &task.Status,
		TriggeredBy: &t.TriggeredBy, Budget: &t.Budget, Model: Optional(t.Model)}
	v.Usage = UsageOf(t)
	v.Costs = Costs{Model: db.Dollars(t.Usage.ModelCost), Tool: db.Dollars(t.Usage.ToolCost)}
	v.OutputText, v.StructuredOutput, v.WaitingFor = t.OutputText, t.StructuredOutput, WaitingOf(t.Wait)
	// The interface shows the answer twice: as a text and as an item of a list.
	if t.OutputText != "" {
		v.Output = []OutputItem{{ID: AnswerID(t), Content: []OutputText{{Text: t.OutputText, Type: "output_text"}},
			Role: roleAssistant, Status: "completed", Type: "message"}}
	}
	if f := t.Failure; f != nil {
		// This compiles only while both types have the same fields.
		v.Error = (*RunError)(f)
	}
	if t.IncompleteReason != "" {
		v.IncompleteDetails = &Incomplete{t.IncompleteReason, t.IncompleteLimit}
	}
}

// setStatus sets the status to that of a task or a turn. A run view has the status completed for
// every ended turn: its error distinguishes failures.
func (v *Run) setStatus(s store.Status) {
	v.Status, v.Running = s, !s.Ended()
	if s.Ended() {
		v.Status = store.Completed
	}
}

// Files returns the views of files.
func (b Builder) Files(files []store.File) []File {
	views := make([]File, 0, len(files))
	for _, f := range files {
		views = append(views,
			File{Filename: path.Base(f.Path), MediaType: f.MediaType, URL: b.FileURL(f), Size: f.Size})
	}
	return views
}

// pendingApprovals returns the approvals that a task waits for. Only the last step of a turn can
// have pending approvals.
func pendingApprovals(conv store.Conversation) []PendingApproval {
	var list []PendingApproval
	for _, t := range conv.Turns {
		steps := conv.Steps[t.Num]
		// A queued turn has no steps, and an ended turn has no pending approvals.
		if t.Status.Ended() || len(steps) == 0 {
			continue
		}
		for _, a := range steps[len(steps)-1].Approvals {
			if a.Status == store.ApprovalPending {
				list = append(list, PendingApprovalOf(a))
			}
		}
	}
	return list
}
