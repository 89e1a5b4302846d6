package lists

import (
	"maps"
	"net/http"
	"net/url"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// taskListRoutes registers the list of tasks.
func (d *Pages) taskListRoutes() {
	d.On("GET", "/tasks", d.listTasks)
	d.On("POST", "/tasks", frame.Submitted(d.manyTasks, nil))
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
	Form     *frame.Form // the filters
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

	Statuses, Waits, Triggers, Workers []frame.Option // choices of the filters
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
func (d *Pages) addChoices(r *frame.Request, p *taskList) (err error) {
	p.Statuses = []frame.Option{{Value: "", Label: r.T("Any state")},
		{Value: "pending", Label: r.T("Queued")}, {Value: "running", Label: r.T("Running")},
		{Value: "completed", Label: r.T("Done")}, {Value: "error", Label: r.T("Failed")},
		{Value: "aborted", Label: r.T("Cancelled")}}
	p.Waits = []frame.Option{{Value: "", Label: r.T("Anything")},
		{Value: "person", Label: r.T("A person")}, {Value: "model", Label: r.T("The model")},
		{Value: "worker", Label: r.T("Another worker")}}
	p.Triggers = []frame.Option{{Value: "", Label: r.T("Any source")}, {Value: "api", Label: r.T("API")},
		{Value: "email", Label: r.T("Mail")},
		{Value: "schedule", Label: r.T("Schedule")}, {Value: "ui", Label: r.T("Dashboard")}}
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

func (d *Pages) listTasks(w http.ResponseWriter, r *frame.Request) error {
	typed := r.URL.Query()
	set := frame.Filters(typed, taskFilters()...)
	p := taskList{Form: frame.FormOf(typed), Filtered: len(set) > 0, First: set.Encode(), Later: typed.Get("cursor") != "",
		Waiting: typed.Get("show") == "waiting", MailTo: "WORKER_ID@" + d.cfg.MailDomain, Result: bulkResultOf(r),
		Token: d.Token(), Back: r.URL.RawQuery}
	status := http.StatusOK
	// The form shows invalid filters. Other errors, such as for a worker that the user may not see,
	// have their own page.
	if err := d.addTasks(r, &p, set); err != nil {
		if !db.IsKind(err, db.Invalid) || !p.Form.Refused(r, err) {
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
	return d.Render(w, r, status, "tasks.html", r.T("Tasks"), p)
}

// addTasks adds the rows of the page to p. The first page begins with the tasks that wait for the
// user.
func (d *Pages) addTasks(r *frame.Request, p *taskList, set url.Values) error {
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
		if tasks, next, err = d.Store.Tasks(r.Context(), r.Who.Caller, q); err != nil {
			return err
		}
		p.Next = frame.ListPage("/tasks", set, next)
	}
	p.Tasks, err = d.taskRows(r, waiting, tasks)
	return err
}

// taskSegments returns the segments of the list. Each keeps the other filters. The counts include
// all tasks.
func (d *Pages) taskSegments(r *frame.Request, set url.Values, waiting bool) ([]segment, error) {
	counts, err := d.Store.TaskCounts(r.Context(), r.Who.Caller)
	if err != nil {
		return nil, err
	}
	deciding, err := d.Store.PendingDecisions(r.Context(), r.Who.Caller)
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
		return segment{Label: r.T(label), Address: "/tasks?" + q.Encode(), Current: current, Count: n,
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
	var f db.Fields
	q := store.TaskQuery{WorkerID: v.Get("workerId"), Status: store.Status(v.Get("status")),
		TriggeredBy: people.Trigger(v.Get("triggeredBy")), WaitingFor: store.WaitFor(v.Get("waitingFor")),
		Text: v.Get("q"), Cursor: v.Get("cursor"), Archived: v.Get("archived") != "", Limit: tasksOnPage,
		Scan:         tasksScanned,
		CreatedAfter: frame.FormTime(&f, v, "createdAfter"), CreatedBefore: frame.FormTime(&f, v, "createdBefore")}
	q.Check(&f)
	return q, f.Err()
}

// workerOptions returns the choices of the worker filter: the newest workers, and the chosen one.
func (d *Pages) workerOptions(r *frame.Request, chosen string) ([]frame.Option, error) {
	workers, _, err := d.Store.Workers.List(r.Context(), r.Who.Caller,
		workers.Query{Origin: workers.CreatedOrigin, Limit: workersInList})
	if err != nil {
		return nil, err
	}
	list := []frame.Option{{Value: "", Label: r.T("Any worker")}}
	found := chosen == ""
	for _, w := range workers {
		list = append(list, frame.Option{Value: w.ID, Label: show.Ellipsis(w.Title, titleInFilter)})
		found = found || w.ID == chosen
	}
	if !found {
		// A task made the worker, or it is old. If it was deleted, or the user may not see it, the
		// filter shows its id.
		title := chosen
		w, err := d.Store.Workers.Worker(r.Context(), r.Who.Caller, chosen)
		switch {
		case err == nil:
			title = show.Ellipsis(w.Title, titleInFilter)
		case !db.IsKind(err, db.NotFound) && !db.IsKind(err, db.Forbidden):
			return nil, err
		}
		list = append(list, frame.Option{Value: chosen, Label: title})
	}
	return list, nil
}
