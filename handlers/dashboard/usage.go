package dashboard

import (
	"encoding/csv"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"journeyman/store"
)

// usageRoutes are the pages of what was used.
func (d *Dashboard) usageRoutes() {
	d.may(store.SeeUsage, "GET", "/usage", d.showUsage)
	d.may(store.SeeUsage, "GET", "/usage.csv", d.downloadUsage)
}

// partsOnPage is how many workers, keys or triggers the page tells apart.
const partsOnPage = 20

// The choices of the page.
var (
	usageRanges   = []option{{"7", "7 days"}, {"30", "30 days"}, {"90", "90 days"}}
	usageMeasures = []option{{"credits", "Credits"}, {"tokens", "Tokens"}, {"turns", "Turns"}, {"failures", "Failures"}}
	usageGroups   = []option{{"worker", "Worker"}, {"key", "API key"}, {"trigger", "Trigger"}}
)

// A usagePage is what was used over some days.
type usagePage struct {
	Choices []choice
	Days    int
	Measure option
	By      option
	Total   usageSum
	ByDay   []usageDay
	Rest    int64 // parts that are not told apart
	Plot    template.HTML
	Parts   []usagePart
	Spent   float64 // credits, this month
	Month   string
	Cap     *float64 // credits a month; nil for none
	CSV     string   // where the rows are
}

// A choice is a question of the page and the links that answer it.
type choice struct {
	Name  string
	Links []choiceLink
}

type choiceLink struct {
	Label, Path string
	Current     bool
}

// A usageSum is one line of numbers.
type usageSum struct{ store.UsageSum }

// Credits are its cost.
func (u usageSum) Credits() float64 { return store.Credits(u.Cost) }

// A usagePart is one line of the table under the plot.
type usagePart struct {
	Total usageSum
	Class string // of its colour
	Name  string
	Path  string // of its own page, '' for none
}

// A usageDay is one line of the table of days.
type usageDay struct {
	Date  string
	Total usageSum
}

// Left is what the organization may still spend this month.
func (p usagePage) Left() float64 {
	if p.Cap == nil {
		return 0
	}
	return max(*p.Cap-p.Spent, 0)
}

// Empty reports whether nothing at all was used.
func (p usagePage) Empty() bool { return p.Total.UsageSum == store.UsageSum{} }

// pick gives the option with that value, else the one at otherwise.
func pick(options []option, value string, otherwise int) option {
	for _, o := range options {
		if o.Value == value {
			return o
		}
	}
	return options[otherwise]
}

// rangeOf is how many days a query asks for.
func rangeOf(v url.Values) (days int) {
	days, _ = strconv.Atoi(pick(usageRanges, v.Get("days"), 1).Value) // one of ours
	return days
}

func (d *Dashboard) showUsage(w http.ResponseWriter, r *request) error {
	v := r.URL.Query()
	days, measure, by := rangeOf(v), pick(usageMeasures, v.Get("show"), 0), pick(usageGroups, v.Get("by"), 0)
	p := usagePage{Days: days, Measure: measure, By: by, Month: d.cfg.Now().UTC().Format("January"), CSV: "/usage.csv?days=" + strconv.Itoa(days)}
	set := url.Values{"days": {strconv.Itoa(days)}, "show": {measure.Value}, "by": {by.Value}}
	p.Choices = []choice{choose("Range", "days", usageRanges, set), choose("Show", "show", usageMeasures, set), choose("By", "by", usageGroups, set)}
	var err error
	var spent int64
	if spent, p.Cap, err = d.store.MonthSpending(r.Context(), r.who.Caller); err != nil {
		return err
	}
	p.Spent = store.Credits(spent)
	report, err := d.store.Usage(r.Context(), r.who.Caller, store.UsageQuery{Days: p.Days, By: store.UsageGroup(by.Value),
		Measure: store.UsageMeasure(measure.Value), Parts: partsOnPage})
	if err != nil {
		return err
	}
	p.Total, p.Rest = usageSum{report.Total}, int64(report.Rest)
	for i, part := range report.Parts {
		p.Parts = append(p.Parts, newUsagePart(part, i, store.UsageGroup(by.Value)))
	}
	for i, day := range report.Days {
		p.ByDay = append(p.ByDay, usageDay{report.First.AddDate(0, 0, i).Format(time.DateOnly), usageSum{day}})
	}
	if p.Plot, err = drawUsage(report, store.UsageMeasure(measure.Value)); err != nil {
		return err
	}
	return d.page(w, r, "usage.html", "Usage", p)
}

// choose makes the links of one choice; the others stay as they are set.
func choose(name, field string, options []option, set url.Values) choice {
	c := choice{Name: name}
	for _, o := range options {
		q := url.Values{field: {o.Value}}
		for other, values := range set {
			if other != field {
				q[other] = values
			}
		}
		c.Links = append(c.Links, choiceLink{o.Label, "/usage?" + q.Encode(), set.Get(field) == o.Value})
	}
	return c
}

func newUsagePart(part store.UsagePart, rank int, by store.UsageGroup) usagePart {
	p := usagePart{Total: usageSum{part.Total}, Class: partClass(rank), Name: brief(part.Title)}
	switch {
	case by == store.ByTrigger:
		p.Name = showTrigger(store.Trigger(part.ID))
	case by == store.ByKey && part.ID == "":
		p.Name = "without a key: dashboard, mail, schedules"
	case by == store.ByWorker && part.ID == "":
		p.Name = "no worker: drafts of instructions"
	case part.Title == "":
		p.Name = part.ID
	case by == store.ByWorker:
		p.Path = "/workers/" + part.ID
	}
	return p
}

// downloadUsage sends what was used as CSV, the oldest day first, while it reads it.
func (d *Dashboard) downloadUsage(w http.ResponseWriter, r *request) error {
	days := rangeOf(r.URL.Query())
	day := d.cfg.Now().UTC().AddDate(0, 0, 1-days)
	rows, err := d.store.UsageOn(r.Context(), r.who.Caller, day)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	_ = out.Write([]string{"day", "workerId", "apiKeyId", "triggeredBy", "turns", "failures", "steps", "inputTokens", "outputTokens", "credits", "seconds"})
	for i := 1; ; i++ {
		for _, u := range rows {
			_ = out.Write(usageRow(u))
		}
		if out.Flush(); out.Error() != nil || i >= days {
			return nil //nolint:nilerr // the browser has gone
		}
		if rows, err = d.store.UsageOn(r.Context(), r.who.Caller, day.AddDate(0, 0, i)); err != nil {
			d.cfg.Log.ErrorContext(r.Context(), "usage download", "err", err)
			panic(http.ErrAbortHandler) // what was sent must not be taken for whole
		}
	}
}

func usageRow(u store.UsageRow) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{u.Day.Format(time.DateOnly), csvCell(u.WorkerID), csvCell(u.KeyID), string(u.TriggeredBy), number(u.Turns), number(u.Failures),
		number(u.Steps), number(u.InputTokens), number(u.OutputTokens), strconv.FormatFloat(store.Credits(u.Cost), 'f', -1, 64),
		strconv.FormatFloat(u.Duration.Seconds(), 'f', -1, 64)}
}
