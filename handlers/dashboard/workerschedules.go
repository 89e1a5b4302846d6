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

// scheduleFields are the fields of a schedule as a form shows them.
type scheduleFields struct {
	Form  *form
	Zone  string // of dates, and of cron expressions that name none
	Token string
}

// Is reports whether a kind of schedule is chosen.
func (v scheduleFields) Is(kind string) bool { return v.Form.Get("when.type") == kind }

// Budgets are the choices of a field.
func (scheduleFields) Budgets() []option { return runBox{}.Budgets() }

// Units are the choices of a field.
func (scheduleFields) Units() []option {
	return []option{{"1", "seconds"}, {"60", "minutes"}, {"3600", "hours"}, {"86400", "days"}}
}

// An amountField is a number and its unit.
type amountField struct {
	field
	Unit string // name of the unit's field
}

// newAmount makes one in a template.
func newAmount(f *form, name, unit, label string) amountField {
	return amountField{newField(f, name, label, "number").With(scheduleFields{}.Units()), unit}
}

// UnitValue is the unit that is chosen.
func (a amountField) UnitValue() string { return a.Form.Get(a.Unit) }

// zone is that of dates in forms.
func (d *Dashboard) zone() *time.Location {
	zone, err := time.LoadLocation(d.store.Timezone())
	if err != nil {
		return time.UTC
	}
	return zone
}

// zoneOf is that in which a schedule is shown: the one that its expression names, or
// that of all.
func (d *Dashboard) zoneOf(c store.Schedule) *time.Location {
	if named, ok := strings.CutPrefix(c.When.Cron, "CRON_TZ="); ok {
		name, _, _ := strings.Cut(named, " ")
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	return d.zone()
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

func (d *Dashboard) scheduleFields(f *form) scheduleFields {
	return scheduleFields{Form: f, Zone: d.store.Timezone(), Token: d.token()}
}

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

// inUnits is a number of seconds as a number of units, and the seconds of one.
func inUnits(seconds float64) (n, unit string) {
	size := 1
	for _, u := range []int{86400, 3600, 60} {
		if seconds > 0 && seconds == float64(int64(seconds)) && int64(seconds)%int64(u) == 0 {
			size = u
			break
		}
	}
	return strconv.FormatFloat(seconds/float64(size), 'f', -1, 64), strconv.Itoa(size)
}

// showMoment is a time in its own zone.
func showMoment(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04:05 MST") }

// localDate is a time as inputs of browsers have it.
const localDate = "2006-01-02T15:04:05"

// whenFields shows when a schedule runs, for every kind.
func (d *Dashboard) whenFields(w store.When) map[string]string {
	v := map[string]string{"when.type": string(w.Type), "when.delayInSeconds": "1", "delayUnit": "3600", "when.intervalSeconds": "1", "intervalUnit": "3600",
		"when.cron": w.Cron, "when.date": ""}
	switch w.Type {
	case store.Scheduled:
		v["when.date"] = w.Date.In(d.zone()).Format(localDate)
	case store.Delayed:
		v["when.delayInSeconds"], v["delayUnit"] = inUnits(w.DelaySeconds)
	case store.Interval:
		v["when.intervalSeconds"], v["intervalUnit"] = inUnits(w.IntervalSeconds)
	}
	return v
}

// when reads when a schedule is to run, and notes in wrong what cannot be read.
func (d *Dashboard) when(f *form, wrong *store.Fields) store.When {
	w := store.When{Type: store.ScheduleType(f.Get("when.type"))}
	switch w.Type {
	case store.Scheduled:
		w.Date = d.date(f.Get("when.date"), wrong)
	case store.Delayed:
		w.DelaySeconds = seconds(f, "when.delayInSeconds", "delayUnit", wrong)
	case store.CronType:
		w.Cron = strings.TrimSpace(f.Get("when.cron"))
	case store.Interval:
		w.IntervalSeconds = seconds(f, "when.intervalSeconds", "intervalUnit", wrong)
	}
	return w
}

// date reads a date as inputs of browsers have it.
func (d *Dashboard) date(text string, wrong *store.Fields) time.Time {
	text = strings.Replace(strings.TrimSpace(text), " ", "T", 1)
	for _, layout := range []string{localDate, "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, d.zone()); err == nil {
			return t
		}
	}
	wrong.Add("when.date", "must be a date and time such as 2030-01-31 09:00")
	return time.Time{}
}

func seconds(f *form, name, unit string, wrong *store.Fields) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(f.Get(name)), 64)
	size, err2 := strconv.Atoi(f.Get(unit))
	if err != nil || err2 != nil {
		wrong.Add(name, "must be a number")
	}
	return n * float64(size)
}

func (d *Dashboard) listSchedules(w http.ResponseWriter, r *request) error {
	p, err := d.schedulesPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-schedules.html", p.Head.Title, p)
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
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-schedules.html", p.Head.Title, p)
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
	return d.page(w, r, "worker-schedule.html", p.Head.Title, p)
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
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-schedule.html", p.Head.Title, p)
}

// sameWhen reports whether a form says what it showed of a schedule's times.
func (d *Dashboard) sameWhen(f *form, w store.When) bool {
	was := d.whenFields(w)
	names := map[store.ScheduleType][]string{store.Scheduled: {"when.date"}, store.Delayed: {"when.delayInSeconds", "delayUnit"},
		store.CronType: {"when.cron"}, store.Interval: {"when.intervalSeconds", "intervalUnit"}}[w.Type]
	for _, name := range append(names, "when.type") {
		if f.Get(name) != was[name] {
			return false
		}
	}
	return true
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
