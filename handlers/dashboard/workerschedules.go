package dashboard

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers"
	"journeyman/store"
)

const (
	schedulesOnPage = 20
	nextRunsShown   = 5
)

// A schedulesPage is what the page of a worker's schedules shows.
type schedulesPage struct {
	Head      workerHead
	Schedules []scheduleRow
	Fields    scheduleFields
	Before    string // address of the page before, '' for the first
	Next      string // address of the next page, '' after the last
	Zone      string
	Token     string // of what the page's buttons do
}

// A scheduleRow is a schedule of the list.
type scheduleRow struct {
	store.Schedule
	Rhythm string      // when it runs, in words
	Next   []time.Time // in the schedule's zone
	Shown  string      // the beginning of its input
	Path   string
}

func (d *Dashboard) schedulesPage(r *request) (schedulesPage, error) {
	head, err := d.head(r, "schedules")
	if err != nil {
		return schedulesPage{}, err
	}
	list, err := d.store.Schedules(r.Context(), r.who.Caller, head.ID)
	if err != nil {
		return schedulesPage{}, err
	}
	p := schedulesPage{Head: head, Zone: d.store.Timezone(), Token: d.token()}
	p.Fields = d.scheduleFields(newForm(map[string]string{"when.type": string(store.CronType), "when.cron": "0 9 * * 1-5", "budget": string(store.BudgetStandard),
		"when.delayInSeconds": "1", "delayUnit": "3600", "when.intervalSeconds": "1", "intervalUnit": "3600"}))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = min(max(page, 1), max(1, (len(list)+schedulesOnPage-1)/schedulesOnPage))
	address := func(n int) string { return head.Base() + "/schedules?page=" + strconv.Itoa(n) }
	if page > 1 {
		p.Before = address(page - 1)
	}
	list = list[(page-1)*schedulesOnPage:]
	if len(list) > schedulesOnPage {
		list, p.Next = list[:schedulesOnPage], address(page+1)
	}
	for _, c := range list {
		row, err := d.scheduleRow(c)
		if err != nil {
			return p, err
		}
		p.Schedules = append(p.Schedules, row)
	}
	return p, nil
}

// token names a form, so that a second click does nothing more.
func (d *Dashboard) token() string { return store.NewID("frm", d.cfg.Now()) }

func (d *Dashboard) scheduleRow(c store.Schedule) (scheduleRow, error) {
	row := scheduleRow{Schedule: c, Rhythm: d.rhythm(c), Path: "/workers/" + c.WorkerID + "/schedules/" + c.ID}
	if text, cut := firstRunes(c.Input, 200); cut {
		row.Shown = text + "…"
	} else {
		row.Shown = text
	}
	runs, err := d.store.NextRuns(c, nextRunsShown)
	for _, at := range runs {
		row.Next = append(row.Next, at.In(d.zoneOf(c)))
	}
	return row, err
}

// rhythm says in words when a schedule runs.
func (d *Dashboard) rhythm(c store.Schedule) string {
	switch c.When.Type {
	case store.Scheduled:
		return "once, at " + showMoment(c.When.Date.In(d.zone()))
	case store.Delayed:
		return "once, " + span(c.When.DelaySeconds) + " after it was made"
	case store.Interval:
		return "every " + span(c.When.IntervalSeconds)
	}
	return "cron " + c.When.Cron
}

// span is a number of seconds in the largest unit that divides it.
func span(seconds float64) string {
	n, unit := inUnits(seconds)
	for _, u := range (scheduleFields{}).Units() {
		if u.Value == unit {
			if n == "1" {
				return n + " " + strings.TrimSuffix(u.Label, "s")
			}
			return n + " " + u.Label
		}
	}
	return n
}

// showMoment is a time in its own zone.
func showMoment(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04:05 MST") }

func (d *Dashboard) listSchedules(w http.ResponseWriter, r *request) error {
	p, err := d.schedulesPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-schedules.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) createSchedule(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	id := r.params.ByName("workerId")
	var wrong store.Fields
	n := store.NewSchedule{WorkerID: id, Input: f.text("input"), Budget: store.Budget(f.Get("budget")), When: d.when(f, &wrong)}
	wrong.Check(strings.TrimSpace(n.Input) != "", "input", "must not be empty")
	if err = wrong.Err(); err == nil {
		_, _, err = d.store.CreateSchedule(r.Context(), r.who.Caller, n, handlers.FormOnce(r.who.Caller, f.Get("token"), f.Values.Encode()))
	}
	if err == nil {
		d.cfg.API.ScheduleChanged()
		return done(w, r, "/workers/"+id+"/schedules", "schedule-made")
	}
	p, other := d.schedulesPage(r)
	if other != nil {
		return other
	}
	if !f.refused(err) {
		return err
	}
	p.Fields = d.scheduleFields(f)
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-schedules.html", p.Head.PageTitle(), p)
}

// A schedulePage is what the page for changing a schedule shows.
type schedulePage struct {
	Head   workerHead
	Row    scheduleRow
	Fields scheduleFields
}

func (d *Dashboard) schedulePage(r *request) (schedulePage, error) {
	head, err := d.head(r, "schedules")
	if err != nil {
		return schedulePage{}, err
	}
	c, err := d.store.Schedule(r.Context(), r.who.Caller, head.ID, r.params.ByName("scheduleId"))
	if err != nil {
		return schedulePage{}, err
	}
	f := newForm(d.whenFields(c.When))
	f.Values.Set("input", c.Input)
	f.Values.Set("budget", string(c.Budget))
	row, err := d.scheduleRow(c)
	return schedulePage{Head: head, Row: row, Fields: d.scheduleFields(f)}, err
}

func (d *Dashboard) showSchedule(w http.ResponseWriter, r *request) error {
	p, err := d.schedulePage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-schedule.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) updateSchedule(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.schedulePage(r)
	if err != nil {
		return err
	}
	var wrong store.Fields
	input, budget := f.text("input"), store.Budget(f.Get("budget"))
	wrong.Check(strings.TrimSpace(input) != "", "input", "must not be empty")
	wrong.Check(budget.Valid(), "budget", "must be low, standard, high or unlimited")
	patch := store.SchedulePatch{Input: &input, Budget: &budget}
	// What was left as it was keeps its rhythm; another time begins anew.
	if !d.sameWhen(f, p.Row.When) {
		when := d.when(f, &wrong)
		patch.When = &when
	}
	if err = wrong.Err(); err == nil {
		_, err = d.store.UpdateSchedule(r.Context(), r.who.Caller, p.Head.ID, p.Row.ID, patch)
	}
	if err == nil {
		d.cfg.API.ScheduleChanged()
		return done(w, r, p.Head.Base()+"/schedules", "schedule-changed")
	}
	if !f.refused(err) {
		return err
	}
	p.Fields = d.scheduleFields(f)
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-schedule.html", p.Head.PageTitle(), p)
}

// pauseSchedule gives the handle that pauses or resumes a schedule.
func (d *Dashboard) pauseSchedule(paused bool) handle {
	return func(w http.ResponseWriter, r *request) error {
		id := r.params.ByName("workerId")
		_, err := d.store.UpdateSchedule(r.Context(), r.who.Caller, id, r.params.ByName("scheduleId"), store.SchedulePatch{Paused: &paused})
		if err != nil {
			return err
		}
		d.cfg.API.ScheduleChanged()
		if paused {
			return done(w, r, "/workers/"+id+"/schedules", "schedule-paused")
		}
		return done(w, r, "/workers/"+id+"/schedules", "schedule-resumed")
	}
}

// runSchedule makes the schedule's task now and goes to its page.
func (d *Dashboard) runSchedule(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	id := r.params.ByName("scheduleId")
	a, err := d.store.RunSchedule(r.Context(), r.who.Caller, r.params.ByName("workerId"), id, handlers.FormOnce(r.who.Caller, f.Get("token"), "run "+id))
	if err != nil {
		return err
	}
	d.cfg.Runner.Wake()
	return redirect(w, r, taskPath(a.Turn.TaskID))
}

func (d *Dashboard) cancelSchedule(w http.ResponseWriter, r *request) error {
	id := r.params.ByName("workerId")
	if err := d.store.CancelSchedule(r.Context(), r.who.Caller, id, r.params.ByName("scheduleId")); err != nil {
		return err
	}
	return done(w, r, "/workers/"+id+"/schedules", "schedule-cancelled")
}
