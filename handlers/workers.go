package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
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
	Model          *string          `json:"model"` // null for the server's
	ApprovalTools  []string         `json:"approvalTools"`
	MCPTools       []string         `json:"mcpTools"`
	Summary        string           `json:"summary"`
	Title          string           `json:"title"`
	URL            string           `json:"url"`
	Visibility     store.Visibility `json:"visibility"`
}

func (a *API) template(w store.Worker) template {
	return template{ID: w.ID, CreatedAt: runner.Timestamp(w.CreatedAt), UpdatedAt: runner.Timestamp(w.UpdatedAt),
		Instructions: w.Instructions, OrganizationID: w.OrganizationID, UserID: w.UserID, OutputSchema: w.OutputSchema,
		Model: optional(w.Settings.Model), ApprovalTools: w.Settings.ApprovalTools, MCPTools: w.Settings.MCPTools, Summary: w.Summary, Title: w.Title, URL: a.workerURL(w.ID), Visibility: w.Visibility}
}

// workerFields are the fields of a worker in a body; nil ones are not there.
type workerFields struct {
	instructions, summary, title *string
	prompt                       *string // only when a worker is made
	visibility                   *store.Visibility
	schema                       *json.RawMessage
	model                        *string // '' for the server's
	approvalTools, mcpTools      *[]string
}

// worker reads the fields of a worker and notes what breaks their limits.
// checkModel says which models there are.
func (b *body) worker(checkModel func(name string) error) workerFields {
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
	f.model, f.approvalTools, f.mcpTools = b.text("model"), b.names("approvalTools"), b.names("mcpTools")
	if f.model != nil {
		if err := checkModel(*f.model); err != nil {
			b.invalid.Add("model", "%s", err.Error())
		}
	} else if raw, sent := b.fields["model"]; sent && string(raw) == "null" {
		f.model = new(string)
	}
	f.settings().Check(&b.invalid)
	return f
}

func (f workerFields) settings() store.WorkerSettings {
	return store.WorkerSettings{Model: value(f.model), ApprovalTools: value(f.approvalTools), MCPTools: value(f.mcpTools)}
}

func (f workerFields) newWorker() store.NewWorker {
	return store.NewWorker{Instructions: value(f.instructions), Summary: value(f.summary), Title: value(f.title),
		Visibility: value(f.visibility), OutputSchema: value(f.schema), Settings: f.settings()}
}

// undescribed reports whether a prompt leaves instructions or summary to the model.
func (f workerFields) undescribed() bool {
	return strings.TrimSpace(value(f.prompt)) != "" && (value(f.instructions) == "" || f.summary == nil)
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
	fields := b.worker(a.runner.CheckModel)
	fields.prompt = b.text("prompt")
	b.invalid.Check(utf8.RuneCountInString(value(fields.prompt)) <= store.MaxPrompt, "prompt", "must have at most %d characters", store.MaxPrompt)
	if _, run := b.fields["input"]; run {
		return a.runWorker(w, r, b, fields)
	}
	if err := b.invalid.Err(); err != nil {
		return err
	}
	o, err := b.once(r)
	if err != nil {
		return err
	}
	leave, err := a.enter(r.Context(), fields, o)
	if err != nil {
		return err
	}
	defer leave()
	n := fields.newWorker()
	if err := a.describe(r.Context(), r.who.Caller, fields, o, &n); err != nil {
		return err
	}
	wrk, replayed, err := a.store.CreateWorker(context.WithoutCancel(r.Context()), r.who.Caller, n, o)
	if err != nil {
		return err
	}
	markReplay(w, replayed)
	return respond(w, http.StatusOK, a.template(wrk))
}

// enter keeps requests equal to one that has the model write waiting until leave is
// called: they will find the worker made, and the model is not paid twice.
func (a *API) enter(ctx context.Context, f workerFields, o store.Once) (leave func(), err error) {
	if !f.undescribed() {
		return func() {}, nil
	}
	return a.flights.enter(ctx, o.KeyID+string(o.Hash))
}

// describe has the model write what a prompt leaves to it, unless the worker was
// made before.
func (a *API) describe(ctx context.Context, c store.Caller, f workerFields, o store.Once, n *store.NewWorker) error {
	if !f.undescribed() {
		return nil
	}
	if id, err := a.store.Replay(ctx, o); err != nil || id != "" {
		return err
	}
	// A client that gave up and asks again finds what it had asked for.
	d, err := a.runner.DescribeWorker(context.WithoutCancel(ctx), c, *f.prompt)
	if err != nil {
		return err
	}
	n.Instructions, n.Title = cmp.Or(n.Instructions, d.Instructions), cmp.Or(n.Title, d.Title)
	if f.summary == nil {
		n.Summary = d.Summary
	}
	return nil
}

// runWorker makes a worker and runs it with an instruction.
func (a *API) runWorker(w http.ResponseWriter, r *request, b *body, fields workerFields) error {
	n := fields.newWorker()
	turn := store.NewTurn{Caller: r.who.Caller, NewWorker: &n, Input: b.instruction(), Budget: b.budget()}
	stream := b.flag("stream")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	var err error
	if turn.Once, err = b.once(r); err != nil {
		return err
	}
	accepted, err := a.describeAndCommit(r, turn, fields, stream)
	if err != nil {
		return err
	}
	return a.answer(w, r, accepted, stream, false)
}

func (a *API) describeAndCommit(r *request, turn store.NewTurn, f workerFields, stream bool) (store.Accepted, error) {
	leave, err := a.enter(r.Context(), f, turn.Once)
	if err != nil {
		return store.Accepted{}, err
	}
	defer leave()
	if err := a.describe(r.Context(), r.who.Caller, f, turn.Once, turn.NewWorker); err != nil {
		return store.Accepted{}, err
	}
	turn.NewWorker.Title = cmp.Or(turn.NewWorker.Title, store.TitleOf(turn.Input))
	return a.commit(r, turn, stream)
}

func (a *API) continueWorker(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	turn := store.NewTurn{Caller: r.who.Caller, WorkerID: r.params.ByName("workerId"), Continue: true, Input: b.instruction(), Budget: b.budget()}
	stream := b.flag("stream")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	return a.accept(w, r, b, turn, stream, false)
}

// accept commits a turn and answers as the client asked. patient clients wait for
// the result unless they say otherwise.
func (a *API) accept(w http.ResponseWriter, r *request, b *body, turn store.NewTurn, stream, patient bool) error {
	var err error
	if turn.Once, err = b.once(r); err != nil {
		return err
	}
	accepted, err := a.commit(r, turn, stream)
	if err != nil {
		return err
	}
	return a.answer(w, r, accepted, stream, patient)
}

// commit writes a turn down, though its client may have gone: the model may have
// been paid for it. One that is to be streamed is refused where it can't be,
// rather than carried out unseen.
func (a *API) commit(r *request, turn store.NewTurn, stream bool) (store.Accepted, error) {
	if _, err := knowsApprovals(r); err != nil { // before anything is done
		return store.Accepted{}, err
	}
	if stream {
		if err := a.streams.full(); err != nil {
			return store.Accepted{}, err
		}
	}
	accepted, err := a.store.CreateTurn(context.WithoutCancel(r.Context()), turn)
	if err == nil {
		// The committed row is the promise; waking the runner only makes it prompt.
		a.runner.Wake()
	}
	return accepted, err
}

// getWorker gives the run view of a worker, or streams it.
func (a *API) getWorker(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	stream, err := wantsStream(r, query)
	if err != nil {
		return err
	}
	approvals, err := knowsApprovals(r)
	if err != nil {
		return err
	}
	task, err := a.shownTask(r, wrk, query.Get("taskId"))
	if err != nil {
		return err
	}
	if stream {
		return a.streamTask(w, r, task, approvals)
	}
	if task.Num == 0 {
		return respond(w, http.StatusOK, a.workerRun(wrk))
	}
	v, err := a.taskRun(r.Context(), wrk, task.Num, approvals)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, v)
}

// shownTask is the task of that id or, without one, the worker's newest; its Num is
// 0 where there is none.
func (a *API) shownTask(r *request, wrk store.Worker, id string) (store.Task, error) {
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
	f := b.worker(a.runner.CheckModel)
	for _, name := range []string{"instructions", "summary", "title", "visibility", "approvalTools", "mcpTools"} {
		raw, sent := b.fields[name]
		b.invalid.Check(!sent || string(raw) != "null", name, "must not be null: leave it out to keep it")
	}
	if err := b.invalid.Err(); err != nil {
		return err
	}
	wrk, err := a.store.UpdateWorker(r.Context(), r.who.Caller, r.params.ByName("workerId"), store.WorkerPatch{
		Title: f.title, Summary: f.summary, Instructions: f.instructions, Visibility: f.visibility, OutputSchema: f.schema,
		Model: f.model, ApprovalTools: f.approvalTools, MCPTools: f.mcpTools})
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
	v, err := parseQuery(r)
	if err != nil {
		return err
	}
	var f store.Fields
	q := store.WorkerQuery{Text: v.Get("q"), Cursor: v.Get("cursor"), Limit: pageLimit(&f, v)}
	q.Check(&f)
	if err := f.Err(); err != nil {
		return err
	}
	workers, next, err := a.store.Workers(r.Context(), r.who.Caller, q)
	if err != nil {
		return err
	}
	list := page[template]{Items: make([]template, 0, len(workers)), NextCursor: optional(next)}
	for _, wrk := range workers {
		list.Items = append(list.Items, a.template(wrk))
	}
	return respond(w, http.StatusOK, list)
}

// parseQuery reads the query. A malformed one is refused: what net/http makes of it
// would be a list without a filter that was asked for.
func parseQuery(r *request) (url.Values, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, store.Errorf(store.Invalid, "the query is malformed: %s", err)
	}
	return v, nil
}

// pageLimit reads how many items a page may have: 1 to 100, 50 by default.
func pageLimit(f *store.Fields, query url.Values) int {
	v := query.Get("limit")
	if v == "" {
		return 50
	}
	n, err := strconv.Atoi(v)
	f.Check(err == nil && 1 <= n && n <= 100, "limit", "must be a whole number from 1 to 100")
	return n
}

// getEmail gives a worker's address for mail.
func (a *API) getEmail(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Worker(r.Context(), r.who.Caller, r.params.ByName("workerId"))
	if err != nil {
		return err
	}
	address := wrk.ID + "@" + a.cfg.MailDomain
	query, err := parseQuery(r)
	if err != nil {
		return err
	}
	switch format := query.Get("format"); {
	case format == "string":
		return respond(w, http.StatusOK, address)
	case format != "" && format != "object":
		return invalid("format", "must be string or object")
	case format == "" && strings.Contains(r.Header.Get("Accept"), "text/plain") && !strings.Contains(r.Header.Get("Accept"), "application/json"):
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
