package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// createTask runs an instruction and waits for the result.
func (a *API) createTask(w http.ResponseWriter, r *request) error {
	b, err := a.readInstruction(w, r)
	if err != nil {
		return err
	}
	return a.accept(w, r, b, runner.Instruction{NewTurn: b.task(r.who.Caller)}, true)
}

// task reads the fields of a task. Without a worker, the instruction creates one.
func (b *Body) task(c people.Caller) store.NewTurn {
	n := store.NewTurn{Caller: c, Input: b.Instruction(), Budget: b.Budget()}
	if id := b.text("workerId"); id != nil {
		n.WorkerID = *id
		b.Invalid.Check(*id != "", "workerId", "must not be empty: leave it out for a new worker")
	}
	if id := b.text("taskId"); id != nil {
		n.TaskID = *id
		b.Invalid.Check(db.ValidTaskID(*id), "taskId", db.TaskIDRule)
	}
	if n.WorkerID == "" {
		n.NewWorker = runner.WorkerFor(n.Input)
	}
	return n
}

func (a *API) getTask(w http.ResponseWriter, r *request) error {
	task, turns, err := a.store.TaskTurns(r.Context(), r.who.Caller, r.param("taskId"))
	return respondOK(w, map[string]any{"task": a.views.Task(task), "turns": each(turns, view.TurnOf)}, err)
}

func (a *API) listTurns(w http.ResponseWriter, r *request) error {
	task, turns, err := a.store.TaskTurns(r.Context(), r.who.Caller, r.param("taskId"))
	if err != nil {
		return err
	}
	files, err := a.store.FilesByTask(r.Context(), task)
	if err != nil {
		return err
	}
	type turnWithFiles struct {
		view.Turn
		Files []view.File `json:"files"`
	}
	items := each(turns, func(t store.Turn) turnWithFiles {
		return turnWithFiles{view.TurnOf(t), a.views.Files(store.TurnFiles(files, t.Num, store.Published))}
	})
	return respond(w, http.StatusOK, map[string]any{"items": items, "taskId": task.ID})
}

func (a *API) listTasks(w http.ResponseWriter, r *request) error {
	q, err := taskQuery(r)
	if err != nil {
		return err
	}
	tasks, next, err := a.store.Tasks(r.Context(), r.who.Caller, q)
	return respondPage(w, tasks, next, a.views.Task, err)
}

func taskQuery(r *request) (store.TaskQuery, error) {
	var f db.Fields
	moment := func(name string) (t time.Time) {
		if s := r.query.Get(name); s != "" {
			var err error
			t, err = time.Parse(time.RFC3339, strings.Replace(s, " ", "+", 1)) // an offset's + that was not escaped
			f.Check(err == nil, name, "must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z")
		}
		return t
	}
	q := store.TaskQuery{WorkerID: r.query.Get("workerId"), Status: store.Status(r.query.Get("status")),
		TriggeredBy: people.Trigger(r.query.Get("triggeredBy")), WaitingFor: store.WaitFor(r.query.Get("waitingFor")),
		Text: r.query.Get("q"), Cursor: r.query.Get("cursor"),
		CreatedAfter: moment("createdAfter"), CreatedBefore: moment("createdBefore"), Limit: pageLimit(&f, r.query)}
	q.Check(&f)
	if s := r.query.Get("archived"); s != "" {
		var err error
		q.Archived, err = strconv.ParseBool(s)
		f.Check(err == nil, "archived", "must be true or false")
	}
	return q, f.Err()
}

func (a *API) archiveTask(w http.ResponseWriter, r *request) error {
	err := a.runner.ArchiveTask(r.Context(), r.who.Caller, r.param("taskId"))
	return respondOK(w, map[string]bool{"archived": true}, err)
}

// cancelTask aborts the turns of a task that have not ended. It changes nothing if the task has
// ended, so clients may repeat it. A repetition with the same Idempotency-Key aborts no turns that
// were added after the first request.
func (a *API) cancelTask(w http.ResponseWriter, r *request) error {
	key, err := namedKey(r, nil)
	if err != nil {
		return err
	}
	done, err := a.store.Replay(r.Context(), key)
	if err != nil {
		return err
	}
	var task store.Task
	// A repetition must not abort turns that were added after the first request.
	if markReplay(w, done != ""); done != "" {
		task, _, err = a.store.Task(r.Context(), r.who.Caller, done)
	} else if task, err = a.runner.AbortTask(r.Context(), r.who.Caller, r.param("taskId")); err == nil {
		err = a.store.Remember(r.Context(), key, task.ID)
	}
	return respondOK(w, map[string]any{"task": a.views.Task(task)}, err)
}
