package admin

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/store/db"
)

const (
	// doctorTime bounds a run of the checks, which limit their own parts to less.
	doctorTime = time.Minute

	// doctorWait is how long the button waits for the checks. Most take a second.
	doctorWait = 8 * time.Second
)

// A doctor runs the checks of the server on demand. It makes one run at a time, and keeps the
// results of the last run in memory.
type doctor struct {
	examine func(ctx context.Context) []handlers.Checks // nil: the server has no checks
	now     func() time.Time
	log     *slog.Logger

	mu    sync.Mutex    // guards the fields below
	ended chan struct{} // closed when the current run ends; nil without one
	found []handlers.Checks
	at    time.Time // when the last run ended
}

// run starts a run, or joins the current one. It reports whether that run has ended within wait.
func (x *doctor) run(ctx context.Context, wait time.Duration) bool {
	ended := x.begin(ctx)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin returns a channel that is closed when the current run ends.
func (x *doctor) begin(ctx context.Context) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended == nil {
		x.ended = make(chan struct{})
		// The run continues if nobody waits for it any more: the page shows its results later.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doctorTime)
		go func() {
			defer cancel()
			var found []handlers.Checks
			defer func() { x.end(found) }() // deferred: after a panic, too, the run must end
			found = x.look(ctx)
		}()
	}
	return x.ended
}

// end stores the results of a run.
func (x *doctor) end(found []handlers.Checks) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found, x.at = found, x.now()
	close(x.ended)
	x.ended = nil
}

// look runs the checks. A panic in them fails the run and must not end the server.
func (x *doctor) look(ctx context.Context) (found []handlers.Checks) {
	defer func() {
		if p := recover(); p != nil {
			x.log.Error("doctor panicked", "panic", p, "stack", string(debug.Stack()))
			found = []handlers.Checks{{Title: "Doctor", List: []handlers.Check{handlers.BrokenCheck()}}}
		}
	}()
	return x.examine(ctx)
}

// consultDoctor runs the checks for the button of the page.
func (d *Pages) consultDoctor(r *frame.Request) (string, error) {
	if d.cfg.Examine == nil {
		return "", db.Errorf(db.Conflict, "this server has no checks")
	}
	message := "checking"
	if d.doctor.run(r.Context(), doctorWait) {
		message = "checked"
	}
	return frame.Done("/settings/system", message) + "#doctor", nil
}

// A diagnosis is the state of the checks for the page.
type diagnosis struct {
	Offered bool // the server has checks
	Running bool
	At      time.Time // of the end of the last run; zero without one
	Rows    []diagnosisRow
	Counts  map[string]int // of the checks, by status
}

// A diagnosisRow is a check. Part is "" in all rows of a part but its first.
type diagnosisRow struct {
	Part string
	handlers.Check
}

// state returns the results of the last run, in the language of a request.
func (x *doctor) state(r *frame.Request) diagnosis {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := diagnosis{Offered: x.examine != nil, Running: x.ended != nil, At: x.at, Counts: map[string]int{}}
	for _, checks := range x.found {
		title := cmp.Or(r.Lang.Label("check", checks.Title), checks.Title)
		for _, c := range checks.List {
			s.Rows = append(s.Rows, diagnosisRow{title, c})
			s.Counts[string(c.Status)]++
			title = ""
		}
	}
	return s
}
