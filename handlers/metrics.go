package handlers

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"journeyman/store"
)

// newMetrics makes what getMetrics shows of the API's surroundings. Names follow
// the conventions of Prometheus; no label holds an id or anything a user wrote, so
// their number is bounded.
func (a *API) newMetrics() *metrics.Set {
	set, c := metrics.NewSet(), a.store.Counters()
	gauges := map[string]func() float64{
		"journeyman_turns_running": func() float64 { return float64(a.runner.Running()) },
		"journeyman_turns_queued":  func() float64 { return float64(a.store.Queued()) },
		"journeyman_streams_open":  func() float64 { return float64(a.OpenStreams()) },
	}
	for name, n := range map[string]*atomic.Int64{
		`journeyman_turns_total{status="completed"}`:          &c.TurnsCompleted,
		`journeyman_turns_total{status="error"}`:              &c.TurnsFailed,
		`journeyman_turns_total{status="aborted"}`:            &c.TurnsAborted,
		`journeyman_steps_total`:                              &c.Steps,
		`journeyman_tokens_total{direction="input"}`:          &c.InputTokens,
		`journeyman_tokens_total{direction="output"}`:         &c.OutputTokens,
		`journeyman_webhook_attempts_total{status="success"}`: &c.AttemptsSucceeded,
		`journeyman_webhook_attempts_total{status="error"}`:   &c.AttemptsFailed,
		`journeyman_emails_received_total`:                    &c.EmailsReceived,
		`journeyman_store_commits_total`:                      &c.Commits,
		`journeyman_store_operations_total`:                   &c.Operations,
	} {
		gauges[name] = func() float64 { return float64(n.Load()) }
	}
	gauges["journeyman_credits_total"] = func() float64 { return store.Credits(c.Cost.Load()) }
	for name, f := range gauges {
		set.NewGauge(name, f)
	}
	return set
}

// OpenStreams is how many event streams are being read.
func (a *API) OpenStreams() int64 { return a.streams.open.Load() }

// measure counts a request that has been answered.
func (a *API) measure(r *request, err error, took time.Duration) {
	status := "ok"
	if err != nil {
		status = strconv.Itoa(problemOf(err).Status)
	}
	a.metrics.GetOrCreateCounter(fmt.Sprintf(`journeyman_http_requests_total{method=%q,route=%q,status=%q}`, r.Method, r.route, status)).Inc()
	a.metrics.GetOrCreateSummary(fmt.Sprintf(`journeyman_http_request_duration_seconds{method=%q,route=%q}`, r.Method, r.route)).Update(took.Seconds())
}

// getMetrics gives the figures in the text format of Prometheus: to who asks from
// this machine, or has the token.
func (a *API) getMetrics(w http.ResponseWriter, r *request) error {
	if err := a.mayMeasure(r); err != nil {
		return err
	}
	var b bytes.Buffer
	a.metrics.WritePrometheus(&b)
	metrics.WriteProcessMetrics(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // the client may have gone
	return nil
}

func (a *API) mayMeasure(r *request) error {
	if token := a.cfg.MetricsToken; token != "" {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(want[:], got[:]) == 1 {
			return nil
		}
		return store.Errorf(store.Unauthorized, "send Authorization: Bearer and the token of --metrics-token")
	}
	ip := net.ParseIP(clientAddr(r.Request))
	// Who asks through a proxy on this machine comes from anywhere.
	if ip == nil || !ip.IsLoopback() || r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
		return store.Errorf(store.Forbidden, "figures are for this machine alone, unless --metrics-token is set")
	}
	return nil
}

// Profiler serves Go's profiles under /debug/pprof/, to whoever reaches it.
func Profiler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
