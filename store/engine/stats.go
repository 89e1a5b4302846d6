package engine

import (
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
)

// Stats are counters of the transactions and queries since the database was opened.
type Stats struct {
	Commits    atomic.Int64 // committed transactions
	Operations atomic.Int64 // writes in these transactions; one transaction may group several
	Statements atomic.Int64 // statements in write transactions
	RoundTrips atomic.Int64 // times that a write transaction waited for a server; 0 for an embedded engine
	Reads      atomic.Int64 // queries outside of write transactions
	Retries    atomic.Int64 // writes that ran again after a conflict

	Metrics *metrics.Set                 // of the histograms
	Batch   *metrics.PrometheusHistogram // number of writes in a transaction
	Write   *metrics.PrometheusHistogram // seconds from the submission of a write to its result
}

// NewStats returns counters that are all zero.
func NewStats() *Stats {
	set := metrics.NewSet()
	return &Stats{
		Metrics: set,
		Batch:   set.NewPrometheusHistogramExt("journeyman_store_batch_operations", metrics.ExponentialBuckets(1, 2, 9)),
		Write: set.NewPrometheusHistogramExt("journeyman_store_write_duration_seconds", []float64{0.0001, 0.00025, 0.0005,
			0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}),
	}
}
