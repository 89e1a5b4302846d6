//go:build linux

package command_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// The tests in the faults_ files run the whole program with external faults: kills, full disks,
// damage, clocks, missing descriptors, slow clients and broken services.

// A world is a data folder with everything that outlives the program: the clients, the receivers of
// webhooks and mails, and the answers that clients have received.
type world struct {
	t    testing.TB
	name string // in the marks of its errands
	dir  string

	database string // the URL of its own database; "" for the one that belongs to dir

	how     invocation
	flags   []string
	wait    time.Duration // how long it waits for the end of all work
	slow    time.Duration // pause before each edit of a script, and at the end of each counting command
	random  *rand.Rand
	clients []*client
	hook    *receiver
	relay   *relayHost
	hours   []regular

	// Workers: a plain one, one with a webhook, one whose shell needs approvals.
	plain, hooked, careful string
	chat                   string // of a cluster: gets turns of all clients in one task; another one in each round

	mu       sync.Mutex
	now      *instance
	moved    chan struct{} // closed when another instance serves
	answered int           // since now serves
	progress chan struct{} // closed at the next answer; nil if nobody waits
	errands  []errand      // of this round
	checked  checkpoint
	sum      tally
}

// A tally counts the events of a world, so that an empty test fails.
type tally struct {
	rounds, errands, acknowledged, turns, givenUp, claims, resumed, mails, copies, deliveries, firings, backups int
}

// An errand is a piece of work that a client wants done once.
type errand interface {
	// try requests it. It returns a brokenError if the program was killed meanwhile.
	try(ctx context.Context, w *world, s *instance) error
	// repeatable reports whether it may be requested again after a brokenError.
	repeatable() bool
	// check compares it with the database after all work has ended.
	check(w *world, h *held)
}

// A brokenError is an error of the connection: the process was killed, or stops.
type brokenError struct{ error }

func isBroken(err error) bool { return errors.As(err, new(brokenError)) }

func broken(err error) error {
	if err != nil {
		return brokenError{err}
	}
	return nil
}

// A setting describes the difference of a world from the usual one. Its zero value is usable.
type setting struct {
	clients int // 6 unless set
	seed    uint64
	how     invocation
	dir     string // the data folder; a new one unless set
	relay   string // name of the relay's host; its address unless set
	flags   []string
}

// newWorld starts the program on a data folder, with clients that do not work yet.
func newWorld(t testing.TB, name string, set setting) *world {
	t.Helper()
	w := &world{t: t, name: name, dir: set.dir, how: set.how, wait: patience, slow: 2 * time.Millisecond,
		moved: make(chan struct{}),
		hook:  newReceiver(t), relay: newRelayHost(t), random: rand.New(rand.NewPCG(set.seed, 0))}
	if w.dir == "" {
		w.dir = t.TempDir()
	}
	host, port, err := net.SplitHostPort(w.relay.addr)
	is.New(t).NoErr(err)
	w.flags = append([]string{"--allow-private-network", "--unsafe-shell", "--mail-sender-limit", "0",
		"--mail-thread-limit", "0", "--smtp-relay", "smtp://" + net.JoinHostPort(cmp.Or(set.relay, host), port)},
		set.flags...)
	seed := set.seed
	for i := range cmp.Or(set.clients, 6) {
		w.clients = append(w.clients, &client{w: w, n: i, random: rand.New(rand.NewPCG(seed, uint64(i+1)))})
	}
	w.serve()
	w.begin()
	return w
}

// begin creates the workers and schedules of a new world.
func (w *world) begin() {
	t, s := w.t, w.now
	t.Helper()
	w.plain = s.mustPost(t, "/api/workers", map[string]any{"title": "Plain"}).ID
	w.hooked = s.mustPost(t, "/api/workers", map[string]any{"title": "Hooked"}).ID
	w.careful = s.mustPost(t, "/api/workers",
		map[string]any{"title": "Careful", "approvalTools": []string{"shell"}}).ID
	if status := s.setHook(t, w.hooked, w.hook.URL); status != http.StatusOK {
		t.Fatalf("the webhook is refused with %d", status)
	}
	w.keepHours(2)
}

// rows returns the rows of a query of the world's database: see storetest.Rows.
func (w *world) rows(query string, args ...any) [][]string {
	w.t.Helper()
	if w.database != "" {
		return storetest.RowsAt(w.t, w.database, query, args...)
	}
	return storetest.Rows(w.t, w.dir, query, args...)
}

// sound fails the test unless the world's database is consistent.
func (w *world) sound() {
	w.t.Helper()
	if w.database != "" {
		storetest.SoundAt(w.t, w.database)
		return
	}
	storetest.Sound(w.t, w.dir)
}

// serve starts the program on the world's folder.
func (w *world) serve() {
	w.t.Helper()
	beginFolder(w.t, w.dir)
	s := w.how.serve(w.t, w.dir, testKey, serveArgs(w.dir, w.flags...)...)
	s.await(w.t, s.stdout, mailPrinted)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.answered = s, 0
	close(w.moved)
	w.moved = make(chan struct{})
}

func (w *world) serving() (s *instance, moved <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.moved
}

// answersAgain waits until n more errands are done.
func (w *world) answersAgain(n int) {
	w.t.Helper()
	w.mu.Lock()
	w.answered = 0
	w.mu.Unlock()
	w.awaitAnswers(n)
}

// pause waits for a random time.
func (w *world) pause(most time.Duration) {
	select {
	case <-time.After(time.Duration(w.random.Int64N(int64(most)))):
	case <-w.t.Context().Done():
	}
}

// awaitAnswers waits until n errands were done since the last start.
func (w *world) awaitAnswers(n int) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		enough, progress := w.answered >= n, make(chan struct{})
		w.progress = progress
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-progress:
		case <-deadline:
			w.t.Fatalf("no progress\nstderr: %s", w.now.stderr.end())
		}
	}
}

func (w *world) done(e errand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errands = append(w.errands, e)
	w.answered++
	if w.progress != nil {
		close(w.progress)
		w.progress = nil
	}
}

// A client runs errands one after the other.
type client struct {
	w      *world
	n      int
	count  int // of its errands
	random *rand.Rand
	talk   string // the id of its conversation
	turns  int    // that it has
}

// work runs errands until stop is closed, and finishes the current one.
func (c *client) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		c.count++
		e := c.next(fmt.Sprintf("mark-%s-%d-%d-end", c.w.name, c.n, c.count))
		c.w.run(e)
		c.w.done(e)
	}
}

// run requests an errand until it is done or must not be repeated.
func (w *world) run(e errand) {
	deadline := time.After(patience + w.wait)
	for {
		s, moved := w.serving()
		err := e.try(w.t.Context(), w, s)
		if err != nil && !isBroken(err) {
			w.t.Errorf("%s: %v", brief(e), err)
		}
		if err == nil || !isBroken(err) || !e.repeatable() {
			return
		}
		select {
		case <-moved:
		case <-time.After(100 * time.Millisecond):
		case <-w.t.Context().Done():
			return
		}
		select {
		default:
		case <-deadline:
			w.t.Errorf("%s: the server serves, and yet: %v", brief(e), err)
			return
		}
	}
}

// brief describes an errand by its type and its mark.
func brief(e errand) string {
	return fmt.Sprintf("%T %s", e, marked.FindString(fmt.Sprintf("%+v", e)))
}

// load runs the clients until the returned function is called, which waits for them. It approves
// waiting calls meanwhile.
func (w *world) load() (end func()) {
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for _, c := range w.clients {
		clients.Go(func() { c.work(stop) })
	}
	decided, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(decided)
		w.decide(quiet)
	}()
	return func() {
		close(stop)
		clients.Wait()
		w.awaitQuiet()
		close(quiet)
		<-decided
	}
}

// decide approves all waiting calls.
func (w *world) decide(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		s, _ := w.serving()
		list, _ := s.approvals(w.t) // the program may just have been killed
		for _, c := range list {
			status, err := s.decide(w.t, c, true)
			if err == nil && status/100 != 2 && status != http.StatusServiceUnavailable {
				w.t.Errorf("a decision is answered with %d", status)
			}
		}
	}
}

// unfinished counts the remaining work of the program.
const unfinished = `SELECT (SELECT count(*) FROM turns WHERE completed_at IS NULL),
	(SELECT count(*) FROM deliveries WHERE next_attempt_at IS NOT NULL),
	(SELECT count(*) FROM outbound_emails WHERE status = 'queued'),
	(SELECT count(*) FROM schedules WHERE type = 'delayed' AND next_run_at IS NOT NULL)`

// awaitQuiet waits until nothing is queued, running or to be sent.
func (w *world) awaitQuiet() {
	w.t.Helper()
	var left []string
	deadline := time.Now().Add(w.wait)
	for {
		left = w.rows(unfinished)[0]
		if left[0]+left[1]+left[2]+left[3] == "0000" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s turns, %s deliveries, %s mails and %s schedules never end\nstderr: %s", left[0], left[1],
				left[2], left[3], w.now.stderr.end())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// end returns the end of the output.
func (o *printed) end() string {
	s := o.String()
	return s[max(0, len(s)-5000):]
}
