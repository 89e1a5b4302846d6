package runner

import (
	"strings"
	"sync"
	"time"

	"journeyman/runner/model"
	"journeyman/store/histogram"
)

// A Latency names a kind of work whose durations are counted. There are few, so that the
// number of metrics is bounded: no part is a text of a client.
type Latency struct {
	What   string // "step", "model" or "tool"
	By     string // kind of the provider, or name of a tool of this program; "mcp" for all others
	Result string // "ok", "error", or "cut" if the turn ended meanwhile; "" for a step
}

// latencies count how long steps, model calls and tool calls take. The zero value is ready.
type latencies struct {
	mu sync.Mutex // held for moments
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

// failureCounts count failed model calls, for the operator.
type failureCounts struct {
	mu sync.Mutex
	by map[Failing]int64
}

// A Failing is a kind of failed model calls. There are few, so that the number of metrics
// is bounded.
type Failing struct {
	Provider string // such as openai
	Code     string // a status of HTTP, or a word
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
