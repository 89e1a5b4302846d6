package schedule_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"journeyman/runner/schedule"
	"journeyman/store"
	"journeyman/store/storetest"
)

// benchStore opens a store on the real clock with n schedules that are not due.
func benchStore(b *testing.B, n int) (*store.Store, store.Caller) {
	b.Helper()
	st := storetest.Open(b, store.Options{QueueLimit: 1_000_000})
	owner, _ := storetest.Caller(b, st, "Acme", "ann@acme.test", store.RoleOwner)
	var group sync.WaitGroup
	workers := max(1, n/100) // a worker has at most 100 schedules
	for range workers {
		group.Go(func() {
			w, _, err := st.CreateWorker(b.Context(), owner.Caller, store.NewWorker{}, store.IdempotencyKey{})
			if err != nil {
				b.Error(err)
			}
			for i := range n / workers {
				add(b, st, owner.Caller, w.ID, store.When{Type: store.CronType, Cron: fmt.Sprintf("%d %d * * *", i%60, i%24)})
			}
		})
	}
	group.Wait()
	return st, owner.Caller
}

func add(b *testing.B, st *store.Store, c store.Caller, worker string, w store.When) {
	_, _, err := st.CreateSchedule(b.Context(), c, store.NewSchedule{WorkerID: worker, Input: "Tick", Budget: store.BudgetLow, When: w}, store.IdempotencyKey{})
	if err != nil {
		b.Error(err)
	}
}

func startReal(b *testing.B, st *store.Store) *schedule.Scheduler {
	b.Helper()
	s, err := schedule.New(schedule.Config{Store: st, Log: slog.New(slog.DiscardHandler), Fired: func() {}})
	if err == nil {
		err = s.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkStart starts a scheduler on a store with 100,000 schedules.
func BenchmarkStart(b *testing.B) {
	st, _ := benchStore(b, 100_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for b.Loop() {
		s := startReal(b, st)
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(int64(after.HeapInuse)-int64(before.HeapInuse))/1024, "heap-KiB")
}

// BenchmarkThousandAtOnce makes 1,000 of 101,000 schedules due in the same millisecond. lag is the
// time from then until a task's row was written.
func BenchmarkThousandAtOnce(b *testing.B) {
	st, owner := benchStore(b, 100_000)
	var workers []string
	for range 20 {
		w, _, err := st.CreateWorker(b.Context(), owner, store.NewWorker{}, store.IdempotencyKey{})
		if err != nil {
			b.Fatal(err)
		}
		workers = append(workers, w.ID)
	}
	s := startReal(b, st)
	defer func() { _ = s.Stop() }()
	var lags []time.Duration
	for b.Loop() {
		due := time.Now().Add(2 * time.Second).Truncate(time.Second)
		var group sync.WaitGroup
		for _, worker := range workers {
			group.Go(func() {
				for range 50 {
					add(b, st, owner, worker, store.When{Type: store.Scheduled, Date: due})
				}
			})
		}
		group.Wait()
		want := int64(len(lags) + 1000)
		for tick := time.NewTicker(time.Millisecond); st.Queued() < want; <-tick.C {
			if time.Since(due) > 30*time.Second {
				b.Fatalf("only %d of %d fired", st.Queued(), want)
			}
		}
		b.StopTimer()
		lags = append(lags, lagsSince(b, st, owner, due)...)
		b.StartTimer()
	}
	slices.Sort(lags)
	b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "lag-p50-ms")
	b.ReportMetric(float64(lags[len(lags)*99/100].Milliseconds()), "lag-p99-ms")
}

func lagsSince(b *testing.B, st *store.Store, owner store.Caller, due time.Time) (lags []time.Duration) {
	b.Helper()
	for q := (store.TaskQuery{Limit: 1000, CreatedAfter: due}); ; {
		tasks, next, err := st.Tasks(b.Context(), owner, q)
		if err != nil {
			b.Fatal(err)
		}
		for _, t := range tasks {
			lags = append(lags, t.CreatedAt.Sub(due))
		}
		if q.Cursor = next; next == "" {
			return lags
		}
	}
}
