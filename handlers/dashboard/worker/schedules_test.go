package worker_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// inBerlin starts a site whose schedules have that time zone.
func inBerlin(t *testing.T) (*dashboardtest.Site, *time.Location) {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	is.New(t).NoErr(err)
	return dashboardtest.NewOf(t, storetest.Open(t, store.Options{Timezone: zone})), zone
}

func TestScheduleIsMade(t *testing.T) {
	t.Parallel()
	s, zone := inBerlin(t)
	b := s.SignIn("ann@example.com")
	later := time.Now().In(zone).Add(48 * time.Hour).Truncate(time.Minute)
	for name, tt := range map[string]struct {
		form []string
		when store.When
		says []string
	}{
		"cron": {[]string{"when.type", "cron", "when.cron", " 0 9 * * 1-5 "}, store.When{Type: store.CronType,
			Cron: "0 9 * * 1-5"},
			[]string{"cron 0 9 * * 1-5", "09:00:00 CE"}},
		"cron of a zone": {[]string{"when.type", "cron", "when.cron", "CRON_TZ=Asia/Tokyo 0 9 * * *"},
			store.When{Type: store.CronType, Cron: "CRON_TZ=Asia/Tokyo 0 9 * * *"},
			[]string{"09:00:00 JST"}},
		"interval": {[]string{"when.type", "interval", "when.intervalSeconds", "1.5", "intervalUnit", "3600"},
			store.When{Type: store.Interval, IntervalSeconds: 5400},
			[]string{"every 90 minutes"}},
		"date": {[]string{"when.type", "scheduled", "when.date", later.Format("2006-01-02T15:04")},
			store.When{Type: store.Scheduled, Date: later.UTC()},
			[]string{"once, at " + later.Format("Mon 2 Jan 2006 15:04:05 MST")}},
		"delay": {[]string{"when.type", "delayed", "when.delayInSeconds", "1", "delayUnit", "86400"},
			store.When{Type: store.Delayed, DelaySeconds: 86400},
			[]string{"once, 1 day after creation"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := s.Worker(s.Owner, workers.NewWorker{})
			path := "/workers/" + w.ID + "/schedules"
			form := append([]string{"input", dashboardtest.Hostile + "\r\n", "budget", "low", "token", "t"}, tt.form...)
			for range 2 { // a double click
				is.Equal(b.Post(path, form...).Location(), path+"?done=schedule-made")
			}
			list, err := s.Store.Schedules(t.Context(), s.Owner.Caller, w.ID)
			is.NoErr(err)
			is.Equal(len(list), 1)
			is.Equal(list[0].When, tt.when)
			is.Equal(list[0].Budget, store.BudgetLow)
			is.Equal(list[0].Input, dashboardtest.Hostile+"\n")
			p := b.Get(path)
			is.True(p.Has(tt.says...) && p.Harmless())
			p.Shows("Times are in Europe/Berlin")

			// The form shows the schedule, and saving it unchanged changes no time.
			own := p.Schedules()[0]
			p = b.Get(own)
			is.True(p.Has(fmt.Sprintf(`value="%s" checked`, tt.when.Type)) && p.Harmless())
			again := append([]string{"input", "else", "budget", "high", "when.type", string(tt.when.Type)}, shownFields(p)...)
			is.Equal(b.Post(own, again...).Location(), path+"?done=schedule-changed")
			now, err := s.Store.Schedule(t.Context(), s.Owner.Caller, w.ID, list[0].ID)
			is.NoErr(err)
			is.Equal(now.NextRunAt, list[0].NextRunAt)
			is.Equal(now.When, tt.when)
			is.Equal(now.Input+string(now.Budget), "elsehigh")
		})
	}
}

var shownField = regexp.MustCompile(`name="(when\.[a-zA-Z]+)" type="[a-z-]+"[^>]* value="([^"]*)"|<select id="f-([a-zA-Z]+Unit)"|<option value="([0-9]+)" selected`)

// shownFields returns the fields of a schedule's time that its form shows.
func shownFields(p dashboardtest.Page) (fields []string) {
	unit := ""
	for _, m := range shownField.FindAllStringSubmatch(p.Body, -1) {
		switch {
		case m[1] != "":
			fields = append(fields, m[1], strings.ReplaceAll(m[2], "&#43;", "+"))
		case m[3] != "":
			unit = m[3]
		default:
			fields = append(fields, unit, m[4])
		}
	}
	return fields
}

func TestScheduleRefused(t *testing.T) {
	t.Parallel()
	s, _ := inBerlin(t)
	b := s.SignIn("ann@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{})
	made := s.Schedule(w, "x", store.When{Type: store.Interval, IntervalSeconds: 3600})
	for name, tt := range map[string]struct {
		form []string
		id   string // of the field with the fault
	}{
		"no kind": {[]string{"when.type", ""}, ""},
		"cron":    {[]string{"when.type", "cron", "when.cron", "61 * * * *"}, "e-when.cron"},
		"never":   {[]string{"when.type", "cron", "when.cron", "0 0 30 2 *"}, "e-when.cron"},
		"no number": {[]string{"when.type", "interval", "when.intervalSeconds", "soon", "intervalUnit", "60"},
			"e-when.intervalSeconds"},
		"not a number": {[]string{"when.type", "interval", "when.intervalSeconds", "NaN", "intervalUnit", "60"},
			"e-when.intervalSeconds"},
		"too short": {[]string{"when.type", "interval", "when.intervalSeconds", "0", "intervalUnit", "60"},
			"e-when.intervalSeconds"},
		"endless": {[]string{"when.type", "delayed", "when.delayInSeconds", "1e300", "delayUnit", "86400"},
			"e-when.delayInSeconds"},
		"no unit": {[]string{"when.type", "delayed", "when.delayInSeconds", "1", "delayUnit", "x"},
			"e-when.delayInSeconds"},
		"past":           {[]string{"when.type", "scheduled", "when.date", "2001-01-01T00:00"}, "e-when.date"},
		"no date":        {[]string{"when.type", "scheduled", "when.date", dashboardtest.Hostile}, "e-when.date"},
		"no instruction": {[]string{"when.type", "cron", "when.cron", "* * * * *", "input", " "}, "e-input"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			form := append(tt.form, "input", dashboardtest.Hostile, "budget", "low")
			for _, path := range []string{"/workers/" + w.ID + "/schedules", "/workers/" + w.ID + "/schedules/" + made.ID} {
				p := b.Post(path, form...)
				is.Equal(p.Status, http.StatusUnprocessableEntity)
				is.True(p.Harmless())
				is.True(tt.id == "" || p.Has(`id="`+tt.id+`"`))
				p.Shows(`class="error"`)
			}
		})
	}
	list, err := s.Store.Schedules(t.Context(), s.Owner.Caller, w.ID)
	if err != nil || len(list) != 1 || list[0].Input != "x" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestScheduleButtons(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := inBerlin(t)
	b := s.SignIn("ann@example.com")
	w := s.Worker(s.Owner, workers.NewWorker{})
	path := "/workers/" + w.ID + "/schedules"
	b.Get(path).Shows("There are no schedules yet", "curl "+s.URL+"/api/workers/"+w.ID+"/schedules")
	b.Post(path, "input", dashboardtest.Scripted("say done"), "budget", "low", "when.type", "interval",
		"when.intervalSeconds", "1", "intervalUnit", "3600")
	own := b.Get(path).Schedules()[0]

	is.Equal(b.Post(own+"/pause").Location(), path+"?done=schedule-paused")
	b.Get(path).Shows("paused</span>", "none while it is paused", own+"/resume")
	is.Equal(b.Post(own+"/resume").Location(), path+"?done=schedule-resumed")
	b.Get(path).Shows(own + "/pause")

	first := b.Post(own+"/run", "token", "t").Location()
	is.True(strings.HasPrefix(first, "/tasks/"))
	is.Equal(b.Post(own+"/run", "token", "t").Location(), first)
	turn := s.Ended(strings.TrimPrefix(first, "/tasks/"))
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.TriggeredBy, people.TriggerSchedule)

	is.Equal(b.Post(own+"/cancel").Location(), path+"?done=schedule-cancelled")
	b.Get(path).Shows("There are no schedules yet")
	is.Equal(b.Get(own).Status, http.StatusNotFound)
}

func TestSchedulePages(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{})
	for i := range 45 {
		s.Schedule(w, strings.Repeat("long ", 1000), store.When{Type: store.Interval, IntervalSeconds: float64(3600 + i)})
	}
	path := "/workers/" + w.ID + "/schedules"
	p := b.Get(path)
	for _, want := range []int{20, 20, 5} {
		is.Equal(len(p.Schedules()), want)
		p.SmallerThan(50 << 10)
		if want == 20 {
			p = b.Get(dashboardtest.Href(p, "Next page"))
		}
	}
	is.True(p.Has("Previous page") && !p.Has("Next page"))
	for _, page := range []string{"99", "-1", "x", "9223372036854775808"} {
		is.Equal(b.Get(path+"?page="+page).Status, http.StatusOK)
	}
}

// TestPreviewRuns requests the next runs of rules that a user types.
func TestPreviewRuns(t *testing.T) {
	_, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Clerk"})
	for name, tt := range map[string]struct {
		query  string
		status int
		lines  int
		says   string
	}{
		"cron":       {"when.type=cron&when.cron=0+9+*+*+1-5", http.StatusOK, 5, "09:00:00 UTC"},
		"zone":       {"when.type=cron&when.cron=CRON_TZ%3DAsia/Tokyo+0+9+*+*+*", http.StatusOK, 5, "09:00:00 JST"},
		"interval":   {"when.type=interval&when.intervalSeconds=2&intervalUnit=3600", http.StatusOK, 5, ":"},
		"once":       {"when.type=scheduled&when.date=2090-01-31T09:00", http.StatusOK, 1, "Tue 31 Jan 2090 09:00:00 UTC"},
		"wrong cron": {"when.type=cron&when.cron=x", http.StatusUnprocessableEntity, 1, ""},
		"no number": {"when.type=delayed&when.delayInSeconds=x&delayUnit=1", http.StatusUnprocessableEntity, 1,
			"must be a number"},
		"past":    {"when.type=scheduled&when.date=2001-01-31T09:00", http.StatusUnprocessableEntity, 1, "future"},
		"nothing": {"", http.StatusUnprocessableEntity, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := b.Get("/workers/" + w.ID + "/next-runs?" + tt.query)
			is.Equal(p.Status, tt.status)
			is.Equal(len(strings.Split(strings.TrimSpace(p.Body), "\n")), tt.lines)
			p.Shows(tt.says) // the times, or the fault
		})
	}
}
