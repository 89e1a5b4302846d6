package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/gate"
)

// A Service is the server: its parts and its listeners. It starts the parts in order, serves until
// its context ends, and stops everything in an order that loses no work.
type Service struct {
	Log            *slog.Logger
	Store          *store.Store
	Runner         *runner.Runner
	SchedulerAlive func() bool
	BaseURL        string
	Version        string // of the program, for the log
	Parts          []Part // in the order in which they start; they stop in reverse order
	Listeners      []Listener
	DrainDelay     time.Duration // between the end of readiness and the end of the listeners
	Grace          time.Duration // for running turns to end
	Notifier       *Notifier
	Maintenance    bool // from the start

	// SetLevel reads the level of the log again, and returns it.
	SetLevel func() (slog.Level, error)

	started  atomic.Bool // every part runs
	stopping atomic.Bool
	stopped  map[int]bool // parts that have stopped, by their place; see stopParts
}

// A Part is something that runs while the server serves. A nil function does nothing. Start
// leaves nothing running after an error.
type Part struct {
	Name  string
	Start func(ctx context.Context) error
	Stop  func() error
}

// A Listener is an address or socket with the server of its connections.
type Listener struct {
	net.Listener
	Server Server
}

// A Server serves the connections of listeners. Shutdown waits for requests until the context
// ends. Close ends the remaining requests.
type Server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

// Stopping reports whether the service has begun to stop. Load balancers see it before the
// listeners close.
func (s *Service) Stopping() bool { return s.stopping.Load() }

// Starting reports whether parts do not run yet, although the listeners may serve.
func (s *Service) Starting() bool { return !s.started.Load() }

// Run starts the parts and serves until ctx ends or a listener fails. It calls started when
// the listeners serve, and stop when the service begins to stop.
func (s *Service) Run(ctx context.Context, started, stop func()) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP) // before the first part starts: the signal must not kill it
	defer signal.Stop(hangUp)
	failed := make(chan error, len(s.Listeners)+1) // buffered: nobody receives the errors after the first
	if s.Maintenance {
		s.BeginMaintenance("the flag --maintenance")
	}
	wait, err := s.startWhenWritable(ctx, failed)
	if err != nil {
		return err
	}
	for _, l := range s.Listeners {
		go func() { failed <- l.Server.Serve(l.Listener) }()
	}
	s.Log.Info("the server has started", "version", s.Version, "url", s.BaseURL)
	started()
	s.Notifier.Ready(s)
	debug.FreeOSMemory() // the hash of a first password alone takes 19 MiB, which an idle server would keep
	err = s.await(ctx, failed, hangUp)
	stop() // from here on a second interrupt kills the process at once
	wait() // a late start must not run beside the stop
	return errors.Join(err, s.shutdown(err == nil))
}

// await waits for the end of ctx or for a listener that fails, and sets the log level at each signal.
func (s *Service) await(ctx context.Context, failed chan error, hangUp chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-hangUp:
			if level, err := s.SetLevel(); err != nil {
				s.Log.Error("the log level stays as it was", "err", err)
			} else {
				s.Log.Info("the log level was read again", "now", level)
			}
		}
	}
}

// startWhenWritable starts the parts. If the disk is full, only the listeners serve until it has room:
// then the parts start, and a failure goes to failed. wait cancels the wait, and returns when a late
// start has ended. In maintenance the parts start and do no work, except for backups.
func (s *Service) startWhenWritable(ctx context.Context, failed chan<- error) (wait func(), err error) {
	ctx = gate.DuringMaintenance(ctx)
	if s.Store.Gate.WritableIn(ctx) == nil {
		return func() {}, s.start(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	var late sync.WaitGroup
	late.Go(func() {
		if s.Store.Gate.AwaitWritable(ctx) != nil {
			return // the service stops
		}
		if err := s.start(ctx); err != nil {
			failed <- err
		}
	})
	return func() { cancel(); late.Wait() }, nil
}

// start starts the parts. If one fails, it stops those that run already.
func (s *Service) start(ctx context.Context) error {
	for i, part := range s.Parts {
		if part.Start == nil {
			continue
		}
		if err := part.Start(ctx); err != nil {
			s.stopping.Store(true)
			return errors.Join(fmt.Errorf("start the %s: %w", part.Name, err), s.stopParts(i))
		}
	}
	s.started.Store(true)
	return nil
}

// shutdown first makes the service unready, so that load balancers send no more requests, and then
// stops every part. If delay is set, it waits for the load balancers.
func (s *Service) shutdown(delay bool) error {
	s.stopping.Store(true)
	if running := s.Runner.Running(); running > 0 { // somebody may watch the terminal meanwhile
		s.Log.Info("stopping", "running", running, "grace", s.Grace,
			"note", "turns that do not end in this time continue at the next start; a second signal stops at once")
	} else {
		s.Log.Info("stopping", "running", running)
	}
	s.Notifier.Stopping(s.DrainDelay + s.Grace + stopMargin)
	if delay && s.DrainDelay > 0 {
		time.Sleep(s.DrainDelay) // the server works as before; a second signal kills the process
	}
	return s.stopParts(len(s.Parts))
}

// stopParts stops the first n parts, the last one first. A part that a failed start has stopped is
// not stopped again.
func (s *Service) stopParts(n int) error {
	var errs []error
	for i, part := range slices.Backward(s.Parts[:n]) {
		if part.Stop == nil || s.stopped[i] {
			continue
		}
		if s.stopped == nil {
			s.stopped = map[int]bool{}
		}
		s.stopped[i] = true
		if err := part.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop the %s: %w", part.Name, err))
		}
	}
	return errors.Join(errs...)
}

// stopMargin bounds the time of a stop besides the grace period: the answers to clients whose
// turns were interrupted, the last deliveries and the last write.
const stopMargin = 15 * time.Second

// Drain stops the runner and all listeners. Running turns get the grace period. Clients that wait
// for a turn hold their server open until the turn ends, so the runner and the servers stop
// together. more are servers without a listener.
func (s *Service) Drain(more ...Server) error {
	grace, cancel := context.WithTimeout(context.Background(), s.Grace)
	defer cancel()
	// The servers get one more second, to answer the clients whose turns were interrupted at the
	// end of the grace period.
	answered, cancel := context.WithTimeout(context.Background(), s.Grace+time.Second)
	defer cancel()
	servers := more
	for _, l := range s.Listeners {
		if !slices.Contains(servers, l.Server) {
			servers = append(servers, l.Server)
		}
	}
	stopped := make(chan error, len(servers))
	for _, srv := range servers {
		// In parallel, so that a slow mail does not keep the other listeners open.
		go func() { stopped <- stopServer(answered, srv) }()
	}
	errs := []error{s.Runner.Stop(grace)} // returns soon after the grace period
	for range servers {
		errs = append(errs, <-stopped)
	}
	return errors.Join(errs...)
}

// stopServer shuts a server down. After the end of ctx it closes the remaining connections.
func stopServer(ctx context.Context, srv Server) error {
	err := srv.Shutdown(ctx)
	// A client that does not read its answer must not delay the end.
	if errors.Is(err, context.DeadlineExceeded) {
		return srv.Close()
	}
	return err
}

// Alive returns an error if the process hangs. A write to the database must return, but may fail: a
// restart would repair neither a full disk nor damage.
func (s *Service) Alive(ctx context.Context) error {
	switch {
	case s.Store.Gate.WritableIn(gate.DuringMaintenance(ctx)) != nil:
		return nil // the parts have not started, or wait until the store accepts writes
	case !s.Runner.Alive():
		return errors.New("the runner's dispatcher has stopped")
	case !s.SchedulerAlive():
		return errors.New("the scheduler has stopped")
	}
	if err := s.Store.Ping(gate.DuringMaintenance(ctx)); err != nil && ctx.Err() != nil {
		return fmt.Errorf("a write to the database does not return: %w", err)
	}
	return nil
}

// Status returns the state of the server as a line for the operator.
func (s *Service) Status() string {
	text := fmt.Sprintf("Serving on %s, %d turns are running", s.BaseURL, s.Runner.Running())
	if s.Store.Gate.Maintenance() != nil {
		text += ", in maintenance"
	}
	return text
}
