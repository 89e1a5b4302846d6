package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"journeyman/runner"
	"journeyman/store"
)

// A template is a worker as its creator defined it.
type template struct {
	ID             string           `json:"id"`
	CreatedAt      string           `json:"createdAt"`
	UpdatedAt      string           `json:"updatedAt"`
	Instructions   string           `json:"instructions"`
	OrganizationID string           `json:"organizationId"`
	UserID         string           `json:"userId"`
	OutputSchema   json.RawMessage  `json:"outputSchema"`
	Summary        string           `json:"summary"`
	Title          string           `json:"title"`
	URL            string           `json:"url"`
	Visibility     store.Visibility `json:"visibility"`
}

func (a *API) template(w store.Worker) template {
	return template{ID: w.ID, CreatedAt: runner.Timestamp(w.CreatedAt), UpdatedAt: runner.Timestamp(w.UpdatedAt),
		Instructions: w.Instructions, OrganizationID: w.OrganizationID, UserID: w.UserID, OutputSchema: w.OutputSchema,
		Summary: w.Summary, Title: w.Title, URL: a.workerURL(w.ID), Visibility: w.Visibility}
}

// workerFields are the fields of a worker in a body; nil ones are not there.
type workerFields struct {
	instructions, summary, title *string
	visibility                   *store.Visibility
	schema                       *json.RawMessage
}

// worker reads the fields of a worker and notes what breaks their limits.
func (b *body) worker() workerFields {
	f := workerFields{instructions: b.text("instructions"), summary: b.text("summary"), title: b.text("title")}
	if v := b.text("visibility"); v != nil {
		f.visibility = (*store.Visibility)(v)
	}
	store.CheckWorker(&b.invalid, f.instructions, f.summary, f.title, f.visibility)
	if raw, ok := b.fields["outputSchema"]; ok {
		if string(raw) == "null" {
			raw = nil
		} else if err := runner.CheckOutputSchema(raw); err != nil {
			b.invalid.Add("outputSchema", "%s", err.Error())
		}
		f.schema = &raw
	}
	return f
}

func (f workerFields) newWorker() store.NewWorker {
	n := store.NewWorker{Instructions: value(f.instructions), Summary: value(f.summary), Title: value(f.title),
		Visibility: value(f.visibility), OutputSchema: value(f.schema)}
	return n
}

func value[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// createWorker runs a new worker when there is an input, and else makes a template.
func (a *API) createWorker(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	fields := b.worker()
	if _, run := b.fields["input"]; run {
		return a.runWorker(w, r, b, fields)
	}
	prompt := b.text("prompt")
	b.invalid.Check(prompt == nil || utf8.RuneCountInString(*prompt) <= store.MaxPrompt, "prompt", "must have at most %d characters", store.MaxPrompt)
	if err := b.invalid.Err(); err != nil {
		return err
	}
	content, err := b.canonical()
	if err != nil {
		return err
	}
	o, err := once(r, content)
	if err != nil {
		return err
	}
	n, err := a.describe(r, fields.newWorker(), prompt)
	if err != nil {
		return err
	}
	wrk, replayed, err := a.store.CreateWorker(r.Context(), r.who.Caller, n, o)
	if err != nil {
		return err
	}
	markReplay(w, replayed)
	return respond(w, http.StatusOK, a.template(wrk))
}

// describe has the model write what a prompt leaves to it.
func (a *API) describe(r *request, n store.NewWorker, prompt *string) (store.NewWorker, error) {
	if prompt == nil || strings.TrimSpace(*prompt) == "" || n.Instructions != "" && n.Summary != "" {
		return n, nil
	}
	d, err := a.runner.DescribeWorker(r.Context(), r.who.Caller, *prompt)
	if err != nil {
		return n, err
	}
	for _, f := range []struct{ dst, src *string }{{&n.Instructions, &d.Instructions}, {&n.Summary, &d.Summary}, {&n.Title, &d.Title}} {
		if *f.dst == "" {
			*f.dst = *f.src
		}
	}
	return n, nil
}

// runWorker makes a worker and runs it with an instruction.
func (a *API) runWorker(w http.ResponseWriter, r *request, b *body, fields workerFields) error {
	n := fields.newWorker()
	turn := store.NewTurn{Caller: r.who.Caller, Input: b.instruction(), Budget: b.budget()}
	stream := b.flag("stream")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	if n.Title == "" {
		n.Title = store.TitleOf(turn.Input)
	}
	turn.NewWorker = &n
	return a.accept(w, r, b, turn, stream, false)
}

func (a *API) continueWorker(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	turn := store.NewTurn{Caller: r.who.Caller, WorkerID: wrk.ID, Continue: true, Input: b.instruction(), Budget: b.budget()}
	stream := b.flag("stream")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	return a.accept(w, r, b, turn, stream, false)
}

// accept commits a turn and answers as the client asked. patient clients wait for
// the result unless they say otherwise.
func (a *API) accept(w http.ResponseWriter, r *request, b *body, turn store.NewTurn, stream, patient bool) error {
	content, err := b.canonical()
	if err != nil {
		return err
	}
	if turn.Once, err = once(r, content); err != nil {
		return err
	}
	accepted, err := a.store.CreateTurn(r.Context(), turn)
	if err != nil {
		return err
	}
	// The committed row is the promise; waking the runner only makes it prompt.
	a.runner.Wake()
	return a.answer(w, r, accepted, stream, patient)
}

// getWorker gives the run view of a worker, or streams it.
func (a *API) getWorker(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	stream, err := wantsStream(r)
	if err != nil {
		return err
	}
	task, err := a.shownTask(r, wrk)
	if err != nil {
		return err
	}
	if stream {
		return a.streamTask(w, r, task.Num)
	}
	if task.Num == 0 {
		return respond(w, http.StatusOK, a.workerRun(wrk))
	}
	v, err := a.taskRun(r.Context(), wrk, task.Num)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, v)
}

// shownTask is the task that taskId names or the worker's newest; its Num is 0
// where there is none.
func (a *API) shownTask(r *request, wrk store.Worker) (store.Task, error) {
	id := r.URL.Query().Get("taskId")
	if id == "" {
		task, err := a.store.LatestTask(r.Context(), wrk.ID)
		if store.IsNotFound(err) {
			return store.Task{}, nil
		}
		return task, err
	}
	task, _, err := a.store.Task(r.Context(), r.who.Caller, id)
	if err == nil && task.WorkerID != wrk.ID {
		return task, store.Errorf(store.NotFound, "the worker has no task with that id")
	}
	return task, err
}

func (a *API) getTemplate(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, a.template(wrk))
}

func (a *API) updateWorker(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	f := b.worker()
	for _, name := range []string{"instructions", "summary", "title", "visibility"} {
		raw, sent := b.fields[name]
		b.invalid.Check(!sent || string(raw) != "null", name, "must not be null: leave it out to keep it")
	}
	if err := b.invalid.Err(); err != nil {
		return err
	}
	wrk, err := a.store.UpdateWorker(r.Context(), r.who.Caller, r.params.ByName("workerId"), store.WorkerPatch{
		Title: f.title, Summary: f.summary, Instructions: f.instructions, Visibility: f.visibility, OutputSchema: f.schema})
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, a.template(wrk))
}

func (a *API) deleteWorker(w http.ResponseWriter, r *request) error {
	if err := a.store.DeleteWorker(r.Context(), r.who.Caller, r.params.ByName("workerId")); err != nil {
		return err
	}
	return respond(w, http.StatusOK, map[string]bool{"deleted": true})
}

// A page of a list.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}

func (a *API) listWorkers(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	limit, err := pageLimit(q.Get("limit"))
	if err != nil {
		return err
	}
	workers, next, err := a.store.Workers(r.Context(), r.who.Caller, store.WorkerQuery{Text: q.Get("q"), Cursor: q.Get("cursor"), Limit: limit})
	if err != nil {
		return err
	}
	list := page[template]{Items: make([]template, 0, len(workers)), NextCursor: optional(next)}
	for _, wrk := range workers {
		list.Items = append(list.Items, a.template(wrk))
	}
	return respond(w, http.StatusOK, list)
}

// pageLimit reads how many items a page may have: 1 to 100, 50 by default.
func pageLimit(v string) (int, error) {
	if v == "" {
		return 50, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		return 0, invalid("limit", "must be a whole number from 1 to 100")
	}
	return n, nil
}

// getEmail gives a worker's address for mail.
func (a *API) getEmail(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	address := wrk.ID + "@" + a.cfg.MailDomain
	format := r.URL.Query().Get("format")
	switch {
	case format == "string":
		return respond(w, http.StatusOK, address)
	case format != "" && format != "object":
		return invalid("format", "must be string or object")
	case strings.Contains(r.Header.Get("Accept"), "text/plain") && !strings.Contains(r.Header.Get("Accept"), "application/json"):
		body, err := marshal(address)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(body) // the client may have gone
		return nil
	}
	return respond(w, http.StatusOK, map[string]string{"email": address})
}
