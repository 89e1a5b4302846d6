package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// BenchmarkTurn processes turns from acceptance to end, 64 at once, with three writes each.
// cpu-µs/turn is the processor time of the whole process per turn. With a database server, it also
// runs with a simulated distance.
func BenchmarkTurn(b *testing.B) {
	for _, organizations := range []int{1, 10} {
		b.Run(fmt.Sprintf("organizations=%d", organizations), func(b *testing.B) {
			benchmarkTurn(b, organizations, "")
		})
		if storetest.OnServer() {
			b.Run(fmt.Sprintf("organizations=%d/1ms", organizations), func(b *testing.B) {
				benchmarkTurn(b, organizations, pgtest.Far(b, pgtest.URL(b), time.Millisecond))
			})
		}
	}
}

// turnCycle processes the turns of an organization one after the other, from acceptance to end.
type turnCycle struct {
	*store.Store
	who    people.Identity
	worker workers.Worker
	runner string
	empty  *atomic.Int64 // claims that found no turn
}

func benchmarkTurn(b *testing.B, organizations int, database string) {
	s := storetest.Open(b, store.Options{QueueLimit: 1 << 30, Database: database})
	var empty, clients atomic.Int64
	var cycles []turnCycle
	for i := range organizations {
		who, _ := storetest.Caller(b, s, fmt.Sprint("Acme ", i), fmt.Sprintf("ann@acme%d.test", i), people.RoleOwner)
		w, _, err := s.Workers.CreateWorker(b.Context(), who.Caller, workers.NewWorker{Instructions: strings.Repeat("Help. ",
			100)},
			db.IdempotencyKey{})
		if err != nil {
			b.Fatal(err)
		}
		cycles = append(cycles, turnCycle{s, who, w, "r1", &empty})
	}
	if err := s.StartRunner(b.Context(), "r1", time.Hour); err != nil {
		b.Fatal(err)
	}
	before, stats := processorTime(b), s.WriteStats()
	statements, trips, retries := stats.Statements.Load(), stats.RoundTrips.Load(), stats.Retries.Load()
	b.SetParallelism(32) // per processor; 64 in total with two processors
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c := cycles[int(clients.Add(1))%len(cycles)]
		for pb.Next() {
			if err := c.run(b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	n := float64(b.N)
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/n, "cpu-µs/turn")
	b.ReportMetric(n/b.Elapsed().Seconds(), "turns/s")
	b.ReportMetric(float64(stats.Statements.Load()-statements)/n, "statements/turn")
	b.ReportMetric(float64(stats.RoundTrips.Load()-trips)/n, "roundtrips/turn")
	b.ReportMetric(float64(stats.Retries.Load()-retries)/n, "retries/turn")
	b.ReportMetric(float64(empty.Load())/n, "empty/turn")
}

func (c turnCycle) run(ctx context.Context) error {
	_, err := c.CreateTurn(ctx, store.NewTurn{Caller: c.who.Caller, WorkerID: c.worker.ID, Budget: store.BudgetStandard,
		Input: "Summarise the attached report", IdempotencyKey: db.IdempotencyKey{KeyID: c.who.KeyID,
			Hash: make([]byte, 32)}})
	if err != nil {
		return err
	}
	claims, err := c.ClaimTurns(ctx, c.runner, 1, 1)
	for err == nil && len(claims) == 0 && c.OnServer() { // see ClaimTurns
		c.empty.Add(1)
		claims, err = c.ClaimTurns(ctx, c.runner, 1, 1)
	}
	if err != nil || len(claims) != 1 {
		return fmt.Errorf("%d claims, %w", len(claims), err)
	}
	now := time.Now()
	answer := strings.Repeat("An answer of some length. ", 40)
	step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: answer}}, Finish: "stop", Model: "offline",
		StartedAt: now, CompletedAt: now, Usage: store.Usage{InputTokens: 300, OutputTokens: 200, ModelCost: 700}}
	_, err = c.FinishTurn(ctx, claims[0], &step, store.Outcome{Status: store.Completed, OutputText: answer,
		Duration: time.Second})
	return err
}

// BenchmarkNodes processes turns on one node and on three nodes, which share a distant database. Each
// node has few clients, so that the distance limits them and not the processors, which all nodes and
// the database share here. x-one is the rate relative to one node.
func BenchmarkNodes(b *testing.B) {
	storetest.NeedServer(b)
	one := 0.0
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			rate := benchmarkNodes(b, nodes)
			if nodes == 1 {
				one = rate
			}
			b.ReportMetric(rate, "turns/s")
			b.ReportMetric(rate/one, "x-one")
		})
	}
}

// benchmarkNodes returns the number of turns in a second.
func benchmarkNodes(b *testing.B, nodes int) float64 {
	const clients = 8 // of a node
	database := pgtest.Far(b, pgtest.URL(b), 10*time.Millisecond)
	dir := b.TempDir()
	var empty atomic.Int64
	var cycles []turnCycle
	for n := range nodes {
		s := storetest.Reopen(b, dir, store.Options{QueueLimit: 1 << 30, Database: database,
			Node: &store.Node{URL: fmt.Sprintf("http://node%d.test:8080", n), Version: "test"}})
		runner := fmt.Sprint("r", n)
		if err := s.StartRunner(b.Context(), runner, time.Hour); err != nil {
			b.Fatal(err)
		}
		for i := range clients {
			who, _ := storetest.Caller(b, s, fmt.Sprint("Acme ", n, i), fmt.Sprintf("ann@acme%d-%d.test", n, i),
				people.RoleOwner)
			w, _, err := s.Workers.CreateWorker(b.Context(), who.Caller,
				workers.NewWorker{Instructions: strings.Repeat("Help. ", 100)},
				db.IdempotencyKey{})
			if err != nil {
				b.Fatal(err)
			}
			c := turnCycle{s, who, w, runner, &empty}
			if err := c.run(b.Context()); err != nil { // places the worker on this node
				b.Fatal(err)
			}
			cycles = append(cycles, c)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var running sync.WaitGroup
	b.ResetTimer()
	for _, c := range cycles {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c.run(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return float64(b.N) / b.Elapsed().Seconds()
}

// processorTime returns the processor time of this process so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
