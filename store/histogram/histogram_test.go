package histogram_test

import (
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/histogram"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := histogram.New(1, 2, 4)
	for _, v := range []float64{0, 1, 1.5, 4, 5} {
		h.Observe(v)
	}
	r := h.Read()
	is.Equal(r.Counts, []int64{2, 3, 4, 5}) // a value that equals a bound lies below it
	is.Equal(r.Sum, 11.5)
}

func TestSecondsHaveReadableBounds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := histogram.NewSeconds(10*time.Millisecond, time.Second)
	is.Equal(h.Read().Bounds, []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1})
	h.ObserveDuration(30 * time.Millisecond)
	is.Equal(h.Read().Counts, []int64{0, 0, 1, 1, 1, 1, 1, 1})
}

func TestObserveConcurrently(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := histogram.New(1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				h.Observe(2)
			}
		})
	}
	all.Wait()
	is.Equal(h.Read().Counts, []int64{0, 8000})
	is.Equal(h.Read().Sum, 16000.0) // no addition is lost
}

func TestObserveAllocatesNothing(t *testing.T) {
	is := is.New(t)
	h := histogram.NewSeconds(time.Millisecond, time.Minute)
	is.Equal(testing.AllocsPerRun(100, func() { h.Observe(0.2) }), 0.0)
}
