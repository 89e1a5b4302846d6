package handlers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"journeyman/runner"
	"journeyman/store"
)

// A meter writes the samples of GET /metrics. To add a metric, add its description to families, and
// write its samples in one of the functions of newMeter. The number of series must be bounded: a
// label holds neither an id nor the text of a client or a model. See TestMetricsStayBounded.
type meter struct {
	set      *metrics.Set // of the requests
	writers  []func(ctx context.Context, out samples)
	describe descriptions
}

// newMeter creates the meter. openStreams returns the number of event streams.
func newMeter(cfg Config, openStreams func() int64) *meter {
	return &meter{set: metrics.NewSet(), describe: newDescriptions(families()),
		writers: []func(context.Context, samples){
			func(ctx context.Context, out samples) { writeTurns(ctx, out, cfg.Store, cfg.Runner) },
			func(ctx context.Context, out samples) { writeStore(ctx, out, cfg.Store) },
			func(ctx context.Context, out samples) { writeStorage(ctx, out, cfg.Store) },
			func(ctx context.Context, out samples) { writeBacklog(ctx, out, cfg.Store) },
			func(_ context.Context, out samples) { writeMail(out, cfg.Store.Counters()) },
			func(_ context.Context, out samples) { writeBackups(out, cfg.Store, cfg.Now()) },
			func(_ context.Context, out samples) { writeLatencies(out, cfg.Runner) },
			func(ctx context.Context, out samples) { writeNode(ctx, out, cfg) },
			func(_ context.Context, out samples) { writeServer(out, cfg, openStreams()) },
		}}
}

// scrapeTime bounds all database queries of one scrape together. A database that hangs must not keep
// the other metrics from an operator, and scrapers wait for few seconds.
const scrapeTime = 2 * time.Second

// write writes all metrics in the text format of Prometheus. It marks or leaves out those that it
// cannot read from the database before ctx ends, or within scrapeTime.
func (m *meter) write(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	var b bytes.Buffer
	for _, write := range m.writers {
		write(ctx, samples{&b})
	}
	m.set.WritePrometheus(&b)
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	return m.describe.write(out, b.String())
}

// observe counts a request that was answered. Its labels have few values: a method of methodLabel,
// a pattern of the route table and a status.
func (m *meter) observe(method, route string, err error, took time.Duration) {
	status := "ok"
	if err != nil {
		status = strconv.Itoa(ProblemOf(err).Status)
	}
	method = methodLabel(method)
	m.set.GetOrCreateCounter(fmt.Sprintf(`journeyman_http_requests_total{method=%q,route=%q,status=%q}`,
		method, route, status)).Inc()
	m.set.GetOrCreateSummary(fmt.Sprintf(`journeyman_http_request_duration_seconds{method=%q,route=%q}`,
		method, route)).Update(took.Seconds())
}

func writeTurns(ctx context.Context, out samples, st *store.Store, rn *runner.Runner) {
	c := st.Counters()
	out.value("journeyman_turns_running", float64(rn.Running()))
	out.value("journeyman_turns_queued", float64(st.Queued()))
	for status, n := range map[string]*atomic.Int64{"completed": &c.TurnsCompleted, "error": &c.TurnsFailed,
		"aborted": &c.TurnsAborted} {
		out.count("journeyman_turns_total", n.Load(), "status", status)
	}
	waiting, err := st.Suspended(ctx)
	for _, w := range []store.WaitFor{store.WaitForPerson, store.WaitForModel, store.WaitForWorker} {
		n := float64(waiting[w])
		if err != nil {
			n = math.NaN() // unknown: a zero would hide waiting turns
		}
		out.value("journeyman_turns_waiting", n, "for", string(w))
	}
	out.count("journeyman_steps_total", c.Steps.Load())
	out.count("journeyman_tokens_total", c.InputTokens.Load(), "direction", "input")
	out.count("journeyman_tokens_total", c.OutputTokens.Load(), "direction", "output")
	out.value("journeyman_credits_total", store.Credits(c.Cost.Load()))
	for kind, n := range rn.FailedCalls() {
		out.count("journeyman_model_failures_total", n, "provider", kind.Provider, "code", kind.Code)
	}
	out.count("journeyman_model_retries_total", rn.Retries())
}

// writeBacklog writes no samples if the database does not answer: zeros would hide waiting work.
func writeBacklog(ctx context.Context, out samples, st *store.Store) {
	b, err := st.Backlog(ctx)
	if err != nil {
		return
	}
	out.value("journeyman_turns_queue_age_seconds", b.Turns.Age.Seconds())
	out.value("journeyman_deliveries_pending", float64(b.Deliveries.Count))
	out.value("journeyman_deliveries_age_seconds", b.Deliveries.Age.Seconds())
	out.value("journeyman_emails_queued", float64(b.Outbox.Count))
	out.value("journeyman_emails_age_seconds", b.Outbox.Age.Seconds())
	out.value("journeyman_emails_held", float64(b.Held.Count))
	out.value("journeyman_emails_held_age_seconds", b.Held.Age.Seconds())
	out.value("journeyman_scheduler_lag_seconds", b.Schedule.Seconds())
}

func writeMail(out samples, c *store.Counters) {
	out.count("journeyman_webhook_attempts_total", c.AttemptsSucceeded.Load(), "status", "success")
	out.count("journeyman_webhook_attempts_total", c.AttemptsFailed.Load(), "status", "error")
	out.count("journeyman_emails_received_total", c.EmailsAccepted.Load(), "status", "accepted")
	out.count("journeyman_emails_received_total", c.EmailsHeld.Load(), "status", "held")
	out.count("journeyman_emails_received_total", c.EmailsIgnored.Load(), "status", "ignored")
	out.count("journeyman_emails_refused_total", c.EmailsRefused.Load())
	out.count("journeyman_emails_sent_total", c.EmailsSent.Load(), "status", "success")
	out.count("journeyman_emails_sent_total", c.EmailsRetried.Load(), "status", "retry")
	out.count("journeyman_emails_sent_total", c.EmailsFailed.Load(), "status", "error")
}

func writeLatencies(out samples, rn *runner.Runner) {
	all := rn.Latencies()
	kinds := slices.SortedFunc(maps.Keys(all), func(a, b runner.Latency) int {
		return cmp.Or(strings.Compare(a.By, b.By), strings.Compare(a.Result, b.Result))
	})
	for _, kind := range kinds {
		read := all[kind]
		switch kind.What {
		case "step":
			out.histogram("journeyman_step_duration_seconds", read, "provider", kind.By)
		case "model":
			out.histogram("journeyman_model_call_duration_seconds", read, "provider", kind.By, "result", kind.Result)
		case "tool":
			out.histogram("journeyman_tool_call_duration_seconds", read, "tool", kind.By, "result", kind.Result)
		}
	}
}

func writeServer(out samples, cfg Config, openStreams int64) {
	out.value("journeyman_build_info", 1, "version", cfg.Version)
	out.value("journeyman_streams_open", float64(openStreams))
	if cfg.Documents != nil {
		running, waiting := cfg.Documents.Load()
		out.value("journeyman_document_readers_running", float64(running))
		out.value("journeyman_document_readers_waiting", float64(waiting))
	}
}
