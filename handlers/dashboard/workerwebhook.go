package dashboard

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
)

// A webhookPage is what the page of a worker's webhook shows.
type webhookPage struct {
	Head       workerHead
	Webhook    store.Webhook
	Form       *form
	Executions []store.Execution
	Total      int64
	Before     string // address of the page before, '' for the first
	Next       string // address of the next page, '' after the last
	Token      string // of what the page's buttons do
}

func (d *Dashboard) webhookPage(r *request) (webhookPage, error) {
	head, err := d.head(r, "webhook")
	if err != nil {
		return webhookPage{}, err
	}
	p := webhookPage{Head: head, Token: d.token()}
	if p.Webhook, err = d.store.Webhook(r.Context(), r.who.Caller, head.ID); err != nil {
		return p, err
	}
	p.Form = newForm(map[string]string{"url": p.Webhook.URL})
	page, err := strconv.ParseInt(r.URL.Query().Get("page"), 10, 64)
	if err != nil || page < 1 {
		page = 1
	}
	p.Executions, p.Total, err = d.store.Executions(r.Context(), r.who.Caller, head.ID, page)
	for i := range p.Executions {
		p.Executions[i].TaskTitle, _ = firstRunes(p.Executions[i].TaskTitle, 80)
	}
	address := func(n int64) string { return head.Base() + "/webhook?page=" + strconv.FormatInt(n, 10) }
	if page > 1 {
		p.Before = address(page - 1)
	}
	if page <= p.Total/store.ExecutionsPerPage && page*store.ExecutionsPerPage < p.Total {
		p.Next = address(page + 1)
	}
	return p, err
}

func (d *Dashboard) showWebhook(w http.ResponseWriter, r *request) error {
	p, err := d.webhookPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-webhook.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) setWebhook(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.webhookPage(r)
	if err != nil {
		return err
	}
	if _, err = d.cfg.API.SetWebhook(r.Context(), r.who.Caller, p.Head.ID, strings.TrimSpace(f.Get("url"))); err == nil {
		return done(w, r, p.Head.Base()+"/webhook", "webhook-set")
	}
	if !f.refused(err) {
		return err
	}
	p.Form = f
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-webhook.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) removeWebhook(w http.ResponseWriter, r *request) error {
	id := r.params.ByName("workerId")
	if _, err := d.store.RemoveWebhook(r.Context(), r.who.Caller, id); err != nil {
		return err
	}
	return done(w, r, "/workers/"+id+"/webhook", "webhook-removed")
}

func (d *Dashboard) regenerateWebhook(w http.ResponseWriter, r *request) error {
	id := r.params.ByName("workerId")
	if _, _, err := d.store.RenewWebhook(r.Context(), r.who.Caller, id, store.Once{}); err != nil {
		return err
	}
	return done(w, r, "/workers/"+id+"/webhook", "webhook-renewed")
}

// testWebhook sends a sample and shows how that went.
func (d *Dashboard) testWebhook(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	id := r.params.ByName("workerId")
	e, _, err := d.cfg.API.TestWebhook(r.Context(), r.who.Caller, id, handlers.FormOnce(r.who.Caller, f.Get("token"), "test"))
	return d.toExecution(w, r, id, e, err)
}

// redeliver sends a delivery once more and shows how that went.
func (d *Dashboard) redeliver(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	id, again := r.params.ByName("workerId"), r.params.ByName("executionId")
	e, _, err := d.cfg.API.Redeliver(r.Context(), r.who.Caller, id, again, handlers.FormOnce(r.who.Caller, f.Get("token"), again))
	return d.toExecution(w, r, id, e, err)
}

func (d *Dashboard) toExecution(w http.ResponseWriter, r *request, workerID string, e store.Execution, err error) error {
	if err != nil {
		return err
	}
	return done(w, r, "/workers/"+workerID+"/webhook/executions/"+e.ID, "delivery-sent")
}

// An executionPage is what the page of one attempt shows.
type executionPage struct {
	Head      workerHead
	Execution store.Execution
	Request   string
	Response  string
	Token     string
}

func (d *Dashboard) showExecution(w http.ResponseWriter, r *request) error {
	head, err := d.head(r, "webhook")
	if err != nil {
		return err
	}
	p := executionPage{Head: head, Token: d.token()}
	if p.Execution, p.Request, p.Response, err = d.store.Exchange(r.Context(), r.who.Caller, head.ID, r.params.ByName("executionId")); err != nil {
		return err
	}
	p.Request, p.Response = unfolded(p.Request), unfolded(p.Response)
	return d.page(w, r, "worker-execution.html", p.Head.PageTitle(), p)
}

// unfolded puts the fields of a message's JSON on lines of their own.
func unfolded(message string) string {
	head, body, _ := strings.Cut(message, "\n\n")
	if !json.Valid([]byte(body)) {
		return message
	}
	return head + "\n\n" + indented([]byte(body))
}
