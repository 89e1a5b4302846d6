package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"journeyman/runner/model"
)

// callSeconds are the bounds of the buckets of durations, in seconds.
var callSeconds = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500}

// Metrics returns the metrics of steps, model calls and tool calls since the start. A label holds the
// kind of a provider, the name of a tool of this program, a result or a known code. It never holds
// text of a client, so the number of series is limited.
func (r *Runner) Metrics() *metrics.Set { return r.metrics }

// observe counts a duration in the histogram that name and labels name.
func (r *Runner) observe(begun time.Time, name string, labels ...any) {
	r.metrics.GetOrCreatePrometheusHistogramExt(fmt.Sprintf(name, labels...), callSeconds).
		Update(r.cfg.Now().Sub(begun).Seconds())
}

// countFailure counts a failed model call by the kind of its provider.
func (r *Runner) countFailure(modelName, code string) {
	provider, _, _ := strings.Cut(modelName, ":")
	r.metrics.GetOrCreateCounter(fmt.Sprintf(`journeyman_model_failures_total{provider=%q,code=%q}`,
		provider, model.KnownCode(code))).Inc()
}
