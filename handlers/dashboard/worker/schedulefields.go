package worker

import (
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
)

// scheduleFields is the data of a form with the fields of a schedule.
type scheduleFields struct {
	Form  *frame.Form
	Zone  string // of dates, and of cron expressions without a zone
	Token string

	Preview string // address of the preview of the next runs

	lang *text.Language
}

// Is reports whether the user chose this type of schedule.
func (v scheduleFields) Is(kind string) bool { return v.Form.Get("when.type") == kind }

// Budgets returns the choices of the budget.
func (v scheduleFields) Budgets() []frame.Option { return frame.Budgets(v.lang) }

// Units returns the choices of a unit of time. The values are seconds.
func (v scheduleFields) Units() []frame.Option {
	return []frame.Option{{Value: "1", Label: v.lang.T("seconds")},
		{Value: "60", Label: v.lang.T("minutes")}, {Value: "3600", Label: v.lang.T("hours")},
		{Value: "86400", Label: v.lang.T("days")}}
}

// zone returns the time zone of dates in forms.
func (d *Pages) zone() *time.Location {
	zone, err := time.LoadLocation(d.Store.Timezone())
	if err != nil {
		return time.UTC
	}
	return zone
}

// zoneOf returns the time zone in which pages show a schedule. A cron expression may name
// its own.
func (d *Pages) zoneOf(c store.Schedule) *time.Location {
	if named, ok := strings.CutPrefix(c.When.Cron, "CRON_TZ="); ok {
		name, _, _ := strings.Cut(named, " ")
		if zone, err := time.LoadLocation(name); err == nil {
			return zone
		}
	}
	return d.zone()
}

func (d *Pages) scheduleFields(r *frame.Request, f *frame.Form) scheduleFields {
	return scheduleFields{lang: r.Lang, Form: f, Zone: d.Store.Timezone(), Token: d.Token(),
		Preview: "/workers/" + r.Params.ByName("workerId") + "/next-runs"}
}

// inUnits returns a time in the largest unit that divides it: the number of units, and the seconds
// of one unit.
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

// whenFields returns the values of the fields of a schedule's time. The fields of other types have
// initial values.
func (d *Pages) whenFields(w store.When) map[string]string {
	v := map[string]string{"when.type": string(w.Type), "when.delayInSeconds": "1", "delayUnit": "3600",
		"when.intervalSeconds": "1", "intervalUnit": "3600", "when.cron": w.Cron, "when.date": ""}
	switch w.Type {
	case store.Scheduled:
		v["when.date"] = w.Date.In(d.zone()).Format(frame.LocalDate)
	case store.Delayed:
		v["when.delayInSeconds"], v["delayUnit"] = inUnits(w.DelaySeconds)
	case store.Interval:
		v["when.intervalSeconds"], v["intervalUnit"] = inUnits(w.IntervalSeconds)
	}
	return v
}

// when reads the time of a schedule. It adds to wrong the fields that it cannot read.
func (d *Pages) when(f *frame.Form, wrong *db.Fields) store.When {
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

// date reads a date in the format of browsers or as people type it.
func (d *Pages) date(text string, wrong *db.Fields) time.Time {
	t, ok := frame.TypedTime(strings.TrimSpace(text), d.zone(), frame.LocalDate, "2006-01-02T15:04")
	wrong.Check(ok, "when.date", "must be a date and time such as 2030-01-31 09:00")
	return t
}

// seconds reads a number and its unit.
func seconds(f *frame.Form, name, unit string, wrong *db.Fields) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(f.Get(name)), 64)
	size, err2 := strconv.Atoi(f.Get(unit))
	if err != nil || err2 != nil {
		wrong.Add(name, "must be a number")
	}
	return n * float64(size)
}

// sameWhen reports whether a form has the times of w unchanged. It compares only the fields of w's
// type, because the others have no effect.
func (d *Pages) sameWhen(f *frame.Form, w store.When) bool {
	was := d.whenFields(w)
	names := map[store.ScheduleType][]string{store.Scheduled: {"when.date"}, store.CronType: {"when.cron"},
		store.Delayed:  {"when.delayInSeconds", "delayUnit"},
		store.Interval: {"when.intervalSeconds", "intervalUnit"}}[w.Type]
	for _, name := range append(names, "when.type") {
		if f.Get(name) != was[name] {
			return false
		}
	}
	return true
}
