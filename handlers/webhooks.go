package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"journeyman/runner"
	"journeyman/store"
)

// Webhooks reaches the endpoints of webhooks.
type Webhooks interface {
	// CheckURL says what is wrong with the URL of a webhook, for its writer.
	CheckURL(url string) error
	// Send makes one attempt at a delivery now and gives the row of it.
	Send(ctx context.Context, d store.Delivery) (store.Execution, error)
}

// A webhookView is the interface's webhook: all null where none is configured.
type webhookView struct {
	Token         *string `json:"token"`
	URL           *string `json:"url"`
	SigningSecret *string `json:"signingSecret"`
}

func respondWebhook(w http.ResponseWriter, h store.Webhook) error {
	return respond(w, http.StatusOK, webhookView{optional(h.Token), optional(h.URL), optional(h.SigningSecret)})
}

func (a *API) getWebhook(w http.ResponseWriter, r *request) error {
	h, err := a.store.Webhook(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	return respondWebhook(w, h)
}

// putWebhook configures a webhook or, with null, removes it.
func (a *API) putWebhook(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	_, sent := b.fields["url"]
	b.invalid.Check(sent, "url", "is required: a URL, or null to remove the webhook")
	url := b.text("url")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	workerID := r.params.ByName("workerId")
	if url == nil {
		if _, err := a.store.RemoveWebhook(r.Context(), r.who.Caller, workerID); err != nil {
			return err
		}
		return respondWebhook(w, store.Webhook{})
	}
	h, err := a.SetWebhook(r.Context(), r.who.Caller, workerID, *url)
	if err != nil {
		return err
	}
	return respondWebhook(w, h)
}

// SetWebhook configures the webhook of a worker where the URL may be one; only the
// worker's creator may.
func (a *API) SetWebhook(ctx context.Context, c store.Caller, workerID, url string) (store.Webhook, error) {
	if err := a.cfg.Webhooks.CheckURL(url); err != nil {
		return store.Webhook{}, invalid("url", err.Error())
	}
	return a.store.SetWebhook(ctx, c, workerID, url)
}

// deleteWebhook answers with the webhook as it was.
func (a *API) deleteWebhook(w http.ResponseWriter, r *request) error {
	was, err := a.store.RemoveWebhook(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	return respondWebhook(w, was)
}

func (a *API) regenerateToken(w http.ResponseWriter, r *request) error {
	o, err := once(r, nil)
	if err != nil {
		return err
	}
	h, replayed, err := a.store.RenewWebhook(r.Context(), r.who.Caller, r.params.ByName("workerId"), o)
	if err != nil {
		return err
	}
	markReplay(w, replayed)
	return respondWebhook(w, h)
}

// An executionView is the interface's webhook execution: one attempt.
type executionView struct {
	ID             string `json:"id"`
	CreatedAt      string `json:"createdAt"`
	DurationMs     int64  `json:"durationMs"`
	ErrorMessage   string `json:"errorMessage,omitempty"`
	RequestStatus  string `json:"requestStatus"`
	ResponseStatus int    `json:"responseStatus,omitempty"`
	TaskID         string `json:"taskId,omitempty"`
	TaskTitle      string `json:"taskTitle,omitempty"`
	URL            string `json:"url"`
	WorkerID       string `json:"workerId"`
}

func newExecutionView(e store.Execution) executionView {
	return executionView{ID: e.ID, CreatedAt: runner.Timestamp(e.CreatedAt), DurationMs: e.Duration.Milliseconds(), ErrorMessage: e.ErrorMessage,
		RequestStatus: e.RequestStatus, ResponseStatus: e.ResponseStatus, TaskID: e.TaskID, TaskTitle: e.TaskTitle, URL: e.URL, WorkerID: e.WorkerID}
}

func (a *API) listExecutions(w http.ResponseWriter, r *request) error {
	page := int64(1)
	if v := r.URL.Query().Get("page"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return invalid("page", "must be a whole number from 1")
		}
		page = n
	}
	list, total, err := a.store.Executions(r.Context(), r.who.Caller, r.params.ByName("workerId"), page)
	if err != nil {
		return err
	}
	logs := make([]executionView, 0, len(list))
	for _, e := range list {
		logs = append(logs, newExecutionView(e))
	}
	return respond(w, http.StatusOK, map[string]any{"logs": logs, "page": page, "totalCount": total,
		"pageCount": (total + store.ExecutionsPerPage - 1) / store.ExecutionsPerPage})
}

// redeliver sends what an execution was an attempt at once more.
func (a *API) redeliver(w http.ResponseWriter, r *request) error {
	o, err := once(r, nil)
	if err != nil {
		return err
	}
	e, replayed, err := a.Redeliver(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("executionId"), o)
	return respondExecution(w, e, replayed, err)
}

// testWebhook sends a sample.
func (a *API) testWebhook(w http.ResponseWriter, r *request) error {
	o, err := once(r, nil)
	if err != nil {
		return err
	}
	e, replayed, err := a.TestWebhook(r.Context(), r.who.Caller, r.params.ByName("workerId"), o)
	return respondExecution(w, e, replayed, err)
}

func respondExecution(w http.ResponseWriter, e store.Execution, replayed bool, err error) error {
	if err != nil {
		return err
	}
	markReplay(w, replayed)
	return respond(w, http.StatusOK, newExecutionView(e))
}

// Redeliver sends what an execution was an attempt at once more, and gives the row of
// the new attempt; only the worker's creator may. A request made before, as o tells,
// gives the row that it made, and replayed is true.
func (a *API) Redeliver(ctx context.Context, c store.Caller, workerID, executionID string, o store.Once) (e store.Execution, replayed bool, err error) {
	return a.sendNow(ctx, c, workerID, o, func() (store.Delivery, error) {
		return a.store.ExecutedDelivery(ctx, c, workerID, executionID)
	})
}

// TestWebhook is Redeliver for a sample.
func (a *API) TestWebhook(ctx context.Context, c store.Caller, workerID string, o store.Once) (e store.Execution, replayed bool, err error) {
	return a.sendNow(ctx, c, workerID, o, func() (store.Delivery, error) { return a.store.CreateTestDelivery(ctx, c, workerID) })
}

// sendNow sends a delivery and gives the row of the attempt.
func (a *API) sendNow(ctx context.Context, c store.Caller, workerID string, o store.Once, delivery func() (store.Delivery, error)) (e store.Execution, replayed bool, err error) {
	done, err := a.store.Replay(ctx, o)
	if err != nil {
		return e, false, err
	}
	if done != "" {
		e, err = a.store.Execution(ctx, c, workerID, done)
		return e, true, err
	}
	d, err := delivery()
	if err != nil {
		return e, false, err
	}
	if e, err = a.cfg.Webhooks.Send(ctx, d); err == nil {
		err = a.store.Remember(context.WithoutCancel(ctx), o, e.ID)
	}
	return e, false, err
}

// maxDelivery is the most bytes of a delivery's body with what the worker said.
const maxDelivery = 256 << 10

// A deliveryView is what a webhook is told.
type deliveryView struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	CreatedAt string   `json:"createdAt"`
	Test      bool     `json:"test,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`
	Task      taskView `json:"task"`
	Turn      turnView `json:"turn"`
	Worker    runView  `json:"worker"`
}

// DeliveryBody is the body of a delivery: the turn that ended, and its task and
// worker as they are now.
func (a *API) DeliveryBody(ctx context.Context, d store.Delivery) ([]byte, error) {
	task, turn, wrk, err := a.store.DeliverySubject(ctx, d)
	if err != nil {
		return nil, err
	}
	v := deliveryView{ID: d.ID, Type: d.Type, CreatedAt: runner.Timestamp(d.CreatedAt), Test: d.Test()}
	if v.Test {
		v.sample(a, d, wrk)
		return marshal(v)
	}
	v.Task, v.Turn = a.taskView(task), newTurnView(turn)
	if v.Worker, err = a.turnRun(ctx, wrk, turn, false); err != nil {
		return nil, err
	}
	body, err := marshal(v)
	for drop := 0; err == nil && len(body) > maxDelivery && drop < 2; drop++ {
		v.shorten(drop)
		body, err = marshal(v)
	}
	return body, err
}

// shorten drops what the worker has said, and where that is not enough, all else
// that has no bounds.
func (v *deliveryView) shorten(drop int) {
	v.Truncated = true
	if drop == 0 {
		v.Worker.Messages, v.Worker.Output, v.Worker.OutputText, v.Worker.StructuredOutput = []runner.Message{}, []outputItem{}, "", nil
		v.Turn.OutputText, v.Turn.StructuredOutput = "", nil
		return
	}
	v.Worker.Files, v.Worker.Sources = []fileView{}, []sourceView{}
	v.Turn.Input = firstRunes(v.Turn.Input, 10_000)
}

// sample tells of a task that never was.
func (v *deliveryView) sample(a *API, d store.Delivery, wrk store.Worker) {
	of := func(prefix string) string { return strings.Replace(d.ID, "evt", prefix, 1) } // the same on every attempt
	turn := store.Turn{ID: of("trn"), TaskID: of("tsk"), WorkerID: wrk.ID, Status: store.Completed, Input: "This is a test of the webhook.",
		OutputText: "It works.", TriggeredBy: store.TriggerAPI, Budget: store.BudgetStandard, CreatedAt: d.CreatedAt, CompletedAt: &d.CreatedAt}
	v.Turn = newTurnView(turn)
	v.Task = a.taskView(store.Task{ID: turn.TaskID, OrganizationID: wrk.OrganizationID, WorkerID: wrk.ID, Title: "Test of the webhook",
		Status: store.Completed, TriggeredBy: store.TriggerAPI, TurnCount: 1, CreatedAt: d.CreatedAt, CompletedAt: &d.CreatedAt})
	v.Worker = a.workerRun(wrk)
	v.Worker.describe([]store.Turn{turn})
}
