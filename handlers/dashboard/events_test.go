package dashboard_test

import (
	"testing"
	"time"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestEventsTellKinds checks that a page gets the kinds of records that changed since it was read,
// but none of another organization.
func TestEventsTellKinds(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	ann, rita := s.SignIn("ann@example.com"), s.Stranger("rita@example.com")
	old := dashboardtest.EventsAddress.FindStringSubmatch(ann.Get("/tasks").Body)[1]
	theirs := rita.Events("/workers")
	ours := ann.Events("/workers")
	wrk := s.Worker(s.Owner, workers.NewWorker{Title: "Reader"})
	is.Equal(ours.Next(), `{"changed":["workers"]}`)
	is.Equal(ann.Stream(old).Next(), `{"changed":["workers"]}`) // an older page gets the changes since then

	s.CarryOut(s.Owner, store.NewTurn{WorkerID: wrk.ID, Input: "Hello"})
	is.Equal(ours.Next(), `{"changed":["tasks"]}`)
	// With an unknown position, such as of an earlier process, a page reads everything.
	is.Equal(ann.Stream("/events?since=x.1").Next(), `{"changed":["tasks","approvals","outbox","workers"]}`)

	rita.Post("/workers", "title", "Spy")
	is.Equal(theirs.Next(), `{"changed":["workers"]}`) // without tasks, which only Acme had
}

// TestEventsAreFew checks that many changes are combined into few events.
func TestEventsAreFew(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	ours := s.SignIn("ann@example.com").Events("/workers")
	begun, made := time.Now(), make(chan struct{})
	go func() {
		defer close(made)
		for range 50 {
			s.Worker(s.Owner, workers.NewWorker{Title: "One of many"})
		}
	}()
	ours.Next()
	ours.Next()
	ordertest.AtLeast(is, time.Since(begun), 450*time.Millisecond) // the second event came too soon
	<-made
}

// TestEventsEndWithTheSession checks that a stream ends with its session, and with a switch to
// another organization.
func TestEventsEndWithTheSession(t *testing.T) {
	is, _, ann := dashboardtest.AsOwner(t)
	ours := ann.Events("/workers")
	ann.Post("/sign-out")
	is.Equal(ours.Next(), "") // the end
	is.Equal(ann.Get("/events").Location(), "/sign-in?next=%2Fevents")
}
