package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

const (
	killedFolder = "STORE_TEST_FOLDER" // set in the killed process: its data folder
	killedWork   = "STORE_TEST_WORK"   // and its work: "prune", "vacuum" or "upgrade"
)

// TestMain is also the main function of the processes that killAt kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedFolder); dir != "" {
		if err := beKilled(dir, os.Getenv(killedWork)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beKilled prints a line when it begins, and returns when all work is done.
func beKilled(dir, work string) error {
	ctx := context.Background()
	if work == "vacuum" {
		fmt.Println("begins")
		return errOf(store.Vacuum(ctx, dir))
	}
	schema, err := os.ReadFile("../schema.sql")
	if err != nil {
		return err
	}
	if work == "upgrade" {
		fmt.Println("begins")
		s, err := openNext(ctx, dir, string(schema), storetest.DatabaseOf(dir))
		if err != nil {
			return err
		}
		return s.Close()
	}
	later := func() time.Time { return time.Now().Add(1000 * 24 * time.Hour) }
	s, err := store.Open(ctx, dir, string(schema), store.Options{Database: storetest.DatabaseOf(dir), Now: later})
	if err != nil {
		return err
	}
	fmt.Println("begins")
	if _, err := s.PruneTasks(ctx, 24*time.Hour); err != nil {
		return err
	}
	_, err = s.EndPruning(ctx, 0, 0)
	return err
}

// killAt runs the work in a process and kills it at a random moment. It returns the error of the
// process.
func killAt(t *testing.T, dir, work string, most time.Duration) error {
	t.Helper()
	is := is.New(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killedFolder+"="+dir, killedWork+"="+work)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	is.NoErr(err)
	is.NoErr(cmd.Start())
	is.NoErr(errOf(bufio.NewReader(out).ReadString('\n'))) // the work has begun
	// The checks below must hold for any moment of the kill.
	kill := time.AfterFunc(rand.N(most), func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	return cmd.Wait()
}

// prunable fills a folder with old tasks, each with a journal and a delivery, and closes the
// folder.
func prunable(t *testing.T, tasks int) (dir string) {
	t.Helper()
	f := newFixture(t)
	f.copyTask(f.finish(running(f)), tasks-1)
	f.hangDeliveries()
	is.New(t).NoErr(f.Close())
	return f.Dir()
}

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

// skipUnderRace skips a test whose work is done by killed processes. The race detector does not see
// these processes, and would make them too slow to finish any work.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if storetest.Race {
		t.Skip("the race detector sees nothing of processes that die")
	}
}

// TestKilledInPruning kills processes during pruning. Each task is complete or deleted. In the end
// all tasks are deleted, and their space is returned.
func TestKilledInPruning(t *testing.T) {
	storetest.Slow(t)
	skipUnderRace(t)
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	tasks := storetest.Rounds(8000, 1500)
	dir := prunable(t, tasks)
	killed, before := 0, tasks
	for round, ended := 0, false; !ended && round < 60; round++ {
		most := 150 * time.Millisecond
		if round > 40 {
			most = time.Minute // a busy machine needs more time
		}
		if ended = killAt(t, dir, "prune", most) == nil; !ended {
			killed++
		}
		rows := storetest.Rows(t, dir, `SELECT (SELECT count(*) FROM tasks),
			(SELECT count(*) FROM pragma_foreign_key_check) + (SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok')
			+ (SELECT count(*) FROM tasks t WHERE (SELECT count(*) FROM turns WHERE task_num = t.num) <> 1)
			+ (SELECT count(*) FROM turns u WHERE (SELECT count(*) FROM steps WHERE turn_num = u.num) <> 1
				OR (SELECT count(*) FROM deliveries WHERE turn_num = u.num) <> 1)`)
		left, err := strconv.Atoi(rows[0][0])
		is.NoErr(err)
		ordertest.AtMost(is, left, before) // no task reappears
		before = left
		is.Equal(rows[0][1], "0") // a task is complete, or deleted with all its rows
	}
	ordertest.AtMost(is, before, 1) // the last process has finished
	t.Logf("%d tasks, killed %d times", tasks, killed)
}

// TestKilledInVacuum kills processes that rewrite the database. The file is either the old or the
// new one, and a start removes leftovers. A vacuum that is not killed makes it small.
func TestKilledInVacuum(t *testing.T) {
	storetest.Slow(t)
	skipUnderRace(t)
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := prunable(t, 1500)
	storetest.Script(t, dir, `CREATE TABLE x (b BLOB); INSERT INTO x VALUES (zeroblob(20000000)); DROP TABLE x`)
	old, err := store.PlanVacuum(t.Context(), dir)
	is.NoErr(err)
	killed := 0
	for range storetest.Rounds(40, 4) {
		if killAt(t, dir, "vacuum", 100*time.Millisecond) != nil {
			killed++
		}
		plan, err := store.PlanVacuum(t.Context(), dir)
		is.NoErr(err)
		is.True(plan.File == old.File || plan.File < old.File/2) // the old file or the new one
		s := storetest.Reopen(t, dir, store.Options{})
		is.NoErr(s.CheckDatabase(t.Context()))
		is.NoErr(s.Close())
		left, err := filepath.Glob(filepath.Join(dir, "*vacuum*"))
		is.NoErr(err)
		is.Equal(len(left), 0) // a partial file would need as much space as the database
		is.Equal(storetest.Rows(t, dir, `SELECT count(*) FROM tasks`), [][]string{{"1500"}})
	}
	is.NoErr(errOf(store.Vacuum(t.Context(), dir)))
	plan, err := store.PlanVacuum(t.Context(), dir)
	is.NoErr(err)
	ordertest.Below(is, plan.File, old.File/2)
	t.Logf("killed %d times", killed)
}
