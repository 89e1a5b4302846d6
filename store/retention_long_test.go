package store_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// manyTasks is the number of tasks in TestPruneManyTasks. The environment variable PRUNED_TASKS
// sets another number, such as 1000000.
const manyTasks = 20_000

// hangDeliveries gives each task a journal and a completed delivery, by one statement per table.
func (f *fixture) hangDeliveries() {
	f.t.Helper()
	for _, query := range []string{
		`INSERT INTO steps (turn_num, seq, attempt, parts, finish, feedback, model, estimated_tokens, input_tokens, output_tokens,
			cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, started_at, completed_at)
			SELECT num, 0, 1, '[{"type":"text"}]', 'stop', '', 'm', 1, 1, 1, 0, 0, 0, 1, 1, 1 FROM turns`,
		`INSERT INTO deliveries (id, worker_num, turn_num, type, attempts, created_at, task_status, task_turns, task_cost, task_duration)
			SELECT 'evt_' || id, worker_num, num, 'task.completed', 1, created_at, 'completed', 1, 1, 1 FROM turns`,
		`INSERT INTO webhook_executions (id, worker_num, seq, delivery_num, url, request_status, response_status, duration_ms, created_at)
			SELECT 'whe_' || id, worker_num, num, num, 'https://a.example/', 'success', 200, 1, created_at FROM deliveries`,
	} {
		f.exec(query)
	}
}

// latencies runs small tasks one after the other until stop is closed. It returns the time of each,
// from its acceptance to its end.
func (f *fixture) latencies(stop <-chan struct{}) []time.Duration {
	var all []time.Duration
	for {
		select {
		case <-stop:
			slices.Sort(all)
			return all
		default:
		}
		begun := time.Now()
		f.accept(f.turn())
		f.finish(f.claimOne("r"))
		all = append(all, time.Since(begun))
	}
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[min(len(sorted)*p/100, len(sorted)-1)]
}

// TestPruneManyTasks prunes nearly all of many tasks while other tasks run. The file shrinks, and
// the test logs the latency of the other tasks.
func TestPruneManyTasks(t *testing.T) {
	storetest.Long(t)
	is := is.New(t)
	n := manyTasks
	if text := os.Getenv("PRUNED_TASKS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		is.NoErr(err)
	}
	f := newFixture(t)
	f.startRunner("r")
	instruction := f.turn()
	instruction.Input = strings.Repeat("Where is my parcel? ", 5)
	first := f.accept(instruction)
	f.finish(f.claimOne("r"))
	const part = 100_000 // number of copies in one transaction
	for left := n; left > 0; left -= part {
		f.copyTask(f.reread(first), min(left, part))
	}
	f.hangDeliveries()
	f.exec(`UPDATE tasks SET completed_at = completed_at + 86400000 * 90 WHERE num > (SELECT max(num) FROM tasks) - 1000`)
	is.NoErr(f.Checkpoint(t.Context()))
	full, err := f.Space(t.Context())
	is.NoErr(err)

	measure := func(work func()) []time.Duration {
		stop, result := make(chan struct{}), make(chan []time.Duration)
		go func() { result <- f.latencies(stop) }()
		work()
		close(stop)
		return <-result
	}
	alone := measure(func() { <-time.After(3 * time.Second) })
	f.clock.advance(30 * 24 * time.Hour)
	f.startRunner("r") // its lease has expired
	begun := time.Now()
	var pruned int64
	during := measure(func() {
		pruned, err = f.PruneTasks(t.Context(), 24*time.Hour)
		is.NoErr(err)
	})
	took := time.Since(begun)
	is.True(pruned >= int64(n-1000))
	begun = time.Now()
	var p store.Pruned
	returning := measure(func() {
		p, err = f.EndPruning(t.Context(), 0, 0)
		is.NoErr(err)
	})
	left, err := f.Space(t.Context())
	is.NoErr(err)
	is.True(left.File < full.File/2) // the space is returned
	t.Logf("%d tasks pruned in %v; %.1f MB became %.1f MB in %v, %.1f MB returned", pruned, took, float64(full.File)/1e6,
		float64(left.File)/1e6, time.Since(begun), float64(p.Returned)/1e6)
	for name, l := range map[string][]time.Duration{"alone": alone, "while pruning": during, "while returning space": returning} {
		t.Logf("%s: %d tasks, p50 %v, p99 %v", name, len(l), percentile(l, 50), percentile(l, 99))
	}
}
