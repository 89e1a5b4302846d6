package dashboard

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/show"
	"journeyman/store"
)

// webhookRoutes registers the pages of a worker's webhook.
func (d *Dashboard) webhookRoutes() {
	page := d.formOfWorker("webhook", d.webhookPage)
	d.on("GET", "/workers/:workerId/webhook", blank(page))
	d.on("POST", "/workers/:workerId/webhook", submitted(d.setWebhook, page))
	d.on("POST", "/workers/:workerId/webhook/remove", button(d.removeWebhook))
	d.on("POST", "/workers/:workerId/webhook/regenerate", button(d.regenerateWebhook))
	d.on("POST", "/workers/:workerId/webhook/test", submitted(d.testWebhook, nil))
	d.on("GET", "/workers/:workerId/webhook/executions/:executionId", d.ofWorker("webhook", d.showExecution))
	d.on("POST", "/workers/:workerId/webhook/executions/:executionId/redeliver", submitted(d.redeliver, nil))
}

// A webhookPage is the data of the page of a worker's webhook.
type webhookPage struct {
	Webhook    store.Webhook
	Form       *form
	Executions []store.Execution
	Total      int64  // number of executions
	Before     string // address of the page before; "" for the first page
	Next       string // address of the next page; "" for the last
	Token      string // of the page's buttons
}

func (d *Dashboard) webhookPage(w http.ResponseWriter, r *request, status int, f *form) (err error) {
	p := webhookPage{Token: d.token()}
	if p.Webhook, err = d.store.Webhook(r.Context(), r.who.Caller, r.head.ID); err != nil {
		return err
	}
	p.Form = cmp.Or(f, newForm(map[string]string{"url": p.Webhook.URL}))
	page := pageNumber(r)
	if p.Executions, p.Total, err = d.store.Executions(r.Context(), r.who.Caller, r.head.ID, page); err != nil {
		return err
	}
	for i := range p.Executions {
		p.Executions[i].TaskTitle, _ = show.Cut(p.Executions[i].TaskTitle, 80)
	}
	p.Before, p.Next = neighbours(r, page, p.Total, store.ExecutionsPerPage)
	return d.render(w, r, status, "worker-webhook.html", r.head.title(r), p)
}

func (d *Dashboard) setWebhook(_ http.ResponseWriter, r *request, f *form) (string, error) {
	id := r.params.ByName("workerId")
	_, err := d.cfg.Webhooks.Set(r.Context(), r.who.Caller, id, strings.TrimSpace(f.Get("url")))
	return done("/workers/"+id+"/webhook", "webhook-set"), err
}

func (d *Dashboard) removeWebhook(r *request) (string, error) {
	id := r.params.ByName("workerId")
	_, err := d.store.RemoveWebhook(r.Context(), r.who.Caller, id)
	return done("/workers/"+id+"/webhook", "webhook-removed"), err
}

func (d *Dashboard) regenerateWebhook(r *request) (string, error) {
	id := r.params.ByName("workerId")
	_, _, err := d.store.RenewWebhook(r.Context(), r.who.Caller, id, store.IdempotencyKey{})
	return done("/workers/"+id+"/webhook", "webhook-renewed"), err
}

// testWebhook sends a test delivery and shows the result.
func (d *Dashboard) testWebhook(_ http.ResponseWriter, r *request, f *form) (string, error) {
	return d.deliver(r, f, "test", func(id string, key store.IdempotencyKey) (store.Execution, bool, error) {
		return d.cfg.Webhooks.Test(r.Context(), r.who.Caller, id, key)
	})
}

// redeliver sends a delivery once more and shows the result.
func (d *Dashboard) redeliver(_ http.ResponseWriter, r *request, f *form) (string, error) {
	execution := r.params.ByName("executionId")
	return d.deliver(r, f, execution, func(id string, key store.IdempotencyKey) (store.Execution, bool, error) {
		return d.cfg.Webhooks.Redeliver(r.Context(), r.who.Caller, id, execution, key)
	})
}

// deliver sends one delivery and returns the page of its execution. content distinguishes forms
// with the same token.
func (d *Dashboard) deliver(r *request, f *form, content string,
	send func(workerID string, key store.IdempotencyKey) (store.Execution, bool, error)) (string, error) {
	key := formKey(r.who.Caller, f.Get("token"), content)
	release, err := d.cfg.API.HoldDelivery(r.Context(), r.who, key)
	if err != nil {
		return "", err
	}
	defer release()
	id := r.params.ByName("workerId")
	e, _, err := send(id, key)
	return done("/workers/"+id+"/webhook/executions/"+e.ID, "delivery-sent"), err
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

func (d *Dashboard) showExecution(w http.ResponseWriter, r *request) error {
	id := r.params.ByName("executionId")
	e, sent, received, err := d.store.Exchange(r.Context(), r.who.Caller, r.head.ID, id)
	if err != nil {
		return err
	}
	p := executionPage{Execution: e, Request: indentBody(sent), Response: indentBody(received),
		Token: d.token(), Forgotten: sent == "" && e.RequestStatus == "success", Kept: store.ExchangesKept}
	return d.page(w, r, "worker-execution.html", r.head.title(r), p)
}

// indentBody returns an HTTP message with its JSON body indented.
func indentBody(message string) string {
	head, body, _ := strings.Cut(message, "\n\n")
	if !json.Valid([]byte(body)) {
		return message
	}
	return head + "\n\n" + show.Indented([]byte(body))
}
