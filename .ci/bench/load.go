package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A loop is a closed loop: each client makes its next request after the answer to the last one.
type loop struct {
	clients int
	length  time.Duration
	// request makes one request. client counts from 0.
	request func(ctx context.Context, client int) error
}

// A result holds the times of a loop's requests, ascending.
type result struct {
	took    []time.Duration
	elapsed time.Duration
}

// run makes requests until the time is over. The first error ends the loop.
func (l loop) run(ctx context.Context) (result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	took := make([][]time.Duration, l.clients)
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range l.clients {
		wg.Go(func() {
			var err error
			if took[i], err = l.client(ctx, i, begun); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	r := result{took: slices.Concat(took...), elapsed: time.Since(begun)}
	slices.Sort(r.took)
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	if len(r.took) == 0 {
		return r, fmt.Errorf("no request was answered within %v", l.length)
	}
	return r, nil
}

// client makes the requests of one client, and returns their times.
func (l loop) client(ctx context.Context, i int, begun time.Time) (took []time.Duration, err error) {
	for ctx.Err() == nil && time.Since(begun) < l.length {
		sent := time.Now()
		if err := l.request(ctx, i); err != nil {
			return took, err
		}
		took = append(took, time.Since(sent))
	}
	return took, nil
}

// rate returns requests a second.
func (r result) rate() float64 { return float64(len(r.took)) / r.elapsed.Seconds() }

// percentile returns the time within which p of 1,000 requests were answered.
func (r result) percentile(p int) time.Duration { return r.took[len(r.took)*p/1000] }

// times returns the percentiles that the table shows.
func (r result) times() *Times {
	return &Times{P50: milliseconds(r.percentile(500)), P99: milliseconds(r.percentile(990)),
		P999: milliseconds(r.percentile(999))}
}
