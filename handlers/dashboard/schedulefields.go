package dashboard

import (
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// How the form of a schedule shows when it runs, and how that is read again.

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

func (d *Dashboard) scheduleFields(f *form) scheduleFields {
	return scheduleFields{Form: f, Zone: d.store.Timezone(), Token: d.token()}
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
