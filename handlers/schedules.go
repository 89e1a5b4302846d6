package handlers

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

// nextRuns is how many of its next times a schedule shows.
const nextRuns = 5

// A scheduleView is the interface's schedule: the field of its type is there, those
// of the others are not.
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
	v := scheduleView{ID: c.ID, Type: c.When.Type, Budget: c.Budget, Input: c.Input, NextRunAt: runner.Timestamp(c.NextRunAt),
		Paused: c.Paused, NextRuns: []string{}, LastRunAt: optionalTime(c.LastRunAt)}
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
		v.NextRuns = append(v.NextRuns, runner.Timestamp(at))
	}
	return v, err
}

func (a *API) respondSchedule(w http.ResponseWriter, c store.Schedule) error {
	v, err := a.scheduleView(c)
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, v)
}

func (a *API) listSchedules(w http.ResponseWriter, r *request) error {
	workerID := r.params.ByName("workerId")
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
	return respond(w, http.StatusOK, map[string]any{"schedules": views, "workerId": workerID, "timezone": a.store.Timezone()})
}

func (a *API) createSchedule(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	n := store.NewSchedule{WorkerID: r.params.ByName("workerId"), Input: b.instruction(), Budget: b.budget()}
	if when := a.when(b); when != nil {
		n.When = *when
	} else if !b.has("when") {
		b.invalid.Add("when", "is required")
	}
	if err := b.invalid.Err(); err != nil {
		return err
	}
	o, err := b.once(r)
	if err != nil {
		return err
	}
	c, replayed, err := a.store.CreateSchedule(r.Context(), r.who.Caller, n, o)
	if err != nil {
		return err
	}
	a.cfg.ScheduleChanged()
	markReplay(w, replayed)
	return a.respondSchedule(w, c)
}

func (a *API) getSchedule(w http.ResponseWriter, r *request) error {
	c, err := a.store.Schedule(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("scheduleId"))
	if err != nil {
		return err
	}
	return a.respondSchedule(w, c)
}

func (a *API) updateSchedule(w http.ResponseWriter, r *request) error {
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	var p store.SchedulePatch
	for _, name := range []string{"input", "when", "budget", "paused"} {
		_, sent := b.fields[name]
		b.invalid.Check(!sent || b.has(name), name, "must not be null: leave it out to keep it")
	}
	if b.has("input") {
		input := b.instruction()
		p.Input = &input
	}
	if b.has("budget") {
		budget := b.budget()
		p.Budget = &budget
	}
	if b.has("paused") {
		paused := b.flag("paused")
		p.Paused = &paused
	}
	p.When = a.when(b)
	if err := b.invalid.Err(); err != nil {
		return err
	}
	c, err := a.store.UpdateSchedule(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("scheduleId"), p)
	if err != nil {
		return err
	}
	a.cfg.ScheduleChanged()
	return a.respondSchedule(w, c)
}

func (a *API) cancelSchedule(w http.ResponseWriter, r *request) error {
	err := a.store.CancelSchedule(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("scheduleId"))
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, map[string]bool{"cancelled": true})
}

// runSchedule makes a task of a schedule now. Its own time stays.
func (a *API) runSchedule(w http.ResponseWriter, r *request) error {
	o, err := once(r, nil)
	if err != nil {
		return err
	}
	accepted, err := a.store.RunSchedule(r.Context(), r.who.Caller, r.params.ByName("workerId"), r.params.ByName("scheduleId"), o)
	if err != nil {
		return err
	}
	a.runner.Wake()
	return a.answer(w, r, accepted, false, false)
}

// when reads the field when and notes what is wrong with it; nil where it is not
// there or no object.
func (a *API) when(b *body) *store.When {
	if !b.has("when") {
		return nil
	}
	in := body{}
	if json.Unmarshal(b.fields["when"], &in.fields) != nil {
		b.invalid.Add("when", "must be an object with a type")
		return nil
	}
	w := store.When{Type: store.ScheduleType(value(in.text("type")))}
	switch w.Type {
	case store.Scheduled:
		w.Date = in.date("date")
	case store.Delayed:
		w.DelaySeconds = in.number("delayInSeconds")
	case store.CronType:
		w.Cron = value(in.required("cron"))
	case store.Interval:
		w.IntervalSeconds = in.number("intervalSeconds")
	}
	for _, d := range in.invalid {
		b.invalid.Add("when."+d.Path, "%s", d.Message)
	}
	if len(in.invalid) == 0 {
		a.store.CheckWhen(&b.invalid, w)
	}
	return &w
}

// required reads a string that must be there.
func (b *body) required(name string) *string {
	b.invalid.Check(b.has(name), name, "is required")
	return b.text(name)
}

// number reads a number that must be there.
func (b *body) number(name string) (v float64) {
	b.invalid.Check(b.has(name), name, "is required")
	if b.has(name) && json.Unmarshal(b.fields[name], &v) != nil {
		b.invalid.Add(name, "must be a number")
	}
	return v
}

// date reads a moment that must be there, with its offset from UTC.
func (b *body) date(name string) time.Time {
	v := b.required(name)
	if v == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(*v))
	b.invalid.Check(err == nil, name, "must be a date and time with its offset from UTC, such as 2026-12-01T09:00:00+01:00 or 2026-12-01T08:00:00Z")
	return t
}
