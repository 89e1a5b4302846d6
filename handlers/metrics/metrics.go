// Package metrics writes the metrics of GET /metrics, in the text format of Prometheus.
//
// It reads the store and the runner, and counts requests. It does not know the API: routes, methods and results
// arrive as labels. It changes nothing, and no id and no text of a client or a model becomes a label.
package metrics

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
)

// A Meter writes the metrics of GET /metrics. To add one, set it in one of the functions of New,
// and describe it in .package/monitoring/README.md. The number of series must be bounded: a label
// holds neither an id nor the text of a client or a model. See TestMetricsStayBounded.
type Meter struct {
	requests *metrics.Set
	kept     []*metrics.Set                  // of the store and the runner
	answers  func(ctx context.Context) error // nil if the database answers a query
	readers  []func(ctx context.Context, out samples)
	last     lastValues
}

// samples are the values of one scrape.
type samples struct {
	*metrics.Set
	last *lastValues // of the meter
	up   bool        // the database answers
}

// lastValues are the values of gauges that were last read from the database, by name.
type lastValues struct {
	mu     sync.Mutex // guards values
	values map[string]float64
}

// read sets a gauge to a value that was read from the database, if err is nil. Otherwise the gauge keeps its last
// value, and is NaN if there is none: a series that vanishes raises no alert, and a zero would hide waiting work.
// journeyman_database_up says that the value is old.
func (s samples) read(name string, v float64, err error) {
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	if err == nil {
		s.last.values[name] = v
	} else if last, known := s.last.values[name]; known {
		v = last
	} else {
		v = math.NaN()
	}
	s.value(name, v)
}

// value sets a gauge. name ends with its labels, if it has any.
func (s samples) value(name string, v float64) { s.GetOrCreateGauge(name, nil).Set(v) }

// count sets a counter.
func (s samples) count(name string, n int64) { s.GetOrCreateCounter(name).Set(uint64(n)) }

// flag sets a gauge to 1 or 0.
func (s samples) flag(name string, on bool) {
	s.value(name, 0)
	if on {
		s.value(name, 1)
	}
}

// Config holds what a Meter measures. Documents and Peers may be nil.
type Config struct {
	Store     *store.Store
	Runner    *runner.Runner
	Version   string // of the program
	Documents interface {
		Load() (running, waiting int64)
	} // the document readers; nil if there are none
	Peers       interface{ Misfit() (check, reason string) } // the other nodes; nil if there are none
	Misfits     []string                                     // the words of Peers.Misfit, besides ""
	OpenStreams func() int64                                 // returns the number of event streams
	Now         func() time.Time
}

// New creates a Meter. It also makes all metrics of the process have their types in the output.
func New(cfg Config) *Meter {
	metrics.ExposeMetadata(true) // the type of each metric
	return &Meter{last: lastValues{values: map[string]float64{}}, requests: metrics.NewSet(),
		answers: cfg.Store.Answers, kept: []*metrics.Set{cfg.Store.WriteStats().Metrics, cfg.Runner.Metrics()},
		readers: []func(context.Context, samples){
			func(ctx context.Context, out samples) { readTurns(ctx, out, cfg.Store, cfg.Runner) },
			func(ctx context.Context, out samples) { readStore(ctx, out, cfg.Store) },
			func(ctx context.Context, out samples) { readStorage(ctx, out, cfg.Store) },
			func(ctx context.Context, out samples) { readBacklog(ctx, out, cfg.Store) },
			func(_ context.Context, out samples) { readMail(out, cfg.Store.Counters()) },
			func(_ context.Context, out samples) { readBackups(out, cfg.Store, cfg.Now()) },
			func(ctx context.Context, out samples) { readNode(ctx, out, cfg) },
			func(_ context.Context, out samples) { readServer(out, cfg) },
		}}
}

// ScrapeTime bounds all database queries of one scrape together. A database that hangs must not keep
// the other metrics from an operator, and scrapers wait for few seconds.
const ScrapeTime = 2 * time.Second

// Write writes all metrics in the text format of Prometheus. Those that it cannot read from the database before
// ctx ends, or within ScrapeTime, have their last value.
func (m *Meter) Write(ctx context.Context, out io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, ScrapeTime)
	defer cancel()
	now := samples{Set: metrics.NewSet(), last: &m.last, up: m.answers(ctx) == nil}
	now.flag("journeyman_database_up", now.up)
	for _, read := range m.readers {
		read(ctx, now)
	}
	for _, set := range append([]*metrics.Set{now.Set, m.requests}, m.kept...) {
		set.WritePrometheus(out)
	}
	metrics.WriteProcessMetrics(out)
	metrics.WriteFDMetrics(out)
}

// Observe counts a request that was answered. Each of the three labels must have few values.
func (m *Meter) Observe(method, route, status string, took time.Duration) {
	m.requests.GetOrCreateCounter(fmt.Sprintf(`journeyman_http_requests_total{method=%q,route=%q,status=%q}`,
		method, route, status)).Inc()
	m.requests.GetOrCreateSummary(fmt.Sprintf(`journeyman_http_request_duration_seconds{method=%q,route=%q}`,
		method, route)).Update(took.Seconds())
}

func readTurns(ctx context.Context, out samples, st *store.Store, rn *runner.Runner) {
	c := st.Counters()
	out.value("journeyman_turns_running", float64(rn.Running()))
	out.value("journeyman_turns_queued", float64(st.Queued()))
	out.count(`journeyman_turns_total{status="completed"}`, c.TurnsCompleted.Load())
	out.count(`journeyman_turns_total{status="error"}`, c.TurnsFailed.Load())
	out.count(`journeyman_turns_total{status="aborted"}`, c.TurnsAborted.Load())
	waiting, err := st.Suspended(ctx)
	for _, w := range []store.WaitFor{store.WaitForPerson, store.WaitForModel, store.WaitForWorker} {
		out.read(fmt.Sprintf(`journeyman_turns_waiting{for=%q}`, w), float64(waiting[w]), err)
	}
	out.count("journeyman_turns_taken_over_total", c.TurnsTakenOver.Load())
	out.count(`journeyman_connections_refused_total{listener="http"}`, c.ConnectionsRefused.Load())
	out.count(`journeyman_connections_refused_total{listener="smtp"}`, c.MailConnectionsRefused.Load())
	out.count("journeyman_steps_total", c.Steps.Load())
	out.count(`journeyman_tokens_total{direction="input"}`, c.InputTokens.Load())
	out.count(`journeyman_tokens_total{direction="output"}`, c.OutputTokens.Load())
	out.GetOrCreateFloatCounter("journeyman_credits_total").Add(db.Credits(c.Cost.Load()))
}

func readBacklog(ctx context.Context, out samples, st *store.Store) {
	b, err := st.Backlog(ctx)
	out.read("journeyman_turns_queue_age_seconds", b.Turns.Age.Seconds(), err)
	out.read("journeyman_deliveries_pending", float64(b.Deliveries.Count), err)
	out.read("journeyman_deliveries_age_seconds", b.Deliveries.Age.Seconds(), err)
	out.read("journeyman_emails_queued", float64(b.Outbox.Count), err)
	out.read("journeyman_emails_age_seconds", b.Outbox.Age.Seconds(), err)
	out.read("journeyman_emails_held", float64(b.Held.Count), err)
	out.read("journeyman_emails_held_age_seconds", b.Held.Age.Seconds(), err)
	out.read("journeyman_scheduler_lag_seconds", b.Schedule.Seconds(), err)
}

func readMail(out samples, c *store.Counters) {
	out.count(`journeyman_webhook_attempts_total{status="success"}`, c.AttemptsSucceeded.Load())
	out.count(`journeyman_webhook_attempts_total{status="error"}`, c.AttemptsFailed.Load())
	out.count(`journeyman_emails_received_total{status="accepted"}`, c.EmailsAccepted.Load())
	out.count(`journeyman_emails_received_total{status="held"}`, c.EmailsHeld.Load())
	out.count(`journeyman_emails_received_total{status="ignored"}`, c.EmailsIgnored.Load())
	out.count("journeyman_emails_refused_total", c.EmailsRefused.Load())
	out.count(`journeyman_emails_sent_total{status="success"}`, c.EmailsSent.Load())
	out.count(`journeyman_emails_sent_total{status="retry"}`, c.EmailsRetried.Load())
	out.count(`journeyman_emails_sent_total{status="error"}`, c.EmailsFailed.Load())
}

func readServer(out samples, cfg Config) {
	out.value(fmt.Sprintf(`journeyman_build_info{version=%q}`, cfg.Version), 1)
	out.value("journeyman_streams_open", float64(cfg.OpenStreams()))
	if cfg.Documents != nil {
		running, waiting := cfg.Documents.Load()
		out.value("journeyman_document_readers_running", float64(running))
		out.value("journeyman_document_readers_waiting", float64(waiting))
	}
}
