package handlers_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/cron"
)

// scheduled creates a schedule of the worker and returns the answer.
func (s *site) scheduled(t testing.TB, worker, when string) response {
	t.Helper()
	return s.must(t, "POST", "/api/workers/"+worker+"/schedules", `{"input":"Tick","when":`+when+`}`)
}

func TestCreateSchedule(t *testing.T) {
	is, s := onServer(t, idle)
	worker := s.newWorker(t, fields{})
	for name, tt := range map[string]struct {
		when  string
		field string // of its type
		value any
		runs  int // in nextRuns
	}{
		"scheduled":        {`{"type":"scheduled","date":"2099-12-01T09:00:00.5+01:00"}`, "nextRunAt", "2099-12-01T08:00:00.500Z", 1},
		"lower case":       {`{"type":"scheduled","date":"2099-12-01t08:00:00z"}`, "nextRunAt", "2099-12-01T08:00:00.000Z", 1},
		"delayed":          {`{"type":"delayed","delayInSeconds":86400.5}`, "delayInSeconds", 86400.5, 1},
		"cron":             {`{"type":"cron","cron":"0 0 29 2 7"}`, "cron", "0 0 29 2 7", 5},
		"cron with a zone": {`{"type":"cron","cron":"CRON_TZ=Europe/Oslo @daily"}`, "cron", "CRON_TZ=Europe/Oslo @daily", 5},
		"interval":         {`{"type":"interval","intervalSeconds":1e3,"more":1}`, "intervalSeconds", 1e3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.scheduled(t, worker, tt.when)
			is.Equal(r.at(tt.field), tt.value)
			is.Equal(r.text("budget"), "standard")
			is.Equal(r.text("input"), "Tick")
			is.Equal(r.at("paused"), false)
			is.Equal(r.at("lastRunAt"), nil)
			is.Equal(r.size("nextRuns"), tt.runs)
			is.Equal(r.text("nextRuns.0"), r.text("nextRunAt"))
			again := s.must(t, "GET", "/api/workers/"+worker+"/schedules/"+r.text("id"), "")
			is.True(sameJSON(again.value, r.value))
		})
	}
	list := s.must(t, "GET", "/api/workers/"+worker+"/schedules", "")
	is.Equal(list.size("schedules"), 6)
	is.Equal(list.text("workerId"), worker)
	is.Equal(list.text("timezone"), "UTC")
}

func TestCreateScheduleRefused(t *testing.T) {
	is, s := onServer(t, idle)
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/schedules"
	for name, tt := range map[string]struct{ body, want string }{
		"nothing":             {`{}`, "400 invalid_request input when"},
		"all wrong":           {`{"input":1,"when":1,"budget":1}`, "400 invalid_request input budget when"},
		"when null":           {`{"input":"x","when":null}`, "400 invalid_request when"},
		"when an array":       {`{"input":"x","when":[]}`, "400 invalid_request when"},
		"when empty":          {`{"input":"x","when":{}}`, "400 invalid_request when.type"},
		"type unknown":        {`{"input":"x","when":{"type":"daily"}}`, "400 invalid_request when.type"},
		"type no text":        {`{"input":"x","when":{"type":5}}`, "400 invalid_request when.type"},
		"no date":             {`{"input":"x","when":{"type":"scheduled"}}`, "400 invalid_request when.date"},
		"date without offset": {`{"input":"x","when":{"type":"scheduled","date":"2099-01-01T00:00:00"}}`, "400 invalid_request when.date"},
		"date without time":   {`{"input":"x","when":{"type":"scheduled","date":"2099-01-01"}}`, "400 invalid_request when.date"},
		"no such date":        {`{"input":"x","when":{"type":"scheduled","date":"2099-02-30T00:00:00Z"}}`, "400 invalid_request when.date"},
		"date has passed":     {`{"input":"x","when":{"type":"scheduled","date":"2020-01-01T00:00:00Z"}}`, "400 invalid_request when.date"},
		"date a number":       {`{"input":"x","when":{"type":"scheduled","date":4102444800}}`, "400 invalid_request when.date"},
		"no delay":            {`{"input":"x","when":{"type":"delayed"}}`, "400 invalid_request when.delayInSeconds"},
		"delay a text":        {`{"input":"x","when":{"type":"delayed","delayInSeconds":"5"}}`, "400 invalid_request when.delayInSeconds"},
		"delay negative":      {`{"input":"x","when":{"type":"delayed","delayInSeconds":-1}}`, "400 invalid_request when.delayInSeconds"},
		"delay too long":      {`{"input":"x","when":{"type":"delayed","delayInSeconds":1e300}}`, "400 invalid_request when.delayInSeconds"},
		"delay no float":      {`{"input":"x","when":{"type":"delayed","delayInSeconds":1e999}}`, "400 invalid_request when.delayInSeconds"},
		"interval below one":  {`{"input":"x","when":{"type":"interval","intervalSeconds":0.5}}`, "400 invalid_request when.intervalSeconds"},
		"interval null":       {`{"input":"x","when":{"type":"interval","intervalSeconds":null}}`, "400 invalid_request when.intervalSeconds"},
		"no cron":             {`{"input":"x","when":{"type":"cron"}}`, "400 invalid_request when.cron"},
		"cron empty":          {`{"input":"x","when":{"type":"cron","cron":""}}`, "400 invalid_request when.cron"},
		"cron wrong":          {`{"input":"x","when":{"type":"cron","cron":"0 0 L * *"}}`, "400 invalid_request when.cron"},
		"cron never":          {`{"input":"x","when":{"type":"cron","cron":"0 0 30 2 *"}}`, "400 invalid_request when.cron"},
		"cron every":          {`{"input":"x","when":{"type":"cron","cron":"@every 1s"}}`, "400 invalid_request when.cron"},
		"cron a bomb":         {`{"input":"x","when":{"type":"cron","cron":"CRON_TZ="}}`, "400 invalid_request when.cron"},
		"cron too long":       {`{"input":"x","when":{"type":"cron","cron":"` + strings.Repeat("1,", 100) + `1 * * * *"}}`, "400 invalid_request when.cron"},
		"budget unknown":      {`{"input":"x","budget":"none","when":{"type":"delayed","delayInSeconds":1}}`, "400 invalid_request budget"},
		"no object":           {`[]`, "400 invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(s.do(t, "POST", path, tt.body).refused(), tt.want)
		})
	}
	is.Equal(s.must(t, "GET", path, "").size("schedules"), 0)
	is.Equal(s.do(t, "POST", "/api/workers/wrk_none/schedules", `{"input":"x","when":{"type":"delayed","delayInSeconds":1}}`).refused(), "404 not_found")
	is.Equal(s.do(t, "PUT", path, `{}`).status, http.StatusMethodNotAllowed)
}

func TestScheduleLife(t *testing.T) {
	var changed atomic.Int64
	is, s := onServer(t, func(set *settings) { set.API.ScheduleChanged = func() { changed.Add(1) } })
	worker := s.newWorker(t, fields{})
	made := s.scheduled(t, worker, `{"type":"interval","intervalSeconds":60}`)
	path := "/api/workers/" + worker + "/schedules/" + made.text("id")

	run := s.must(t, "POST", path+"/run", "", "Prefer: wait=20")
	is.Equal(run.text("metadata.triggeredBy"), "schedule")
	is.Equal(run.text("status"), "completed")
	is.Equal(s.must(t, "GET", "/api/tasks/"+run.text("metadata.taskId"), "").text("task.triggeredBy"), "schedule")
	is.Equal(s.must(t, "GET", path, "").text("nextRunAt"), made.text("nextRunAt"))
	is.Equal(s.do(t, "POST", path+"/run", "", "Prefer: respond-async").status, http.StatusAccepted)

	paused := s.must(t, "PATCH", path, `{"paused":true}`)
	is.Equal(paused.at("paused"), true)
	is.Equal(paused.size("nextRuns"), 0)
	is.Equal(s.must(t, "GET", "/api/workers/"+worker+"/schedules", "").at("schedules.0.paused"), true)
	changedTo := s.must(t, "PATCH", path, `{"paused":false,"input":"Tock","budget":"high","when":{"type":"cron","cron":"@hourly"}}`)
	is.Equal(changedTo.text("type"), "cron")
	is.Equal(changedTo.text("input"), "Tock")
	is.Equal(changedTo.text("budget"), "high")
	is.Equal(changedTo.at("intervalSeconds"), nil)
	is.Equal(changedTo.size("nextRuns"), 5)
	is.Equal(changed.Load(), int64(3))
	is.Equal(s.do(t, "PATCH", path, `{"paused":1,"input":null,"when":{"type":"cron","cron":"x"},"budget":"x"}`).refused(),
		"400 invalid_request input budget paused when.cron")

	is.Equal(s.must(t, "DELETE", path, "").at("cancelled"), true)
	for _, method := range []string{"GET", "DELETE", "PATCH"} {
		body := ""
		if method == "PATCH" {
			body = `{}`
		}
		is.Equal(s.do(t, method, path, body).refused(), "404 not_found")
	}
	is.Equal(s.do(t, "POST", path+"/run", "").refused(), "404 not_found")
	is.Equal(s.must(t, "GET", "/api/workers/"+worker+"/schedules", "").size("schedules"), 0)
}

func TestScheduleTwice(t *testing.T) {
	is, s := onServer(t, idle)
	worker := s.newWorker(t, fields{})
	path := "/api/workers/" + worker + "/schedules"
	body := `{"input":"x","when":{"type":"interval","intervalSeconds":60}}`
	first := s.must(t, "POST", path, body, "Idempotency-Key: a")
	again := s.must(t, "POST", path, body, "Idempotency-Key: a")
	is.Equal(again.text("id"), first.text("id"))
	is.Equal(again.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.do(t, "POST", path, strings.Replace(body, "60", "61", 1), "Idempotency-Key: a").status, http.StatusUnprocessableEntity)
	third := s.must(t, "POST", path, body)
	is.True(third.text("id") != first.text("id"))                                                      // another key made the same schedule
	is.Equal(s.must(t, "POST", path, body, "X-Stainless-Retry-Count: 1").text("id"), third.text("id")) // joins the newest
	run := s.must(t, "POST", path+"/"+first.text("id")+"/run", "", "Idempotency-Key: r")
	is.Equal(s.must(t, "POST", path+"/"+first.text("id")+"/run", "", "Idempotency-Key: r").text("metadata.taskId"), run.text("metadata.taskId"))
	is.Equal(s.must(t, "GET", path, "").size("schedules"), 2)
}

// TestScheduleTwiceAfterItsEnd repeats the creation of schedules that have ended. The answers have the
// time of the first answers.
func TestScheduleTwiceAfterItsEnd(t *testing.T) {
	_, s := onServer(t, idle)
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/schedules"
	for name, when := range map[string]string{
		"scheduled": `{"type":"scheduled","date":"2099-12-01T09:00:00Z"}`,
		"delayed":   `{"type":"delayed","delayInSeconds":600}`,
		"cron":      `{"type":"cron","cron":"0 0 29 2 *"}`,
		"interval":  `{"type":"interval","intervalSeconds":60}`,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			body := `{"input":"x","when":` + when + `}`
			first := s.must(t, "POST", path, body, "Idempotency-Key: "+name)
			s.must(t, "DELETE", path+"/"+first.text("id"), "")
			again := s.must(t, "POST", path, body, "Idempotency-Key: "+name)
			is.Equal(again.text("id"), first.text("id"))
			is.Equal(again.text("nextRunAt"), first.text("nextRunAt"))
			is.Equal(again.size("nextRuns"), 0)
		})
	}
}

func TestScheduleOfAnotherWorker(t *testing.T) {
	is, s := onServer(t, idle)
	id := s.scheduled(t, s.newWorker(t, fields{}), `{"type":"interval","intervalSeconds":60}`).text("id")
	public := s.newWorker(t, fields{})
	is.Equal(s.do(t, "GET", "/api/workers/"+public+"/schedules/"+id, "").refused(), "404 not_found") // of another worker
	s.must(t, "DELETE", "/api/workers/"+public, "")
	is.Equal(s.do(t, "GET", "/api/workers/"+public+"/schedules", "").refused(), "404 not_found")
}

// TestScheduleListInAZone checks the time zone of cron expressions in the list.
func TestScheduleListInAZone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	zone, err := cron.LoadZone("Asia/Kathmandu")
	is.NoErr(err)
	s := newServer(t, idle, func(set *settings) { set.Store.Timezone = zone })
	worker := s.newWorker(t, fields{})
	r := s.scheduled(t, worker, `{"type":"cron","cron":"0 9 * * *"}`)
	is.Equal(s.must(t, "GET", "/api/workers/"+worker+"/schedules", "").text("timezone"), "Asia/Kathmandu")
	at, err := time.Parse(time.RFC3339, r.text("nextRunAt"))
	is.NoErr(err)
	is.Equal(at.UTC().Format("15:04"), "03:15")
}
