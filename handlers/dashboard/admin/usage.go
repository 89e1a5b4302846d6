package admin

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// usageRoutes registers the pages of usage.
func (d *Pages) usageRoutes() {
	d.May(people.SeeUsage, "GET", "/usage", d.showUsage)
	d.May(people.SeeUsage, "GET", "/usage.csv", d.downloadUsage)
}

// partsOnPage is the number of workers, keys or triggers that the page lists.
const partsOnPage = 20

// usageRanges, usageMeasures and usageGroups return the choices of the page.
func usageRanges(r *frame.Request) []frame.Option {
	return []frame.Option{{Value: "7", Label: r.T("7 days")}, {Value: "30", Label: r.T("30 days")},
		{Value: "90", Label: r.T("90 days")}}
}

func usageMeasures(r *frame.Request) []frame.Option {
	return []frame.Option{{Value: "credits", Label: r.T("Credits")},
		{Value: "tokens", Label: r.T("Tokens")}, {Value: "turns", Label: r.T("Turns")},
		{Value: "failures", Label: r.T("Failures")}}
}

func usageGroups(r *frame.Request) []frame.Option {
	return []frame.Option{{Value: "worker", Label: r.T("Worker")}, {Value: "key", Label: r.T("API key")},
		{Value: "trigger", Label: r.T("Trigger")}}
}

// A usagePage is the data of the page: the usage of some days.
type usagePage struct {
	Choices []choice
	Days    int
	Measure frame.Option
	By      frame.Option
	Total   usageSum
	ByDay   []usageDay
	Rest    int64 // parts that the page does not list
	Heading string
	Plot    show.Plot
	Legend  []usagePart
	Parts   []usagePart
	Spent   float64 // credits of this month
	Month   string
	Cap     *float64 // credits that a month may cost; nil without a limit
	CSV     string   // address of the download

	Stored, MayStore int64 // bytes of the organization; MayStore is 0 without a limit
}

// A choice is a setting of the page, with a link for each value.
type choice struct {
	Name  string
	Links []choiceLink
}

type choiceLink struct {
	Label, Path string
	Current     bool
}

// A usageSum holds the numbers of a line.
type usageSum struct{ store.UsageSum }

// Credits returns the cost.
func (u usageSum) Credits() float64 { return db.Credits(u.Cost) }

// Succeeded returns how many of the turns succeeded, in percent.
func (u usageSum) Succeeded() string {
	if u.Turns == 0 {
		return "–"
	}
	percent := 100 * float64(u.Turns-u.Failures) / float64(u.Turns)
	return strconv.FormatFloat(math.Floor(percent*10)/10, 'f', -1, 64) + "%" // 100% means every turn
}

// goodShare is the share of successful turns below which the page shows the number in red.
const goodShare = 0.9

// Bad reports whether many turns failed.
func (u usageSum) Bad() bool { return float64(u.Failures) > (1-goodShare)*float64(u.Turns) }

// A usagePart is a line of the table under the plot: a worker, a key or a trigger.
type usagePart struct {
	Total usageSum
	Class string // the colour of the part's bars
	Name  string
	Path  string // address of its own page; "" without one
	Share int    // of the largest part, in percent
}

// Dot returns the class of the coloured square beside the name.
func (p usagePart) Dot() string {
	if p.Class == "fr" {
		return "rest"
	}
	return "p" + strings.TrimPrefix(p.Class, "f")
}

// A usageDay is a line of the table of days.
type usageDay struct {
	Date  string
	Total usageSum
}

// Left returns the credits that the organization may still spend this month.
func (p usagePage) Left() float64 {
	if p.Cap == nil {
		return 0
	}
	return max(*p.Cap-p.Spent, 0)
}

// Percent returns how much of the month's credits is spent, in percent.
func (p usagePage) Percent() int {
	if p.Cap == nil || *p.Cap <= 0 {
		return 100
	}
	return int(math.Min(100*p.Spent / *p.Cap, 9999))
}

// Filled returns the length of the meter.
func (p usagePage) Filled() int { return min(p.Percent(), 100) }

// Empty reports whether nothing was used.
func (p usagePage) Empty() bool { return p.Total.UsageSum == store.UsageSum{} }

// pick returns the option with that value, else the option at index otherwise.
func pick(options []frame.Option, value string, otherwise int) frame.Option {
	for _, o := range options {
		if o.Value == value {
			return o
		}
	}
	return options[otherwise]
}

// rangeOf returns the number of days that a request asks for.
func rangeOf(r *frame.Request) (days int) {
	days, _ = strconv.Atoi(pick(usageRanges(r), r.URL.Query().Get("days"), 1).Value) // one of usageRanges
	return days
}

func (d *Pages) showUsage(w http.ResponseWriter, r *frame.Request) error {
	v := r.URL.Query()
	days, measure, by := rangeOf(r), pick(usageMeasures(r), v.Get("show"), 0), pick(usageGroups(r), v.Get("by"), 0)
	p := usagePage{Days: days, Measure: measure, By: by, Month: r.Month(d.Now().UTC()),
		Heading: r.T("%s by day and %s", measure.Label, r.Lang.Label("usage group", by.Value)),
		CSV:     "/usage.csv?days=" + strconv.Itoa(days)}
	set := url.Values{"days": {strconv.Itoa(days)}, "show": {measure.Value}, "by": {by.Value}}
	p.Choices = []choice{
		choose(r.T("Range"), "days", usageRanges(r), set),
		choose(r.T("Show"), "show", usageMeasures(r), set),
		choose(r.T("By"), "by", usageGroups(r), set),
	}
	spent, limit, err := d.Store.People.MonthSpending(r.Context(), r.Who.Caller)
	if err != nil {
		return err
	}
	p.Spent, p.Cap = db.Credits(spent), limit
	p.Stored, p.MayStore = d.Store.DiskOf(r.Who.OrganizationID).Use()
	report, err := d.Store.Effects.Usage(r.Context(), r.Who.Caller, store.UsageQuery{Days: p.Days,
		By: store.UsageGroup(by.Value), Measure: store.UsageMeasure(measure.Value), Parts: partsOnPage})
	if err != nil {
		return err
	}
	p.fill(r, report)
	return d.Page(w, r, "usage.html", r.T("Usage"), p)
}

// fill puts a report into the page.
func (p *usagePage) fill(r *frame.Request, report store.UsageReport) {
	measure, by := store.UsageMeasure(p.Measure.Value), store.UsageGroup(p.By.Value)
	p.Total, p.Rest = usageSum{report.Total}, int64(report.Rest)
	largest := 0.0
	for i, part := range report.Parts {
		row := newUsagePart(r, part, i, by)
		amount := show.Measured(part.Total, measure)
		largest = max(largest, amount)
		if largest > 0 {
			row.Share = int(100 * amount / largest)
		}
		p.Parts = append(p.Parts, row)
	}
	p.Legend = slices.Clone(p.Parts[:min(len(p.Parts), show.PlotParts)])
	if len(report.Parts) > show.PlotParts || report.Rest > 0 {
		p.Legend = append(p.Legend, usagePart{Class: show.PartClass(show.PlotParts), Name: r.T("others")})
	}
	for i, day := range report.Days {
		p.ByDay = append(p.ByDay, usageDay{report.First.AddDate(0, 0, i).Format(time.DateOnly), usageSum{day}})
	}
	p.Plot = show.NewPlot(r.Lang, report, measure)
}

// choose returns a choice whose links change one field of the query and keep the others.
func choose(name, field string, options []frame.Option, set url.Values) choice {
	c := choice{Name: name}
	for _, o := range options {
		q := maps.Clone(set)
		q.Set(field, o.Value)
		c.Links = append(c.Links, choiceLink{o.Label, "/usage?" + q.Encode(), set.Get(field) == o.Value})
	}
	return c
}

// newUsagePart returns the line of a part. rank is its place among the parts, from 0.
func newUsagePart(r *frame.Request, part store.UsagePart, rank int, by store.UsageGroup) usagePart {
	p := usagePart{Total: usageSum{part.Total}, Class: show.PartClass(rank), Name: show.Brief(part.Title)}
	switch {
	case by == store.ByTrigger:
		p.Name = show.Trigger(r.Lang, people.Trigger(part.ID))
	case by == store.ByKey && part.ID == "":
		p.Name = r.T("no key (dashboard, mail, schedules)")
	case by == store.ByWorker && part.ID == "":
		p.Name = r.T("no worker (drafts of instructions)")
	case part.Title == "":
		p.Name = part.ID
	case by == store.ByWorker:
		p.Path = "/workers/" + part.ID
	}
	return p
}

// downloadUsage sends the usage of each day, the oldest first.
func (d *Pages) downloadUsage(w http.ResponseWriter, r *frame.Request) error {
	last := d.Now().UTC()
	day := last.AddDate(0, 0, 1-rangeOf(r))
	nextDay := func() (rows [][]string, more bool, err error) {
		usage, err := d.Store.Effects.UsageOn(r.Context(), r.Who.Caller, day)
		for _, u := range usage {
			rows = append(rows, usageCells(u))
		}
		day = day.AddDate(0, 0, 1)
		return rows, !day.After(last), err
	}
	header := []string{"day", "workerId", "apiKeyId", "triggeredBy", "turns", "failures", "steps",
		"inputTokens", "outputTokens", "credits", "seconds"}
	return d.SendCSV(w, r, "usage.csv", header, nextDay)
}

// usageCells returns the row of one worker, key and trigger on one day.
func usageCells(u store.UsageRow) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return []string{u.Day.Format(time.DateOnly), frame.CSVCell(u.WorkerID), frame.CSVCell(u.KeyID), string(u.TriggeredBy),
		number(u.Turns), number(u.Failures), number(u.Steps), number(u.InputTokens), number(u.OutputTokens),
		decimal(db.Credits(u.Cost)), decimal(u.Duration.Seconds())}
}
