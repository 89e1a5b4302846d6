package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"journeyman/runner/view"
	"journeyman/store"
)

// nextRuns is the number of future runs that a schedule shows.
const nextRuns = 5

// A scheduleView is a schedule as the API shows it. Of the fields for types, it has only the one of
// its type.
type scheduleView struct {
	ID              string             `json:"id"`
	Type            store.ScheduleType `json:"type"`
	Budget          store.Budget       `json:"budget"`
	Input           string             `json:"input"`
	NextRunAt       string             `json:"nextRunAt"`
	DelayInSeconds  *float64           `json:"delayInSeconds,omitempty"`
	Cron            *string            `json:"cron,omitempty"`
	IntervalSeconds *float64           `json:"intervalSeconds,omitempty"`
	Paused          bool               `json:"paused"`
	NextRuns        []string           `json:"nextRuns"`
	LastRunAt       *string            `json:"lastRunAt"`
}

func (a *API) scheduleView(c store.Schedule) (scheduleView, error) {
	v := scheduleView{ID: c.ID, Type: c.When.Type, Budget: c.Budget, Input: c.Input,
		NextRunAt: view.Timestamp(c.NextRunAt), Paused: c.Paused, NextRuns: []string{},
		LastRunAt: view.OptionalTime(c.LastRunAt)}
	switch c.When.Type {
	case store.Delayed:
		v.DelayInSeconds = &c.When.DelaySeconds
	case store.CronType:
		v.Cron = &c.When.Cron
	case store.Interval:
		v.IntervalSeconds = &c.When.IntervalSeconds
	}
	runs, err := a.store.NextRuns(c, nextRuns)
	for _, at := range runs {
		v.NextRuns = append(v.NextRuns, view.Timestamp(at))
	}
	return v, err
}

// respondSchedule writes a schedule as the response, or returns err.
func (a *API) respondSchedule(w http.ResponseWriter, c store.Schedule, err error) error {
	if err != nil {
		return err
	}
	v, err := a.scheduleView(c)
	return respondOK(w, v, err)
}

func (a *API) listSchedules(w http.ResponseWriter, r *request) error {
	workerID := r.param("workerId")
	list, err := a.store.Schedules(r.Context(), r.who.Caller, workerID)
	if err != nil {
		return err
	}
	views := make([]scheduleView, 0, len(list))
	for _, c := range list {
		v, err := a.scheduleView(c)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	return respond(w, http.StatusOK, map[string]any{"schedules": views, "workerId": workerID,
		"timezone": a.store.Timezone()})
}

func (a *API) createSchedule(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	n := store.NewSchedule{WorkerID: r.param("workerId"), Input: b.Instruction(), Budget: b.Budget()}
	if when := a.when(b); when != nil {
		n.When = *when
	} else if !b.has("when") {
		b.Invalid.Add("when", "is required")
	}
	key, err := b.checkedKey(w, r)
	if err != nil {
		return err
	}
	c, replayed, err := a.store.CreateSchedule(r.Context(), r.who.Caller, n, key)
	if err != nil {
		return err
	}
	a.cfg.ScheduleChanged() // the scheduler may sleep until a later time
	markReplay(w, replayed)
	return a.respondSchedule(w, c, nil)
}

func (a *API) getSchedule(w http.ResponseWriter, r *request) error {
	c, err := a.store.Schedule(r.Context(), r.who.Caller, r.param("workerId"), r.param("scheduleId"))
	return a.respondSchedule(w, c, err)
}

func (a *API) updateSchedule(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	var p store.SchedulePatch
	// null in a patch could mean "unchanged" or "none", and no field of a schedule can be none.
	for _, name := range []string{"input", "when", "budget", "paused"} {
		_, sent := b.field(name)
		b.Invalid.Check(!sent || b.has(name), name, "must not be null: leave it out to keep it")
	}
	if b.has("input") {
		input := b.Instruction()
		p.Input = &input
	}
	if b.has("budget") {
		budget := b.Budget()
		p.Budget = &budget
	}
	if b.has("paused") {
		paused := b.flag("paused")
		p.Paused = &paused
	}
	p.When = a.when(b)
	if err := b.check(w, r); err != nil {
		return err
	}
	c, err := a.store.UpdateSchedule(r.Context(), r.who.Caller, r.param("workerId"), r.param("scheduleId"), p)
	if err == nil {
		a.cfg.ScheduleChanged()
	}
	return a.respondSchedule(w, c, err)
}

func (a *API) cancelSchedule(w http.ResponseWriter, r *request) error {
	err := a.store.CancelSchedule(r.Context(), r.who.Caller, r.param("workerId"), r.param("scheduleId"))
	return respondOK(w, map[string]bool{"cancelled": true}, err)
}

// runSchedule creates a task of a schedule now. The next time of the schedule stays the same.
func (a *API) runSchedule(w http.ResponseWriter, r *request) error {
	key, err := idempotencyKey(r, nil)
	if err != nil {
		return err
	}
	accepted, err := a.runner.RunSchedule(r.Context(), r.who.Caller, r.param("workerId"), r.param("scheduleId"),
		key, r.id)
	if err != nil {
		return err
	}
	watch := a.runner.Watch(accepted.Turn.ID)
	defer watch.Leave()
	return a.answer(w, r, accepted, watch, false, false)
}

// when reads the field when and notes its errors. It returns nil if the field is absent
// or no object.
func (a *API) when(b *Body) *store.When {
	if !b.has("when") {
		return nil
	}
	in := Body{}
	if json.Unmarshal(b.fields["when"], &in.fields) != nil {
		b.Invalid.Add("when", "must be an object with a type")
		return nil
	}
	w := store.When{Type: store.ScheduleType(in.Text("type"))}
	switch w.Type {
	case store.Scheduled:
		w.Date = in.date("date")
	case store.Delayed:
		w.DelaySeconds = in.number("delayInSeconds")
	case store.CronType:
		in.require("cron")
		w.Cron = in.Text("cron")
	case store.Interval:
		w.IntervalSeconds = in.number("intervalSeconds")
	}
	for _, name := range in.unread() {
		b.ignored = append(b.ignored, "when."+name)
	}
	for _, d := range in.Invalid {
		b.Invalid.Add("when."+d.Path, "%s", d.Message)
	}
	if len(in.Invalid) == 0 { // the rules would report the zero value of a field with a wrong type again
		a.store.CheckWhen(&b.Invalid, w)
	}
	return &w
}

// require adds an error for a field that is absent or null.
func (b *Body) require(name string) { b.Invalid.Check(b.has(name), name, "is required") }

// number reads a required number.
func (b *Body) number(name string) (v float64) {
	b.require(name)
	if b.has(name) && json.Unmarshal(b.fields[name], &v) != nil {
		b.Invalid.Add(name, "must be a number")
	}
	return v
}

// date reads a required moment with its offset from UTC.
func (b *Body) date(name string) time.Time {
	b.require(name)
	v := b.text(name)
	if v == nil {
		return time.Time{}
	}
	// RFC 3339 lets clients write t and z; time.Parse takes capitals only.
	t, err := time.Parse(time.RFC3339, strings.ToUpper(*v))
	b.Invalid.Check(err == nil, name, "must be a date and time with its offset from UTC, "+
		"such as 2026-12-01T09:00:00+01:00 or 2026-12-01T08:00:00Z")
	return t
}
