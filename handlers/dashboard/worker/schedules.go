package worker

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// scheduleRoutes registers the pages of a worker's schedules.
func (d *Pages) scheduleRoutes() {
	list, one := d.FormOfWorker("schedules", d.schedulesPage), d.FormOfWorker("schedules", d.schedulePage)
	d.On("GET", "/workers/:workerId/schedules", frame.Blank(list))
	d.On("GET", "/workers/:workerId/next-runs", d.previewRuns)
	d.On("POST", "/workers/:workerId/schedules", frame.Submitted(d.createSchedule, list))
	d.On("GET", "/workers/:workerId/schedules/:scheduleId", frame.Blank(one))
	d.On("POST", "/workers/:workerId/schedules/:scheduleId", frame.Submitted(d.updateSchedule, one))
	d.On("POST", "/workers/:workerId/schedules/:scheduleId/pause", frame.Button(d.pauseSchedule(true, "schedule-paused")))
	d.On("POST", "/workers/:workerId/schedules/:scheduleId/resume",
		frame.Button(d.pauseSchedule(false, "schedule-resumed")))
	d.On("POST", "/workers/:workerId/schedules/:scheduleId/run", frame.Submitted(d.runSchedule, nil))
	d.On("POST", "/workers/:workerId/schedules/:scheduleId/cancel", frame.Button(d.cancelSchedule))
}

const (
	schedulesOnPage = 20
	nextRunsShown   = 5
)

// A schedulesPage is the data of the page of a worker's schedules.
type schedulesPage struct {
	Schedules []scheduleRow
	Fields    scheduleFields
	Before    string // address of the page before; "" for the first page
	Next      string // address of the next page; "" for the last
	Zone      string
	Token     string // of the page's buttons
}

// A scheduleRow is a schedule for a page.
type scheduleRow struct {
	store.Schedule
	Description string      // the time of the schedule, as text
	Next        []time.Time // next runs, in the schedule's zone
	Shown       string      // the beginning of the instruction
	Path        string
}

func (d *Pages) schedulesPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	list, err := d.Store.Schedules(r.Context(), r.Who.Caller, r.Head.ID)
	if err != nil {
		return err
	}
	if f == nil {
		f = frame.NewForm(d.whenFields(store.When{Type: store.CronType, Cron: "0 9 * * 1-5"}))
		f.Values.Set("budget", string(store.BudgetStandard))
	}
	p := schedulesPage{Zone: d.Store.Timezone(), Token: d.Token(), Fields: d.scheduleFields(r, f)}
	// A deletion may leave the requested page empty, so the number is limited to the last page.
	total := int64(len(list))
	page := min(frame.PageNumber(r), max(1, (total+schedulesOnPage-1)/schedulesOnPage))
	p.Before, p.Next = frame.Neighbours(r, page, total, schedulesOnPage)
	first := (page - 1) * schedulesOnPage
	for _, c := range list[first:min(first+schedulesOnPage, total)] {
		row, err := d.scheduleRow(r.Lang, c)
		if err != nil {
			return err
		}
		p.Schedules = append(p.Schedules, row)
	}
	return d.Render(w, r, status, "worker-schedules.html", r.Head.PageTitle(r), p)
}

// previewRuns answers with the next runs of the schedule in a form, one a line, or with the
// message of its first error. A script calls it while the user types.
func (d *Pages) previewRuns(w http.ResponseWriter, r *frame.Request) error {
	if _, err := d.Store.Workers.Worker(r.Context(), r.Who.Caller, r.Params.ByName("workerId")); err != nil {
		return err
	}
	var wrong db.Fields
	when := d.when(frame.FormOf(r.URL.Query()), &wrong)
	err := wrong.Err()
	var runs []time.Time
	if err == nil {
		runs, err = d.Store.PreviewRuns(when, nextRunsShown)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if refused, ok := errors.AsType[*db.Error](err); ok && len(refused.Details) > 0 {
		w.WriteHeader(http.StatusUnprocessableEntity)
		// The browser may have closed the connection.
		_, _ = io.WriteString(w, frame.Explained(r.Lang, frame.InvalidField, refused.Details[0].Message))
		return nil
	}
	if err != nil {
		return err
	}
	zone := d.zoneOf(store.Schedule{When: when})
	for _, at := range runs {
		_, _ = io.WriteString(w, show.ExactTime(r.Lang, at.In(zone))+"\n")
	}
	return nil
}

// scheduleRow returns a schedule with its next runs.
func (d *Pages) scheduleRow(l *text.Language, c store.Schedule) (scheduleRow, error) {
	row := scheduleRow{Schedule: c, Description: d.describeWhen(l, c),
		Path: "/workers/" + c.WorkerID + "/schedules/" + c.ID}
	row.Shown = show.Ellipsis(c.Input, 200)
	runs, err := d.Store.NextRuns(c, nextRunsShown)
	for _, at := range runs {
		row.Next = append(row.Next, at.In(d.zoneOf(c)))
	}
	return row, err
}

// describeWhen describes the time of a schedule.
func (d *Pages) describeWhen(l *text.Language, c store.Schedule) string {
	switch c.When.Type {
	case store.Scheduled:
		return l.T("once, at %s", show.ExactTime(l, c.When.Date.In(d.zone())))
	case store.Delayed:
		return inLargestUnit(l, c.When.DelaySeconds, "once, %s seconds after creation", map[string][2]text.Key{
			"86400": {"once, %d day after creation", "once, %d days after creation"},
			"3600":  {"once, %d hour after creation", "once, %d hours after creation"},
			"60":    {"once, %d minute after creation", "once, %d minutes after creation"},
			"1":     {"once, %d second after creation", "once, %d seconds after creation"}})
	case store.Interval:
		return inLargestUnit(l, c.When.IntervalSeconds, "every %s seconds", map[string][2]text.Key{
			"86400": {"every day", "every %d days"}, "3600": {"every hour", "every %d hours"},
			"60": {"every minute", "every %d minutes"}, "1": {"every second", "every %d seconds"}})
	}
	return "cron " + c.When.Cron
}

// inLargestUnit returns the text for a time in the largest unit that divides it. units has the texts for
// one and for many of each unit; fraction is the text for a part of a second.
func inLargestUnit(l *text.Language, seconds float64, fraction text.Key, units map[string][2]text.Key) string {
	amount, unit := inUnits(seconds)
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return l.T(fraction, l.Decimal(amount))
	}
	return l.N(n, units[unit][0], units[unit][1])
}

// schedulesPath returns the address of the schedules of the worker that r names.
func schedulesPath(r *frame.Request) string {
	return "/workers/" + r.Params.ByName("workerId") + "/schedules"
}

func (d *Pages) createSchedule(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	n := store.NewSchedule{WorkerID: r.Params.ByName("workerId"), Input: f.Text("input"),
		Budget: store.Budget(f.Get("budget"))}
	var wrong db.Fields
	n.When = d.when(f, &wrong)
	wrong.Check(strings.TrimSpace(n.Input) != "", "input", "must not be empty")
	if err := wrong.Err(); err != nil {
		return "", err
	}
	key := frame.FormKey(r.Who.Caller, f.Get("token"), f.Values.Encode())
	if _, _, err := d.Store.CreateSchedule(r.Context(), r.Who.Caller, n, key); err != nil {
		return "", err
	}
	d.cfg.ScheduleChanged()
	return frame.Done(schedulesPath(r), "schedule-made"), nil
}

// A schedulePage is the data of the page that changes a schedule.
type schedulePage struct {
	Row    scheduleRow
	Fields scheduleFields
}

// schedule returns the schedule that r names.
func (d *Pages) schedule(r *frame.Request) (store.Schedule, error) {
	return d.Store.Schedule(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), r.Params.ByName("scheduleId"))
}

func (d *Pages) schedulePage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	c, err := d.schedule(r)
	if err != nil {
		return err
	}
	if f == nil {
		f = frame.NewForm(d.whenFields(c.When))
		f.Values.Set("input", c.Input)
		f.Values.Set("budget", string(c.Budget))
	}
	row, err := d.scheduleRow(r.Lang, c)
	if err != nil {
		return err
	}
	p := schedulePage{Row: row, Fields: d.scheduleFields(r, f)}
	return d.Render(w, r, status, "worker-schedule.html", r.Head.PageTitle(r), p)
}

func (d *Pages) updateSchedule(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	c, err := d.schedule(r)
	if err != nil {
		return "", err
	}
	var wrong db.Fields
	input, budget := f.Text("input"), store.Budget(f.Get("budget"))
	wrong.Check(strings.TrimSpace(input) != "", "input", "must not be empty")
	wrong.Check(budget.Valid(), "budget", "must be low, standard, high or unlimited")
	patch := store.SchedulePatch{Input: &input, Budget: &budget}
	// A new time restarts the count of delays and intervals. So the patch has a time only if the
	// user has changed it.
	if !d.sameWhen(f, c.When) {
		when := d.when(f, &wrong)
		patch.When = &when
	}
	if err := wrong.Err(); err != nil {
		return "", err
	}
	return d.patchSchedule(r, patch, "schedule-changed")
}

// patchSchedule changes the schedule that r names and returns the list with a message.
func (d *Pages) patchSchedule(r *frame.Request, patch store.SchedulePatch, message string) (string, error) {
	workerID, id := r.Params.ByName("workerId"), r.Params.ByName("scheduleId")
	if _, err := d.Store.UpdateSchedule(r.Context(), r.Who.Caller, workerID, id, patch); err != nil {
		return "", err
	}
	d.cfg.ScheduleChanged()
	return frame.Done(schedulesPath(r), message), nil
}

// pauseSchedule returns the action of the button that pauses or resumes a schedule.
func (d *Pages) pauseSchedule(pause bool, message string) func(r *frame.Request) (string, error) {
	return func(r *frame.Request) (string, error) {
		return d.patchSchedule(r, store.SchedulePatch{Paused: &pause}, message)
	}
}

// runSchedule creates the schedule's task now and shows it.
func (d *Pages) runSchedule(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	id := r.Params.ByName("scheduleId")
	key := frame.FormKey(r.Who.Caller, f.Get("token"), "run "+id)
	a, err := d.Runner.RunSchedule(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), id, key, frame.RequestID(w))
	return view.TaskPath(a.Turn.TaskID), err
}

func (d *Pages) cancelSchedule(r *frame.Request) (string, error) {
	err := d.Store.CancelSchedule(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), r.Params.ByName("scheduleId"))
	return frame.Done(schedulesPath(r), "schedule-cancelled"), err
}
