package handlers

import (
	"net/http"
	"strconv"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// A webhookView is a webhook as the API shows it. All fields are null if no webhook is configured.
type webhookView struct {
	Token         *string `json:"token"`
	URL           *string `json:"url"`
	SigningSecret *string `json:"signingSecret"`
}

func newWebhookView(h store.Webhook) webhookView {
	return webhookView{view.Optional(h.Token), view.Optional(h.URL), view.Optional(h.SigningSecret)}
}

func (a *API) getWebhook(w http.ResponseWriter, r *request) error {
	h, err := a.store.Effects.Webhook(r.Context(), r.who.Caller, r.param("workerId"))
	return respondOK(w, newWebhookView(h), err)
}

// putWebhook configures a webhook or, with null, removes it.
func (a *API) putWebhook(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	_, sent := b.field("url")
	b.Invalid.Check(sent, "url", "is required: a URL, or null to remove the webhook")
	url := b.text("url")
	if err := b.check(w, r); err != nil {
		return err
	}
	workerID := r.param("workerId")
	if url == nil {
		_, err := a.store.Effects.RemoveWebhook(r.Context(), r.who.Caller, workerID)
		return respondOK(w, newWebhookView(store.Webhook{}), err)
	}
	h, err := a.cfg.Webhooks.Set(r.Context(), r.who.Caller, workerID, *url)
	return respondOK(w, newWebhookView(h), err)
}

// deleteWebhook answers with the webhook as it was.
func (a *API) deleteWebhook(w http.ResponseWriter, r *request) error {
	was, err := a.store.Effects.RemoveWebhook(r.Context(), r.who.Caller, r.param("workerId"))
	return respondOK(w, newWebhookView(was), err)
}

func (a *API) regenerateToken(w http.ResponseWriter, r *request) error {
	key, err := idempotencyKey(r, nil)
	if err != nil {
		return err
	}
	h, replayed, err := a.store.Effects.RenewWebhook(r.Context(), r.who.Caller, r.param("workerId"), key)
	return respondReplayed(w, newWebhookView(h), replayed, err)
}

// An executionView is a webhook execution as the API shows it: one attempt.
type executionView struct {
	ID             string  `json:"id"`
	CreatedAt      string  `json:"createdAt"`
	DurationMs     int64   `json:"durationMs"`
	ErrorMessage   *string `json:"errorMessage"`
	RequestStatus  string  `json:"requestStatus"`
	ResponseStatus *int    `json:"responseStatus"`
	TaskID         *string `json:"taskId"`
	TaskTitle      *string `json:"taskTitle"`
	URL            string  `json:"url"`
	WorkerID       string  `json:"workerId"`
}

func newExecutionView(e store.Execution) executionView {
	v := executionView{ID: e.ID, CreatedAt: view.Timestamp(e.CreatedAt), DurationMs: e.Duration.Milliseconds(),
		ErrorMessage: view.Optional(e.ErrorMessage), RequestStatus: e.RequestStatus, TaskID: view.Optional(e.TaskID),
		TaskTitle: view.Optional(e.TaskTitle), URL: e.URL, WorkerID: e.WorkerID}
	if e.ResponseStatus != 0 {
		v.ResponseStatus = &e.ResponseStatus
	}
	return v
}

func (a *API) listExecutions(w http.ResponseWriter, r *request) error {
	page := int64(1)
	if v := r.query.Get("page"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 1 {
			return invalid("page", "must be a whole number from 1")
		}
		page = n
	}
	list, total, err := a.store.Effects.Executions(r.Context(), r.who.Caller, r.param("workerId"), page)
	return respondOK(w, map[string]any{"logs": each(list, newExecutionView), "page": page, "totalCount": total,
		"pageCount": (total + store.ExecutionsPerPage - 1) / store.ExecutionsPerPage}, err)
}

// redeliver sends the delivery of an earlier attempt once more.
func (a *API) redeliver(w http.ResponseWriter, r *request) error {
	return a.sendNow(w, r, func(key db.IdempotencyKey) (store.Execution, bool, error) {
		return a.cfg.Webhooks.Redeliver(r.Context(), r.who.Caller, r.param("workerId"), r.param("executionId"), key)
	})
}

// testWebhook sends a sample.
func (a *API) testWebhook(w http.ResponseWriter, r *request) error {
	return a.sendNow(w, r, func(key db.IdempotencyKey) (store.Execution, bool, error) {
		return a.cfg.Webhooks.Test(r.Context(), r.who.Caller, r.param("workerId"), key)
	})
}

// sendNow sends one delivery and answers with the row of the attempt.
func (a *API) sendNow(w http.ResponseWriter, r *request,
	send func(db.IdempotencyKey) (store.Execution, bool, error)) error {
	key, err := idempotencyKey(r, nil)
	if err != nil {
		return err
	}
	release, err := a.HoldDelivery(r.Context(), r.who, key)
	if err != nil {
		return err
	}
	defer release()
	e, replayed, err := send(key)
	return respondReplayed(w, newExecutionView(e), replayed, err)
}
