package engine

import (
	"sync/atomic"
	"time"

	"journeyman/store/histogram"
)

// Stats are counters of the transactions and queries since the database was opened.
type Stats struct {
	Commits, Operations atomic.Int64         // transactions, and the operations that they grouped
	Statements          atomic.Int64         // statements inside of write transactions
	RoundTrips          atomic.Int64         // waits of write transactions for a server; 0 for an embedded engine
	Reads               atomic.Int64         // queries outside of them
	Retries             atomic.Int64         // operations that ran again after a conflict
	Batch               *histogram.Histogram // operations of a transaction
	Write               *histogram.Histogram // seconds from the submission of an operation to its answer
}

// NewStats returns counters that are zero.
func NewStats() *Stats {
	return &Stats{
		Batch: histogram.New(1, 2, 4, 8, 16, 32, 64, 128, 256),
		Write: histogram.NewSeconds(100*time.Microsecond, 10*time.Second),
	}
}
