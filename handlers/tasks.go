package handlers

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

type taskView struct {
	ID              string        `json:"id"`
	CompletedAt     *string       `json:"completedAt"`
	CreatedAt       string        `json:"createdAt"`
	CreatedByUserID *string       `json:"createdByUserId"`
	OrganizationID  string        `json:"organizationId"`
	Status          store.Status  `json:"status"`
	Title           string        `json:"title"`
	Totals          taskTotals    `json:"totals"`
	TriggeredBy     store.Trigger `json:"triggeredBy"`
	URL             string        `json:"url"`
	WorkerID        string        `json:"workerId"`
}

type taskTotals struct {
	Credits    float64 `json:"credits"`
	DurationMs int64   `json:"durationMs"`
	TurnCount  int64   `json:"turnCount"`
}

func (a *API) taskView(t store.Task) taskView {
	return taskView{ID: t.ID, CompletedAt: optionalTime(t.CompletedAt), CreatedAt: runner.Timestamp(t.CreatedAt),
		CreatedByUserID: optional(t.CreatedByUserID), OrganizationID: t.OrganizationID, Status: t.Status, Title: t.Title,
		Totals:      taskTotals{store.Credits(t.Cost), t.Duration.Milliseconds(), t.TurnCount},
		TriggeredBy: t.TriggeredBy, URL: a.taskURL(t.ID), WorkerID: t.WorkerID}
}

func optionalTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := runner.Timestamp(*t)
	return &s
}

type turnView struct {
	ID               string          `json:"id"`
	TaskID           string          `json:"taskId"`
	Seq              int64           `json:"seq"`
	Role             string          `json:"role"`
	Status           store.Status    `json:"status"`
	Input            string          `json:"input"`
	OutputText       string          `json:"outputText"`
	InputTokens      int64           `json:"inputTokens"`
	OutputTokens     int64           `json:"outputTokens"`
	Credits          float64         `json:"credits"`
	DurationMs       int64           `json:"durationMs"`
	StartedAt        string          `json:"startedAt"`
	CompletedAt      *string         `json:"completedAt"`
	StructuredOutput json.RawMessage `json:"structuredOutput"`
}

func newTurnView(t store.Turn) turnView {
	started := t.CreatedAt
	if t.StartedAt != nil {
		started = *t.StartedAt
	}
	return turnView{ID: t.ID, TaskID: t.TaskID, Seq: t.Seq, Role: "assistant", Status: t.Status, Input: t.Input, OutputText: t.OutputText,
		InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, Credits: store.Credits(t.Usage.Cost()),
		DurationMs: t.Duration.Milliseconds(), StartedAt: runner.Timestamp(started), CompletedAt: optionalTime(t.CompletedAt),
		StructuredOutput: t.StructuredOutput}
}

// createTask runs an instruction and waits for the result.
func (a *API) createTask(w http.ResponseWriter, r *request) error {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && mediaType == "multipart/form-data" {
		return a.createTaskWithFiles(w, r)
	}
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	turn := b.task(r.who.Caller)
	stream := b.flag("stream")
	if err := b.invalid.Err(); err != nil {
		return err
	}
	return a.accept(w, r, b, turn, stream, true)
}

// task reads the fields of a task. Without a worker one is made that has the
// input as its instructions.
func (b *body) task(c store.Caller) store.NewTurn {
	n := store.NewTurn{Caller: c, Input: b.instruction(), Budget: b.budget()}
	if id := b.text("workerId"); id != nil {
		n.WorkerID = *id
		b.invalid.Check(*id != "", "workerId", "must not be empty: leave it out for a new worker")
	}
	if id := b.text("taskId"); id != nil {
		n.TaskID = *id
		b.invalid.Check(store.ValidTaskID(*id), "taskId", "must have 1 to 128 characters from A-Z, a-z, 0-9 and . _ : -")
	}
	if n.WorkerID == "" {
		n.NewWorker = &store.NewWorker{Instructions: firstRunes(n.Input, store.MaxInstructions), Title: store.TitleOf(n.Input)}
	}
	return n
}

// firstRunes cuts s after n characters.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func (a *API) getTask(w http.ResponseWriter, r *request) error {
	task, _, err := a.store.Task(r.Context(), r.who.Caller, r.params.ByName("taskId"))
	if err != nil {
		return err
	}
	turns, err := a.store.Turns(r.Context(), task.Num)
	if err != nil {
		return err
	}
	views := make([]turnView, 0, len(turns))
	for _, t := range turns {
		views = append(views, newTurnView(t))
	}
	return respond(w, http.StatusOK, map[string]any{"task": a.taskView(task), "turns": views})
}

func (a *API) listTurns(w http.ResponseWriter, r *request) error {
	task, _, err := a.store.Task(r.Context(), r.who.Caller, r.params.ByName("taskId"))
	if err != nil {
		return err
	}
	turns, err := a.store.Turns(r.Context(), task.Num)
	if err != nil {
		return err
	}
	files, err := a.store.FilesByTask(r.Context(), task.Num)
	if err != nil {
		return err
	}
	type turnWithFiles struct {
		turnView
		Files []fileView `json:"files"`
	}
	items := make([]turnWithFiles, 0, len(turns))
	for _, t := range turns {
		items = append(items, turnWithFiles{newTurnView(t), a.fileViews(runner.TurnFiles(files, t.Num))})
	}
	return respond(w, http.StatusOK, map[string]any{"items": items, "taskId": task.ID})
}

func (a *API) listTasks(w http.ResponseWriter, r *request) error {
	q, err := taskQuery(r)
	if err != nil {
		return err
	}
	tasks, next, err := a.store.Tasks(r.Context(), r.who.Caller, q)
	if err != nil {
		return err
	}
	list := page[taskView]{Items: make([]taskView, 0, len(tasks)), NextCursor: optional(next)}
	for _, t := range tasks {
		list.Items = append(list.Items, a.taskView(t))
	}
	return respond(w, http.StatusOK, list)
}

func taskQuery(r *request) (store.TaskQuery, error) {
	var f store.Fields
	v, err := parseQuery(r)
	if err != nil {
		return store.TaskQuery{}, err
	}
	moment := func(name string) (t time.Time) {
		if s := v.Get(name); s != "" {
			var err error
			t, err = time.Parse(time.RFC3339, strings.Replace(s, " ", "+", 1)) // an offset's + that was not escaped
			f.Check(err == nil, name, "must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z")
		}
		return t
	}
	q := store.TaskQuery{WorkerID: v.Get("workerId"), Status: store.Status(v.Get("status")), TriggeredBy: store.Trigger(v.Get("triggeredBy")),
		Text: v.Get("q"), Cursor: v.Get("cursor"), CreatedAfter: moment("createdAfter"), CreatedBefore: moment("createdBefore"),
		Limit: pageLimit(&f, v)}
	q.Check(&f)
	if s := v.Get("archived"); s != "" {
		var err error
		q.Archived, err = strconv.ParseBool(s)
		f.Check(err == nil, "archived", "must be true or false")
	}
	return q, f.Err()
}

func (a *API) archiveTask(w http.ResponseWriter, r *request) error {
	if err := a.store.ArchiveTask(r.Context(), r.who.Caller, r.params.ByName("taskId")); err != nil {
		return err
	}
	return respond(w, http.StatusOK, map[string]bool{"archived": true})
}

// cancelTask aborts what of a task has not ended. Cancelling one that has ended
// changes nothing, so that it may be repeated; only an Idempotency-Key tells that
// turns added since are not meant.
func (a *API) cancelTask(w http.ResponseWriter, r *request) error {
	o, err := once(r, nil)
	if err != nil {
		return err
	}
	if o.Key == "" {
		o = store.Once{}
	}
	done, err := a.store.Replay(r.Context(), o)
	if err != nil {
		return err
	}
	var task store.Task
	if markReplay(w, done != ""); done != "" {
		task, _, err = a.store.Task(r.Context(), r.who.Caller, done)
	} else if task, err = a.runner.AbortTask(r.Context(), r.who.Caller, r.params.ByName("taskId")); err == nil {
		err = a.store.Remember(r.Context(), o, task.ID)
	}
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, map[string]any{"task": a.taskView(task)})
}
