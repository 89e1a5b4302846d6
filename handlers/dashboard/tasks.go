package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"journeyman/handlers"
	"journeyman/store"
)

// taskRoutes are the pages of tasks.
func (d *Dashboard) taskRoutes() {
	d.on("GET", "/tasks", d.listTasks)
	d.on("GET", "/tasks/:taskId", d.showTask)
	d.on("POST", "/tasks/:taskId", d.followUp)
	d.on("POST", "/tasks/:taskId/cancel", d.cancelTask)
	d.on("POST", "/tasks/:taskId/archive", d.archiveTask)
	d.on("POST", "/tasks/:taskId/approvals/:approvalId", d.decideApproval)
	d.on("GET", "/tasks/:taskId/turns/:turn", d.showTurn)
	d.on("GET", "/tasks/:taskId/calls/:turn/:step/:call", d.showCall)
	d.on("GET", "/tasks/:taskId/raw/*what", d.showRaw)
}

const (
	tasksOnPage   = 50
	workersInList = 100 // choices of the worker filter
	titleInFilter = 40  // characters of a worker's title there
	askedOnPage   = 5   // approvals that wait, above the list
)

// A taskList is what the list of tasks shows.
type taskList struct {
	Form     *form // the filters
	Workers  []option
	Tasks    []taskRow
	Asked    []askedTask
	Next     string // address of the page after this; '' for the last
	First    string // the query of the first page
	Later    bool   // this is not the first page
	Filtered bool
	MailTo   string // how addresses of workers look
}

// A taskRow is a task of the list.
type taskRow struct {
	store.Task
	Worker string // its title
	Path   string
}

// Credits are what the task has cost.
func (t taskRow) Credits() float64 { return store.Credits(t.Cost) }

var (
	statuses = []option{{"", "any"}, {"pending", "pending"}, {"running", "running"}, {"completed", "completed"}, {"error", "error"}, {"aborted", "aborted"}}
	triggers = []option{{"", "any"}, {"api", "API"}, {"email", "email"}, {"schedule", "schedule"}, {"ui", "dashboard"}}
)

// Statuses are the choices of a filter.
func (taskList) Statuses() []option { return statuses }

// Triggers are the choices of a filter.
func (taskList) Triggers() []option { return triggers }

// MoreFilters reports whether any of the filters is set, or wrong, that are folded
// otherwise.
func (p taskList) MoreFilters() bool {
	for _, name := range taskFilters {
		if name != "q" && name != "status" && (p.Form.Get(name) != "" || p.Form.Errors[name] != "") {
			return true
		}
	}
	return false
}

// taskFilters are the fields of the list's form.
var taskFilters = []string{"q", "status", "triggeredBy", "workerId", "createdAfter", "createdBefore", "archived"}

func (d *Dashboard) listTasks(w http.ResponseWriter, r *request) error {
	ctx, typed := r.Context(), r.URL.Query()
	p := taskList{Form: &form{Values: typed, Errors: map[string]string{}}, Later: typed.Get("cursor") != "",
		MailTo: "WORKER_ID@" + d.cfg.MailDomain}
	for _, name := range taskFilters {
		p.Filtered = p.Filtered || typed.Get(name) != ""
	}
	q, err := taskQuery(typed)
	var tasks []store.Task
	var next string
	if err == nil {
		tasks, next, err = d.store.Tasks(ctx, r.who.Caller, q)
	}
	status := http.StatusOK
	if err != nil {
		if !store.IsKind(err, store.Invalid) || !p.Form.refused(err) {
			return err
		}
		status = http.StatusUnprocessableEntity
	}
	p.First = withCursor(typed, "")
	if next != "" {
		p.Next = "/tasks?" + withCursor(typed, next)
	}
	if p.Tasks, err = d.taskRows(ctx, tasks); err != nil {
		return err
	}
	if p.Workers, err = d.workerOptions(r, typed.Get("workerId")); err != nil {
		return err
	}
	if p.Asked, err = d.askedTasks(r); err != nil {
		return err
	}
	return d.render(w, r, status, "tasks.html", "Tasks", p)
}

// An askedTask is a tool call that waits for a decision, and the title of its task.
type askedTask struct {
	store.Approval
	Title string
}

func (d *Dashboard) askedTasks(r *request) ([]askedTask, error) {
	list, _, err := d.store.Approvals(r.Context(), r.who.Caller, store.ApprovalQuery{Limit: askedOnPage})
	if err != nil {
		return nil, err
	}
	asked := make([]askedTask, 0, len(list))
	for _, a := range list {
		task, _, err := d.store.Task(r.Context(), r.who.Caller, a.TaskID)
		if err != nil {
			return nil, err
		}
		asked = append(asked, askedTask{a, task.Title})
	}
	return asked, nil
}

// withCursor is a query with the filters that are set, and a cursor where there is
// one.
func withCursor(typed url.Values, cursor string) string {
	v := url.Values{}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	for _, name := range taskFilters {
		if s := typed.Get(name); s != "" {
			v.Set(name, s)
		}
	}
	return v.Encode()
}

// taskQuery reads the filters.
func taskQuery(v url.Values) (store.TaskQuery, error) {
	var f store.Fields
	q := store.TaskQuery{WorkerID: v.Get("workerId"), Status: store.Status(v.Get("status")), TriggeredBy: store.Trigger(v.Get("triggeredBy")),
		Text: v.Get("q"), Cursor: v.Get("cursor"), Archived: v.Get("archived") != "", Limit: tasksOnPage,
		CreatedAfter: moment(&f, v, "createdAfter"), CreatedBefore: moment(&f, v, "createdBefore")}
	q.Check(&f)
	return q, f.Err()
}

// moments are the forms of a time: as browsers send it, and as people type it.
var moments = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", time.RFC3339}

// moment reads a time of a form, which is in UTC.
func moment(f *store.Fields, v url.Values, name string) time.Time {
	text := v.Get(name)
	if text == "" {
		return time.Time{}
	}
	for _, layout := range moments {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	f.Add(name, "must be a date and time such as 2026-01-31T12:00")
	return time.Time{}
}

// taskRows adds to tasks what a list says of them.
func (d *Dashboard) taskRows(ctx context.Context, tasks []store.Task) ([]taskRow, error) {
	titles := map[string]string{}
	rows := make([]taskRow, 0, len(tasks))
	for _, t := range tasks {
		title, ok := titles[t.WorkerID]
		if !ok {
			var err error
			if title, err = d.store.WorkerTitle(ctx, t.WorkerID); err != nil {
				return nil, err
			}
			titles[t.WorkerID] = title
		}
		rows = append(rows, taskRow{t, title, taskPath(t.ID)})
	}
	return rows, nil
}

// workerOptions are the choices of the worker filter: the newest workers and the one
// that is chosen.
func (d *Dashboard) workerOptions(r *request, chosen string) ([]option, error) {
	workers, _, err := d.store.Workers(r.Context(), r.who.Caller, store.WorkerQuery{Limit: workersInList})
	if err != nil {
		return nil, err
	}
	list := []option{{"", "any"}}
	found := chosen == ""
	for _, w := range workers {
		title, cut := firstRunes(w.Title, titleInFilter)
		if cut {
			title += "…"
		}
		list = append(list, option{w.ID, title})
		found = found || w.ID == chosen
	}
	if !found {
		// An older or a deleted one; that it may not be seen is said by the list itself.
		list = append(list, option{chosen, chosen})
	}
	return list, nil
}

// taskPath is the address of a task's page.
func taskPath(id string) string { return handlers.TaskPath(id) }
