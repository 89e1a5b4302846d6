package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"journeyman/store"
	"journeyman/store/storetest"
)

// BenchmarkDeliver delivers 10,000 ended turns of one worker, or of many workers, to a receiver on
// this machine.
func BenchmarkDeliver(b *testing.B) {
	const deliveries = 10_000
	for _, workers := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			f := newFixture(b)
			var arrived atomic.Int64
			all := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if arrived.Add(1)%deliveries == 0 {
					all <- struct{}{}
				}
			}))
			defer server.Close()
			list := make([]store.Worker, workers)
			for i := range list {
				list[i] = f.worker(server.URL)
			}
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				f.endMany(list, deliveries)
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				f.start()
				<-all
				b.StopTimer()
				runtime.ReadMemStats(&after)
				storetest.Eventually(f.t, "all to be recorded", func() bool {
					list, err := f.WaitingWorkers(b.Context(), "", 1)
					return err == nil && len(list) == 0
				})
				f.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(arrived.Load())/b.Elapsed().Seconds(), "deliveries/s")
			b.ReportMetric(float64(int64(after.HeapInuse)-int64(before.HeapInuse))/(1<<20), "heap-MiB")
		})
	}
}

// endMany ends n turns, the same number for each worker.
func (f *fixture) endMany(workers []store.Worker, n int) {
	f.t.Helper()
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			for j := range n / 50 {
				w := workers[(i*n/50+j)%len(workers)]
				_, err := f.CreateTurn(f.t.Context(), store.NewTurn{Caller: f.owner.Caller, WorkerID: w.ID, Input: "x", Budget: store.BudgetLow})
				if err != nil {
					f.t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	claims, err := f.ClaimTurns(f.t.Context(), "r", n)
	if err != nil || len(claims) != n {
		f.t.Fatalf("%d claims, %v", len(claims), err)
	}
	for c := range 50 {
		group.Go(func() {
			for i := c; i < n; i += 50 {
				if _, err := f.FinishTurn(f.t.Context(), claims[i], nil, store.Outcome{Status: store.Completed}); err != nil {
					f.t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
