package runner

import (
	"strings"
	"sync"
	"time"

	"journeyman/runner/model"
	"journeyman/store/histogram"
)

// A Latency is the key of a duration metric. Its fields never contain text of a client, so the
// number of metrics is limited.
type Latency struct {
	What   string // "step", "model" or "tool"
	By     string // kind of the provider, or name of a tool of this program; "mcp" for all others
	Result string // "ok", "error", or "cut" if the turn ended meanwhile; "" for a step
}

// latencies measure the durations of steps, model calls and tool calls. The zero value is ready to
// use.
type latencies struct {
	mu sync.Mutex // guards by; held only for map accesses
	by map[Latency]*histogram.Histogram
}

func (l *latencies) observe(kind Latency, took time.Duration) {
	l.mu.Lock()
	h := l.by[kind]
	if h == nil {
		if l.by == nil {
			l.by = map[Latency]*histogram.Histogram{}
		}
		h = histogram.NewSeconds(10*time.Millisecond, 10*time.Minute)
		l.by[kind] = h
	}
	l.mu.Unlock()
	h.ObserveDuration(took)
}

// failureCounts counts failed model calls, for the operator's metrics.
type failureCounts struct {
	mu sync.Mutex // guards by
	by map[Failing]int64
}

// A Failing is the key of a metric of failed model calls. Both fields have few values, so the
// number of metrics is limited.
type Failing struct {
	Provider string // such as openai
	Code     string // an HTTP status, or an error code of this program
}

func (f *failureCounts) add(modelName, code string) {
	provider, _, _ := strings.Cut(modelName, ":")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[Failing]int64{}
	}
	f.by[Failing{provider, model.KnownCode(code)}]++
}
