package engine

import (
	"sync/atomic"
	"time"

	"journeyman/store/histogram"
)

// Stats are counters of the transactions and queries since the database was opened.
type Stats struct {
	Commits    atomic.Int64         // committed transactions
	Operations atomic.Int64         // writes in these transactions; one transaction may group several
	Statements atomic.Int64         // statements in write transactions
	RoundTrips atomic.Int64         // times that a write transaction waited for a server; 0 for an embedded engine
	Reads      atomic.Int64         // queries outside of write transactions
	Retries    atomic.Int64         // writes that ran again after a conflict
	Batch      *histogram.Histogram // number of writes in a transaction
	Write      *histogram.Histogram // seconds from the submission of a write to its result
}

// NewStats returns counters that are all zero.
func NewStats() *Stats {
	return &Stats{
		Batch: histogram.New(1, 2, 4, 8, 16, 32, 64, 128, 256),
		Write: histogram.NewSeconds(100*time.Microsecond, 10*time.Second),
	}
}
