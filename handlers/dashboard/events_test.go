package dashboard_test

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// An eventReader reads the stream of changes of a browser.
type eventReader struct {
	*browser
	lines chan string // the data lines; closed at the end of the stream
	close func()
}

var eventsAddress = regexp.MustCompile(`data-events="([^"]*)"`)

// events opens the stream of a page.
func (b *browser) events(page string) *eventReader {
	b.t.Helper()
	m := eventsAddress.FindStringSubmatch(b.get(page).body)
	if m == nil {
		b.t.Fatalf("%s names no stream", page)
	}
	return b.stream(m[1])
}

func (b *browser) stream(address string) *eventReader {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	resp, err := b.client.Do(b.request(http.MethodGet, address, "", "Accept", "text/event-stream").WithContext(ctx))
	b.ok(err)
	if resp.StatusCode != http.StatusOK {
		b.t.Fatalf("the stream answers %d", resp.StatusCode)
	}
	e := &eventReader{b, make(chan string), cancel}
	go func() {
		defer close(e.lines)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
				select {
				case e.lines <- data:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return e
}

// next returns the next event, or "" at the end of the stream.
func (e *eventReader) next() string {
	e.t.Helper()
	select {
	case line := <-e.lines:
		return line
	case <-time.After(time.Minute):
		e.t.Fatal("no event came")
		return ""
	}
}

// TestEventsTellKinds checks that a page gets the kinds of records that changed since it was read,
// but none of another organization.
func TestEventsTellKinds(t *testing.T) {
	is, s := onSite(t)
	ann, rita := s.signIn("ann@example.com"), s.stranger("rita@example.com")
	old := eventsAddress.FindStringSubmatch(ann.get("/tasks").body)[1]
	theirs := rita.events("/workers")
	ours := ann.events("/workers")
	wrk := s.worker(s.owner, workers.NewWorker{Title: "Reader"})
	is.Equal(ours.next(), `{"changed":["workers"]}`)
	is.Equal(ann.stream(old).next(), `{"changed":["workers"]}`) // an older page gets the changes since then

	s.carryOut(s.owner, store.NewTurn{WorkerID: wrk.ID, Input: "Hello"})
	is.Equal(ours.next(), `{"changed":["tasks"]}`)
	// With an unknown position, such as of an earlier process, a page reads everything.
	is.Equal(ann.stream("/events?since=x.1").next(), `{"changed":["tasks","approvals","outbox","workers"]}`)

	rita.post("/workers", "title", "Spy")
	is.Equal(theirs.next(), `{"changed":["workers"]}`) // without tasks, which only Acme had
}

// TestEventsAreFew checks that many changes are combined into few events.
func TestEventsAreFew(t *testing.T) {
	is, s := onSite(t)
	ours := s.signIn("ann@example.com").events("/workers")
	begun, made := time.Now(), make(chan struct{})
	go func() {
		defer close(made)
		for range 50 {
			s.worker(s.owner, workers.NewWorker{Title: "One of many"})
		}
	}()
	ours.next()
	ours.next()
	ordertest.AtLeast(is, time.Since(begun), 450*time.Millisecond) // the second event came too soon
	<-made
}

// TestEventsEndWithTheSession checks that a stream ends with its session, and with a switch to
// another organization.
func TestEventsEndWithTheSession(t *testing.T) {
	is, _, ann := asOwner(t)
	ours := ann.events("/workers")
	ann.post("/sign-out")
	is.Equal(ours.next(), "") // the end
	is.Equal(ann.get("/events").location(), "/sign-in?next=%2Fevents")
}
