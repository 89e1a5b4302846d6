package runner_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A tapped is a wire that stores the bodies of its requests.
type tapped struct {
	*wire
	mu     sync.Mutex
	bodies [][]byte
}

func newTapped(t *testing.T, think func(asked) said) *tapped {
	t.Helper()
	p := &tapped{wire: &wire{think: think}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			raw, _ := io.ReadAll(r.Body)
			p.mu.Lock()
			p.bodies = append(p.bodies, raw)
			p.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(raw))
		}
		p.wire.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// A chatBody is a request of chat completions.
type chatBody struct {
	Messages []json.RawMessage
	Tools    json.RawMessage
}

func (p *tapped) body(t *testing.T, n int) (b chatBody) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	is.New(t).NoErr(json.Unmarshal(p.bodies[n], &b))
	return b
}

// text returns the newest message of the n-th request.
func (p *tapped) text(t *testing.T, n int) string {
	t.Helper()
	b := p.body(t, n)
	var m struct{ Content json.RawMessage }
	is.New(t).NoErr(json.Unmarshal(b.Messages[len(b.Messages)-1], &m))
	return contentText(m.Content)
}

// TestEnvelopeOnTheWire checks the request to the provider for an instruction from each channel.
func TestEnvelopeOnTheWire(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newTapped(t, func(asked) said { return said{text: "Done.", in: 10, out: 2} })
	now := func() time.Time { return time.Date(2026, 11, 22, 22, 30, 0, 0, time.UTC) }
	st := storetest.Open(t, store.Options{Now: now, Timezone: time.FixedZone("Asia/Tokyo", 9*3600)})
	f := fixtureOn(t, st, withModel(p.openModel(t, "openai:m")))
	who, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	f.owner = who.Caller
	f.worker = f.newWorker(workers.NewWorker{Title: "Scribe"})
	f.start()
	n := 0
	hears := func(turn store.Turn, want ...string) {
		t.Helper()
		f.wait(turn)
		text := p.text(t, n)
		n++
		for _, line := range append(want, "Date: Monday, 2026-11-23, 07:30, Asia/Tokyo (UTC+09:00)", `Asked by: "ann", "ann@acme.test", a member of the organization`) {
			if !strings.Contains("\n"+text+"\n", "\n"+line+"\n") {
				t.Errorf("no line %q in:\n%s", line, text)
			}
		}
	}
	ask := store.NewTurn{WorkerID: f.worker.ID, Input: "Go", Budget: store.BudgetLow}
	ask.Caller = f.owner
	ask.Caller.Trigger = people.TriggerAPI
	hears(f.acceptTurn(ask), "Channel: a program, over the API", "Budget: low, at most 10 credits, 10 steps, 5 minutes of work", "Workspace: empty")
	ask.Caller.Trigger, ask.Budget = people.TriggerUI, store.BudgetUnlimited
	hears(f.acceptTurn(ask), "Channel: web page of this service", "Budget: unlimited, at most 1 day of work")

	a, err := f.Accept(t.Context(), runner.Instruction{NewTurn: ask, Files: []store.File{f.kept("menu.txt", "Soup")}})
	is.NoErr(err)
	hears(a.Turn, `Attached: "menu.txt" (text/plain, 4 bytes)`, "Workspace: nothing but the attachments")

	sch, _, err := st.CreateSchedule(t.Context(), f.owner, store.NewSchedule{WorkerID: f.worker.ID, Input: "Look", Budget: store.BudgetLow,
		When: store.When{Type: store.CronType, Cron: "0 9 * * 1"}}, db.IdempotencyKey{})
	is.NoErr(err)
	ran, err := f.RunSchedule(t.Context(), f.owner, f.worker.ID, sch.ID, db.IdempotencyKey{}, "req")
	is.NoErr(err)
	hears(ran.Turn, `Channel: schedule, every Monday at 09:00 (cron "0 9 * * 1"); nobody is waiting for the answer now`, `Workspace: "menu.txt"`)

	_, _, err = st.CreateSchedule(t.Context(), f.owner, store.NewSchedule{WorkerID: f.worker.ID, Input: "Now", Budget: store.BudgetLow,
		When: store.When{Type: store.Delayed, DelaySeconds: 0}}, db.IdempotencyKey{})
	is.NoErr(err)
	due, err := st.DueSchedules(t.Context(), 10, 0)
	is.NoErr(err)
	fired, err := st.FireSchedule(t.Context(), due[0])
	is.NoErr(err)
	f.Wake()
	turn, err := st.Turn(t.Context(), fired.TurnID)
	is.NoErr(err)
	hears(turn, "Channel: schedule, once; nobody is waiting for the answer now", `Workspace: "menu.txt"`)
}

// TestEnvelopeKeepsThePrefix checks that all requests of a task begin with the same bytes: in one
// turn, in the next turn, and after a restart on another day with more files.
func TestEnvelopeKeepsThePrefix(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	hangs := make(chan struct{}, 1)
	p := newTapped(t, func(a asked) said {
		switch a.number {
		case 0, 2:
			return said{calls: []saidCall{{"call_1", "write_file", `{"path":"a.txt","content":"x"}`}}, in: 10, out: 2}
		case 3:
			hangs <- struct{}{}
			return said{text: "D", hangs: true}
		}
		return said{text: "Done.", in: 10, out: 2}
	})
	at := time.Date(2026, 11, 22, 22, 30, 0, 0, time.UTC)
	f := newFixture(t, withModel(p.openModel(t, "openai:m")), withClock(func() time.Time { return at }))
	first := f.wait(f.accept("Write."))
	second := f.accept("Again.", first.TaskID)
	<-hangs
	f.stop()
	other := f.successor(withModel(p.openModel(t, "openai:m")), withClock(func() time.Time { return at.AddDate(0, 0, 3) }))
	is.Equal(other.wait(second).OutputText, "Done.")

	before := p.body(t, 0)
	for n := 1; n < 5; n++ {
		b := p.body(t, n)
		is.Equal(string(b.Tools), string(before.Tools)) // the tools
		ordertest.AtLeast(is, len(b.Messages), len(before.Messages))
		for i, m := range before.Messages {
			is.Equal(string(b.Messages[i]), string(m)) // each message that was sent before
		}
		before = b
	}
	is.Equal(len(p.body(t, 3).Messages), len(p.body(t, 4).Messages)) // the repeated call
	is.Equal(strings.Count(string(p.bodies[4]), "Asked by: "), 2)    // both turns keep their envelopes
}
