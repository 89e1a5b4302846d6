package handlers_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"journeyman/store/db"
	"journeyman/store/gate"
)

// withDisk replaces the disk with one that is full below 1,000 free bytes.
func withDisk(free *atomic.Int64) option {
	return func(set *settings) {
		set.Store.DiskReserve = gate.DiskLimit{Bytes: 1000}
		set.Store.Statfs = func(string) (gate.DiskSpace, error) {
			return gate.DiskSpace{Free: free.Load(), Total: 100_000}, nil
		}
	}
}

// TestReadinessOfTheService reads the readiness while parts start, in maintenance, and during a
// stop. Of several reasons, the answer names the one that lasts longest.
func TestReadinessOfTheService(t *testing.T) {
	var starting, stopping atomic.Bool
	is, s := onServer(t, func(set *settings) { set.API.Starting, set.API.Stopping = starting.Load, stopping.Load })
	for _, step := range []struct {
		change func()
		state  string
	}{
		{func() {}, ""},
		{func() { starting.Store(true) }, "starting"},
		{func() { s.store.Gate.BeginMaintenance() }, "maintenance"},
		{func() { stopping.Store(true) }, "stopping"},
		{func() { stopping.Store(false); starting.Store(false) }, "maintenance"},
		{func() { s.store.Gate.EndMaintenance() }, ""},
	} {
		step.change()
		ready := s.do(t, "GET", "/readyz", "")
		is.Equal(ready.text("checks.server"), step.state)
		is.Equal(ready.status, map[bool]int{true: 200, false: 503}[step.state == ""])
		is.Equal(ready.text("reason") != "", step.state == "maintenance") // the reason is text for people
		is.Equal(s.do(t, "GET", "/healthz", "").status, 200)
	}
}

// TestFullDisk fills the disk. New work is refused with Retry-After, reads go on, and readiness and
// metrics report the cause.
func TestFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(5000)
	is, s := onServer(t, withDisk(&free))
	look := func() {
		t.Helper()
		is.NoErr(s.store.WatchDisk(t.Context()))
	}
	look()
	task := s.must(t, "POST", "/api/tasks", `{"input":"Hello"}`)
	is.Equal(s.must(t, "GET", "/readyz", "").text("checks.disk"), "ok")
	free.Store(999)
	look()

	form := "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nx\r\n--b\r\n" +
		"Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nx\r\n--b--\r\n"
	for _, r := range []response{
		s.do(t, "POST", "/api/tasks", `{"input":"Hello"}`),
		s.do(t, "POST", "/api/tasks", `{"input":"More","taskId":"`+task.text("metadata.taskId")+`"}`),
		s.do(t, "POST", "/api/workers", `{"title":"W"}`),
		s.do(t, "POST", "/api/tasks", form, "Content-Type: multipart/form-data; boundary=b"),
	} {
		is.Equal(r.status, 503)
		is.Equal(r.text("code"), "storage")
		is.Equal(r.header.Get("Retry-After"), "30")
		is.Equal(r.header.Get("x-should-retry"), "")                 // clients may try again
		is.True(strings.Contains(r.text("message"), "disk is full")) // the refusal names the cause
	}
	s.must(t, "GET", "/api/workers", "")
	s.must(t, "GET", "/api/tasks/"+task.text("metadata.taskId"), "")
	ready := s.do(t, "GET", "/readyz", "")
	is.Equal(ready.status, 503)
	is.Equal(ready.text("checks.disk"), "full")
	is.Equal(ready.text("checks.database"), "ok") // the database accepts the writes of running turns
	is.True(strings.Contains(ready.text("reason"), "disk is full"))
	figures := string(s.must(t, "GET", "/metrics", "").body)
	for _, line := range []string{"journeyman_disk_free_bytes 999\n", "journeyman_disk_level 2\n", "journeyman_store_read_only 0\n"} {
		is.True(strings.Contains(figures, line)) // a gauge reports the state of the disk
	}

	free.Store(5000)
	look()
	s.must(t, "POST", "/api/tasks", `{"input":"Hello"}`)
	s.must(t, "GET", "/readyz", "")

	open := s.store.Gate.ReadOnly(db.CodeStorage, "the server has started on a full disk")
	ready = s.do(t, "GET", "/readyz", "")
	is.Equal(ready.text("checks.disk"), "full")
	is.Equal(ready.text("reason"), "the server has started on a full disk")
	is.Equal(s.do(t, "POST", "/api/tasks", `{"input":"Hello"}`).text("code"), "storage")
	s.must(t, "GET", "/api/workers", "")
	open()
	s.must(t, "GET", "/readyz", "")
}
