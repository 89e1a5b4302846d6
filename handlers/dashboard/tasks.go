package dashboard

import (
	"maps"
	"net/http"
	"net/url"
	"time"

	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// taskRoutes registers the pages of tasks.
func (d *Dashboard) taskRoutes() {
	d.on("GET", "/tasks", d.listTasks)
	d.on("POST", "/tasks", submitted(d.manyTasks, nil))
	d.on("GET", "/tasks/:taskId", d.showTask)
	d.on("POST", "/tasks/:taskId", d.followUp)
	d.on("GET", "/tasks/:taskId/live", d.watchTask)
	d.on("POST", "/tasks/:taskId/cancel", button(d.cancelTask))
	d.on("POST", "/tasks/:taskId/archive", changing("taskId", d.cfg.Runner.ArchiveTask, done("/tasks", "task-archived")))
	d.on("POST", "/tasks/:taskId/approvals/:approvalId", d.onTask(d.decideApproval))
	d.on("GET", "/tasks/:taskId/turns/:turn", d.showTurn)
	d.on("POST", "/tasks/:taskId/turns/:turn/again", d.onTask(d.runAgain))
	d.on("GET", "/tasks/:taskId/calls/:turn/:step/:call", d.showCall)
	d.on("GET", "/tasks/:taskId/raw/*what", d.showRaw)
	d.on("GET", "/tasks/:taskId/files.zip", d.zipTaskFiles)
}

const (
	tasksOnPage   = 30
	tasksScanned  = 20_000 // tasks that a filter examines for one page; the page links to older ones
	workersInList = 100    // choices of the worker filter
	titleInFilter = 40     // characters of a worker's title in the worker filter
	waitingFirst  = 10     // tasks that wait for the user, above the others
	waitingOnPage = 50     // tasks that wait for the user, on their own page
)

// A taskList is the data of the list of tasks.
type taskList struct {
	Form     *form // the filters
	Segments []segment
	Tasks    []taskRow
	Next     string // address of the next page; "" after the last
	First    string // query of the first page
	Later    bool   // this is not the first page
	Waiting  bool   // the page shows the tasks that wait for the user
	Filtered bool
	MailTo   string      // form of the workers' mail addresses
	Result   *bulkResult // the result of an action on several tasks; nil for none
	Token    string      // identifies the form of the actions, so that a second click does nothing
	Back     string      // the query of the page

	Statuses, Waits, Triggers, Workers []option // choices of the filters
}

// A segment is a part of the list with a link.
type segment struct {
	Label   string
	Address string
	Current bool
	Count   int64
	More    bool // the real number may be larger than Count
	Waits   bool // the tasks wait for the user
}

// addChoices adds the choices of the selects to p.
func (d *Dashboard) addChoices(r *request, p *taskList) (err error) {
	p.Statuses = []option{{"", r.t("Any state")}, {"pending", r.t("Queued")}, {"running", r.t("Running")},
		{"completed", r.t("Done")}, {"error", r.t("Failed")}, {"aborted", r.t("Cancelled")}}
	p.Waits = []option{{"", r.t("Anything")}, {"person", r.t("A person")}, {"model", r.t("The model")},
		{"worker", r.t("Another worker")}}
	p.Triggers = []option{{"", r.t("Any source")}, {"api", r.t("API")}, {"email", r.t("Mail")},
		{"schedule", r.t("Schedule")}, {"ui", r.t("Dashboard")}}
	p.Workers, err = d.workerOptions(r, p.Form.Get("workerId"))
	return err
}

// MoreFilters returns how many filters under "More filters" are set or invalid. If there are any,
// the page unfolds these filters.
func (p taskList) MoreFilters() (n int) {
	for _, name := range moreTaskFilters() {
		if p.Form.Get(name) != "" || p.Form.Errors[name] != "" {
			n++
		}
	}
	// The segments show these states, so the filters can stay folded.
	s := p.Form.Get("status")
	if n > 0 && p.Form.Errors["status"] == "" && (s == "running" || s == "error" || s == "completed") {
		n--
	}
	return n
}

// moreTaskFilters returns the names of the filters under "More filters".
func moreTaskFilters() []string {
	return []string{"status", "waitingFor", "createdAfter", "createdBefore", "archived"}
}

// taskFilters returns the names of all filters except the one for tasks that wait for the user.
func taskFilters() []string { return append(moreTaskFilters(), "q", "workerId", "triggeredBy") }

func (d *Dashboard) listTasks(w http.ResponseWriter, r *request) error {
	typed := r.URL.Query()
	set := filters(typed, taskFilters()...)
	p := taskList{Form: formOf(typed), Filtered: len(set) > 0, First: set.Encode(), Later: typed.Get("cursor") != "",
		Waiting: typed.Get("show") == "waiting", MailTo: "WORKER_ID@" + d.cfg.MailDomain, Result: bulkResultOf(r),
		Token: d.token(), Back: r.URL.RawQuery}
	status := http.StatusOK
	// The form shows invalid filters. Other errors, such as for a worker that the user may not see,
	// have their own page.
	if err := d.addTasks(r, &p, set); err != nil {
		if !store.IsKind(err, store.Invalid) || !p.Form.refused(r, err) {
			return err
		}
		status = http.StatusUnprocessableEntity
	}
	var err error
	if p.Segments, err = d.taskSegments(r, set, p.Waiting); err != nil {
		return err
	}
	if err := d.addChoices(r, &p); err != nil {
		return err
	}
	return d.render(w, r, status, "tasks.html", r.t("Tasks"), p)
}

// addTasks adds the rows of the page to p. The first page begins with the tasks that wait for the
// user.
func (d *Dashboard) addTasks(r *request, p *taskList, set url.Values) error {
	var waiting []waitingTask
	var err error
	if p.Waiting || !p.Filtered && !p.Later {
		most := waitingFirst
		if p.Waiting {
			most = waitingOnPage
		}
		if waiting, err = d.waitingTasks(r, most); err != nil {
			return err
		}
	}
	var tasks []store.Task
	if !p.Waiting {
		q, err := taskQuery(p.Form.Values)
		if err != nil {
			return err
		}
		var next string
		if tasks, next, err = d.store.Tasks(r.Context(), r.who.Caller, q); err != nil {
			return err
		}
		p.Next = listPage("/tasks", set, next)
	}
	p.Tasks, err = d.taskRows(r, waiting, tasks)
	return err
}

// taskSegments returns the segments of the list. Each keeps the other filters. The counts include
// all tasks.
func (d *Dashboard) taskSegments(r *request, set url.Values, waiting bool) ([]segment, error) {
	counts, err := d.store.TaskCounts(r.Context(), r.who.Caller)
	if err != nil {
		return nil, err
	}
	deciding, err := d.store.PendingDecisions(r.Context(), r.who.Caller)
	if err != nil {
		return nil, err
	}
	part := func(label text.Key, name, value string, n, most int64) segment {
		q := maps.Clone(set)
		for _, other := range []string{"status", "waitingFor", "show"} {
			q.Del(other)
		}
		current := set.Get("status") == "" && set.Get("waitingFor") == "" && !waiting
		if name != "" {
			q.Set(name, value)
			current = r.URL.Query().Get(name) == value
		}
		return segment{Label: r.t(label), Address: "/tasks?" + q.Encode(), Current: current, Count: n,
			More: most > 0 && n >= most}
	}
	list := []segment{part("All", "", "", 0, 0),
		part("Waiting for you", "show", "waiting", deciding, store.MaxPendingDecisions),
		part("Running", "status", "running", counts.Running, store.MaxCounted),
		part("Failed", "status", "error", counts.Failed, store.MaxCounted),
		part("Done", "status", "completed", 0, 0)}
	list[1].Address, list[1].Waits = "/tasks?show=waiting", true // other filters would hide urgent tasks
	return list, nil
}

// taskQuery reads the filters of the list.
func taskQuery(v url.Values) (store.TaskQuery, error) {
	var f store.Fields
	q := store.TaskQuery{WorkerID: v.Get("workerId"), Status: store.Status(v.Get("status")),
		TriggeredBy: store.Trigger(v.Get("triggeredBy")), WaitingFor: store.WaitFor(v.Get("waitingFor")),
		Text: v.Get("q"), Cursor: v.Get("cursor"), Archived: v.Get("archived") != "", Limit: tasksOnPage,
		Scan:         tasksScanned,
		CreatedAfter: formTime(&f, v, "createdAfter"), CreatedBefore: formTime(&f, v, "createdBefore")}
	q.Check(&f)
	return q, f.Err()
}

// formTime reads a time of a form, in UTC, in the format of browsers or as people type it. It adds
// to f the values that it cannot read.
func formTime(f *store.Fields, v url.Values, name string) time.Time {
	text := v.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := typedTime(text, time.UTC, "2006-01-02T15:04", localDate, time.DateOnly, time.RFC3339)
	f.Check(ok, name, "must be a date and time such as 2026-01-31T12:00")
	return t
}

// workerOptions returns the choices of the worker filter: the newest workers, and the chosen one.
func (d *Dashboard) workerOptions(r *request, chosen string) ([]option, error) {
	workers, _, err := d.store.Workers(r.Context(), r.who.Caller,
		store.WorkerQuery{Origin: store.CreatedOrigin, Limit: workersInList})
	if err != nil {
		return nil, err
	}
	list := []option{{"", r.t("Any worker")}}
	found := chosen == ""
	for _, w := range workers {
		list = append(list, option{w.ID, show.Ellipsis(w.Title, titleInFilter)})
		found = found || w.ID == chosen
	}
	if !found {
		// A task made the worker, or it is old. If it was deleted, or the user may not see it, the
		// filter shows its id.
		title := chosen
		w, err := d.store.Worker(r.Context(), r.who.Caller, chosen)
		switch {
		case err == nil:
			title = show.Ellipsis(w.Title, titleInFilter)
		case !store.IsKind(err, store.NotFound) && !store.IsKind(err, store.Forbidden):
			return nil, err
		}
		list = append(list, option{chosen, title})
	}
	return list, nil
}
