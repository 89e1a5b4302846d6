// Package histogram counts values in buckets, as Prometheus expects them. It is pure: it reads no
// clock, knows no metric's name, and imports no other package of this module.
package histogram

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// A Histogram counts values. Its methods are safe for concurrent use and never block.
type Histogram struct {
	bounds []float64      // upper bounds of the buckets, ascending
	counts []atomic.Int64 // one more than bounds: the last bucket has no bound
	sum    atomic.Uint64  // of all values, as the bits of a float64
}

// New creates a histogram. bounds are the upper bounds of its buckets, ascending.
func New(bounds ...float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// NewSeconds creates a histogram of durations in seconds. It has three buckets for each power
// of ten, from shortest to longest.
func NewSeconds(shortest, longest time.Duration) *Histogram {
	var bounds []float64
	for base := shortest.Seconds(); base <= longest.Seconds(); base *= 10 {
		for _, step := range []float64{1, 2.5, 5} {
			// The bound is rounded, so that a label shows 0.025 and not 0.025000000000000001.
			if b := math.Round(base*step*1e6) / 1e6; b <= longest.Seconds() {
				bounds = append(bounds, b)
			}
		}
	}
	return New(bounds...)
}

// Observe counts a value.
func (h *Histogram) Observe(v float64) {
	// Prometheus counts a value that equals a bound in the bucket of that bound.
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// ObserveDuration counts a duration, in seconds.
func (h *Histogram) ObserveDuration(d time.Duration) { h.Observe(d.Seconds()) }

// A Reading is what a histogram has counted so far.
type Reading struct {
	Bounds []float64 // must not be changed
	Counts []int64   // of the values up to each bound, and of all values at the end
	Sum    float64
}

// Read returns what has been counted. A value that is counted at the same time may be in
// the sum and not in the counts.
func (h *Histogram) Read() Reading {
	r := Reading{Bounds: h.bounds, Counts: make([]int64, len(h.counts)), Sum: math.Float64frombits(h.sum.Load())}
	var total int64
	for i := range h.counts {
		total += h.counts[i].Load()
		r.Counts[i] = total
	}
	return r
}
