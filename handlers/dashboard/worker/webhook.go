package worker

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/store"
	"journeyman/store/db"
)

// webhookRoutes registers the pages of a worker's webhook.
func (d *Pages) webhookRoutes() {
	page := d.FormOfWorker("webhook", d.webhookPage)
	d.On("GET", "/workers/:workerId/webhook", frame.Blank(page))
	d.On("POST", "/workers/:workerId/webhook", frame.Submitted(d.setWebhook, page))
	d.On("POST", "/workers/:workerId/webhook/remove", frame.Button(d.removeWebhook))
	d.On("POST", "/workers/:workerId/webhook/regenerate", frame.Button(d.regenerateWebhook))
	d.On("POST", "/workers/:workerId/webhook/test", frame.Submitted(d.testWebhook, nil))
	d.On("GET", "/workers/:workerId/webhook/executions/:executionId", d.OfWorker("webhook", d.showExecution))
	d.On("POST", "/workers/:workerId/webhook/executions/:executionId/redeliver", frame.Submitted(d.redeliver, nil))
}

// A webhookPage is the data of the page of a worker's webhook.
type webhookPage struct {
	Webhook    store.Webhook
	Form       *frame.Form
	Executions []store.Execution
	Total      int64  // number of executions
	Before     string // address of the page before; "" for the first page
	Next       string // address of the next page; "" for the last
	Token      string // of the page's buttons
}

func (d *Pages) webhookPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) (err error) {
	p := webhookPage{Token: d.Token()}
	if p.Webhook, err = d.Store.Effects.Webhook(r.Context(), r.Who.Caller, r.Head.ID); err != nil {
		return err
	}
	p.Form = cmp.Or(f, frame.NewForm(map[string]string{"url": p.Webhook.URL}))
	page := frame.PageNumber(r)
	if p.Executions, p.Total, err = d.Store.Effects.Executions(r.Context(), r.Who.Caller, r.Head.ID, page); err != nil {
		return err
	}
	for i := range p.Executions {
		p.Executions[i].TaskTitle, _ = show.Cut(p.Executions[i].TaskTitle, 80)
	}
	p.Before, p.Next = frame.Neighbours(r, page, p.Total, store.ExecutionsPerPage)
	return d.Render(w, r, status, "worker-webhook.html", r.Head.PageTitle(r), p)
}

func (d *Pages) setWebhook(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	id := r.Params.ByName("workerId")
	_, err := d.cfg.Webhooks.Set(r.Context(), r.Who.Caller, id, strings.TrimSpace(f.Get("url")))
	return frame.Done("/workers/"+id+"/webhook", "webhook-set"), err
}

func (d *Pages) removeWebhook(r *frame.Request) (string, error) {
	id := r.Params.ByName("workerId")
	_, err := d.Store.Effects.RemoveWebhook(r.Context(), r.Who.Caller, id)
	return frame.Done("/workers/"+id+"/webhook", "webhook-removed"), err
}

func (d *Pages) regenerateWebhook(r *frame.Request) (string, error) {
	id := r.Params.ByName("workerId")
	_, _, err := d.Store.Effects.RenewWebhook(r.Context(), r.Who.Caller, id, db.IdempotencyKey{})
	return frame.Done("/workers/"+id+"/webhook", "webhook-renewed"), err
}

// testWebhook sends a test delivery and shows the result.
func (d *Pages) testWebhook(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return d.deliver(r, f, "test", func(id string, key db.IdempotencyKey) (store.Execution, bool, error) {
		return d.cfg.Webhooks.Test(r.Context(), r.Who.Caller, id, key)
	})
}

// redeliver sends a delivery once more and shows the result.
func (d *Pages) redeliver(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	execution := r.Params.ByName("executionId")
	return d.deliver(r, f, execution, func(id string, key db.IdempotencyKey) (store.Execution, bool, error) {
		return d.cfg.Webhooks.Redeliver(r.Context(), r.Who.Caller, id, execution, key)
	})
}

// deliver sends one delivery and returns the page of its execution. content distinguishes forms
// with the same token.
func (d *Pages) deliver(r *frame.Request, f *frame.Form, content string,
	send func(workerID string, key db.IdempotencyKey) (store.Execution, bool, error)) (string, error) {
	key := frame.FormKey(r.Who.Caller, f.Get("token"), content)
	release, err := d.API.HoldDelivery(r.Context(), r.Who, key)
	if err != nil {
		return "", err
	}
	defer release()
	id := r.Params.ByName("workerId")
	e, _, err := send(id, key)
	return frame.Done("/workers/"+id+"/webhook/executions/"+e.ID, "delivery-sent"), err
}

// An executionPage is the data of the page of one delivery attempt.
type executionPage struct {
	Execution store.Execution
	Request   string
	Response  string
	Token     string
	Forgotten bool  // the request and the response are no longer stored
	Kept      int64 // number of newest attempts whose texts are stored
}

func (d *Pages) showExecution(w http.ResponseWriter, r *frame.Request) error {
	id := r.Params.ByName("executionId")
	e, sent, received, err := d.Store.Effects.Exchange(r.Context(), r.Who.Caller, r.Head.ID, id)
	if err != nil {
		return err
	}
	p := executionPage{Execution: e, Request: indentBody(sent), Response: indentBody(received),
		Token: d.Token(), Forgotten: sent == "" && e.RequestStatus == "success", Kept: store.ExchangesKept}
	return d.Page(w, r, "worker-execution.html", r.Head.PageTitle(r), p)
}

// indentBody returns an HTTP message with its JSON body indented.
func indentBody(message string) string {
	head, body, _ := strings.Cut(message, "\n\n")
	if !json.Valid([]byte(body)) {
		return message
	}
	return head + "\n\n" + show.Indented([]byte(body))
}
