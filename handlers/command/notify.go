package command

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// A Notifier reports the state of the server to a service manager such as systemd (sd_notify).
// Without NOTIFY_SOCKET in the environment it does nothing. Its methods are safe for concurrent
// use.
type Notifier struct {
	Log *slog.Logger

	health  Health
	running sync.WaitGroup
	end     context.CancelFunc // ends the reports; nil before Ready
	failed  sync.Once          // the first message that could not be sent is logged
}

// Health describes a server for its service manager.
type Health interface {
	// Alive returns an error if the process hangs, so that only a restart helps.
	Alive(ctx context.Context) error
	// Status returns a line for people.
	Status() string
}

const (
	statusEvery = 15 * time.Second // between two reports, without a watchdog
	extension   = 30 * time.Second // how much longer the manager waits after each message of a long start
	extendEvery = 10 * time.Second
)

// send sends assignments in one message, so that the manager sees them together.
func (n *Notifier) send(lines ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		n.failed.Do(func() { n.Log.Warn("the service manager cannot be notified", "err", err) })
	}
}

// Opening calls open, which may take long: an upgrade of a large database must not look like a
// start that hangs.
func (n *Notifier) Opening(open func() error) error {
	done := make(chan struct{})
	var notifying sync.WaitGroup
	notifying.Go(func() {
		tick := time.NewTicker(extendEvery)
		defer tick.Stop()
		for {
			n.send("STATUS=Opening the data folder", extend(extension))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	err := open()
	close(done)
	notifying.Wait()
	return err
}

// extend returns the assignment that extends the time for a start or a stop.
func extend(d time.Duration) string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()) }

// Ready reports that the server serves. From now on the manager gets the status, and its watchdog
// gets keep-alive messages while Alive returns no error.
func (n *Notifier) Ready(h Health) {
	n.health = h
	n.send(daemon.SdNotifyReady, n.status())
	// The environment is read once: a child process must not feed the watchdog.
	patience, err := daemon.SdWatchdogEnabled(true)
	if err != nil {
		n.Log.Warn("the service manager's watchdog is not notified", "err", err)
	}
	ctx, end := context.WithCancel(context.Background())
	n.end = end
	n.running.Go(func() { n.report(ctx, patience) })
}

// report sends the status and keep-alive messages until ctx ends. patience is the time-out of the
// manager's watchdog, 0 for none.
func (n *Notifier) report(ctx context.Context, patience time.Duration) {
	every := statusEvery
	if patience > 0 {
		every = patience / 3 // one lost message and a slow check do not reach the time-out
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		lines := []string{n.status()}
		if patience > 0 && n.alive(ctx, every) {
			lines = append(lines, daemon.SdNotifyWatchdog)
		}
		if ctx.Err() != nil {
			return // Stopping has sent its own status
		}
		n.send(lines...)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// alive reports whether the process is alive, and logs the error if it is not.
func (n *Notifier) alive(ctx context.Context, within time.Duration) bool {
	limit, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := n.health.Alive(limit)
	if err != nil && ctx.Err() == nil {
		n.Log.Error("the service manager's watchdog is not notified", "err", err)
	}
	return err == nil
}

// status returns the assignment of the status, which is one line.
func (n *Notifier) status() string {
	return "STATUS=" + strings.ReplaceAll(n.health.Status(), "\n", " ")
}

// Stopping reports that the server stops, and how long that may take. It ends the keep-alive
// messages, because the manager now limits the time of the stop.
func (n *Notifier) Stopping(atMost time.Duration) {
	if n.end != nil {
		n.end()
		n.running.Wait()
	}
	n.send(daemon.SdNotifyStopping, "STATUS=Stopping", extend(atMost))
}
