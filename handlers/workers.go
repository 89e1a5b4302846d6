package handlers

import (
	"net/http"

	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// createWorker creates a worker. If the body has an input, it also runs the worker.
func (a *API) createWorker(w http.ResponseWriter, r *request) error {
	b, err := a.readInstruction(w, r)
	if err != nil {
		return err
	}
	draft := b.worker(r.Context(), r.who.Caller, a.runner)
	draft.Prompt = b.Text("prompt") // last, so that an invalid prompt hides no other invalid field
	draft.CheckPrompt(&b.Invalid)
	if _, run := b.field("input"); run {
		turn := store.NewTurn{Caller: r.who.Caller, Input: b.Instruction(), Budget: b.Budget()}
		return a.accept(w, r, b, runner.Instruction{NewTurn: turn, Draft: &draft}, false)
	}
	b.Invalid.Check(len(b.files) == 0, "files", "are for a run: send an input with them")
	key, err := b.checkedKey(w, r)
	if err != nil {
		return err
	}
	wrk, replayed, err := a.runner.CreateWorker(r.Context(), r.who.Caller, draft, key)
	return a.respondTemplate(w, wrk, replayed, err)
}

func (a *API) continueWorker(w http.ResponseWriter, r *request) error {
	if r.param("workerId") == "import" { // no worker has this id, and the router allows no second route here
		return a.importWorker(w, r)
	}
	b, err := a.readInstruction(w, r)
	if err != nil {
		return err
	}
	// Continue: the instruction goes to the caller's newest task of the worker.
	turn := store.NewTurn{Caller: r.who.Caller, WorkerID: r.param("workerId"), Continue: true,
		Input: b.Instruction(), Budget: b.Budget()}
	return a.accept(w, r, b, runner.Instruction{NewTurn: turn}, false)
}

// getWorker writes the run view of a worker, or streams it.
func (a *API) getWorker(w http.ResponseWriter, r *request) error {
	stream, err := a.showWorker(w, r)
	if err != nil || stream == nil {
		return err
	}
	return stream()
}

// showWorker writes a worker, or returns the function that streams its task. It is a separate method
// so that the records are not on the stack of an open stream.
func (a *API) showWorker(w http.ResponseWriter, r *request) (stream func() error, err error) {
	wrk, err := a.store.Workers.Worker(r.Context(), r.who.Caller, r.param("workerId"))
	if err != nil {
		return nil, err
	}
	streamed, err := wantsStream(r)
	if err != nil {
		return nil, err
	}
	task, err := a.shownTask(r, wrk, r.query.Get("taskId"))
	if err != nil {
		return nil, err
	}
	if streamed {
		return func() error { return a.streamTask(w, r, task) }, nil
	}
	if task.ID == "" {
		return nil, respond(w, http.StatusOK, a.views.WorkerRun(wrk))
	}
	v, err := a.views.TaskRun(r.Context(), wrk, task, r.sdk)
	return nil, respondOK(w, v, err)
}

// shownTask returns the task with that id or, without an id, the worker's newest task. The task is
// empty if the worker has none.
func (a *API) shownTask(r *request, wrk workers.Worker, id string) (store.Task, error) {
	if id == "" {
		task, err := a.store.LatestTask(r.Context(), wrk)
		if db.IsNotFound(err) {
			return store.Task{}, nil
		}
		return task, err
	}
	task, _, err := a.store.Task(r.Context(), r.who.Caller, id)
	if err == nil && task.WorkerID != wrk.ID {
		return task, db.Errorf(db.NotFound, "the worker has no task with that id")
	}
	return task, err
}

func (a *API) getTemplate(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Workers.Worker(r.Context(), r.who.Caller, r.param("workerId"))
	return a.respondTemplate(w, wrk, false, err)
}

func (a *API) updateWorker(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	d := b.worker(r.Context(), r.who.Caller, a.runner)
	if d.Origin = (*workers.Origin)(b.text("origin")); d.Origin != nil {
		workers.Patch{Origin: d.Origin}.Check(&b.Invalid)
	}
	// null resets a field that has a default of the server. These fields have none.
	for _, name := range []string{"instructions", "summary", "title", "visibility", "approvalTools", "mcpTools",
		"workspace", "origin"} {
		raw, sent := b.field(name)
		b.Invalid.Check(!sent || string(raw) != "null", name, "must not be null: leave it out to keep it")
	}
	if err := b.check(w, r); err != nil {
		return err
	}
	if d.Revisions, err = expectedRevisions(r); err != nil {
		return err
	}
	wrk, err := a.store.Workers.UpdateWorker(r.Context(), r.who.Caller, r.param("workerId"), d.Patch)
	return a.respondTemplate(w, wrk, false, err)
}

func (a *API) deleteWorker(w http.ResponseWriter, r *request) error {
	err := a.runner.DeleteWorker(r.Context(), r.who.Caller, r.param("workerId"))
	return respondOK(w, map[string]bool{"deleted": true}, err)
}

func (a *API) listWorkers(w http.ResponseWriter, r *request) error {
	var f db.Fields
	q := workers.Query{Text: r.query.Get("q"), Origin: workers.Origin(r.query.Get("origin")),
		Cursor: r.query.Get("cursor"), Limit: pageLimit(&f, r.query)}
	if q.Check(&f); f.Err() != nil {
		return f.Err()
	}
	workers, next, err := a.store.Workers.List(r.Context(), r.who.Caller, q)
	return respondPage(w, workers, next, a.template, err)
}

// getEmail writes a worker's address for mail.
func (a *API) getEmail(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Workers.Worker(r.Context(), r.who.Caller, r.param("workerId"))
	if err != nil {
		return err
	}
	address := wrk.ID + "@" + a.cfg.MailDomain
	switch format := r.query.Get("format"); {
	case format == "string":
		return respond(w, http.StatusOK, address)
	case format != "" && format != "object":
		return invalid("format", "must be string or object")
	case format == "" && preferred(r.Request, "application/json", "text/plain") == "text/plain":
		body, err := view.Marshal(address)
		if err != nil {
			return err
		}
		return respondBytes(w, "text/plain; charset=utf-8", body)
	}
	return respond(w, http.StatusOK, map[string]string{"email": address})
}
