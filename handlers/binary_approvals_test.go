//go:build linux

package handlers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// A waiting call is what the tests read of an approval.
type waitingCall struct{ ID, TaskID, ToolName, Status string }

// approvals gives what waits for a decision; the error is that of the connection.
func (s *instance) approvals(t testing.TB) ([]waitingCall, error) {
	t.Helper()
	a, err := s.send(t.Context(), http.MethodGet, "/api/approvals?limit=100", nil)
	var list struct{ Items []waitingCall }
	if err == nil {
		err = json.Unmarshal(a.body, &list)
	}
	return list.Items, err
}

// asked waits until exactly one call waits for a decision.
func (s *instance) asked(t *testing.T) waitingCall {
	t.Helper()
	var list []waitingCall
	shows(t, "a call that waits", func() bool {
		var err error
		list, err = s.approvals(t)
		is.New(t).NoErr(err)
		return len(list) == 1
	})
	return list[0]
}

func (s *instance) decide(t testing.TB, c waitingCall, approved bool) (int, error) {
	t.Helper()
	a, err := s.post(t.Context(), "/api/tasks/"+c.TaskID+"/approvals/"+c.ID, map[string]any{"approved": approved, "reason": "said so"})
	return a.status, err
}

func (s *instance) careful(t testing.TB, tools ...string) string {
	t.Helper()
	return s.mustPost(t, "/api/workers", map[string]any{"approvalTools": tools}).ID
}

// runs is what the commands of a data folder have left behind.
func runs(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "workspaces", "*", "runs"))
	is.New(t).NoErr(err)
	var all strings.Builder
	for _, p := range paths {
		data, err := os.ReadFile(p)
		is.New(t).NoErr(err)
		all.Write(data)
	}
	return all.String()
}

// TestKillWhileResting kills the program while a turn waits for people, and again
// between their decision and the call, which runs once.
func TestKillWhileResting(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	start := func(slots string) *instance { return serve(t, dir, "--unsafe-shell", "--concurrency", slots) }
	s := start("1")
	v := s.mustPost(t, "/api/workers/"+s.careful(t, "shell"), map[string]any{"input": offlineScript(
		toolLine("shell", map[string]any{"command": "echo run >> runs"}), "say it said {{last}}")})
	call := s.asked(t)
	s.kill()
	s = start("1")
	is.Equal(s.asked(t), call)
	is.Equal(s.mustGet(t, "/api/workers/"+v.ID).Status, "running")
	// It holds no slot, and here is the only one taken until the next death.
	other := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say I run", "wait 100s")}, "Prefer", "respond-async")
	s.until(t, other, func(v seenRun) bool { return v.Status == "running" })
	status, err := s.decide(t, call, true)
	is.NoErr(err)
	is.Equal(status, http.StatusOK)
	s.kill()
	is.Equal(runs(t, dir), "") // the decision is made, and the call has not begun
	s = start("2")
	v = s.ended(t, v)
	is.True(strings.HasPrefix(v.OutputText, `it said {`))
	is.Equal(runs(t, dir), "run\n")
	status, err = s.decide(t, call, true) // whoever did not get the answer asks again
	is.NoErr(err)
	is.Equal(status, http.StatusOK)
	status, err = s.decide(t, call, false)
	is.NoErr(err)
	is.Equal(status, http.StatusConflict)
	_, err = s.post(t.Context(), "/api/tasks/"+other.Metadata.TaskID+"/cancel", nil)
	is.NoErr(err)
	s.stop(t)
	storetest.Sound(t, dir)
}

// TestKillDuringApprovedCall kills the program while an approved command runs: it is
// not run again, and nobody is asked again.
func TestKillDuringApprovedCall(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := shellServer(t, dir)
	seconds := fmt.Sprintf("1003.%d", os.Getpid())
	v := s.mustPost(t, "/api/workers/"+s.careful(t, "shell"), map[string]any{"input": offlineScript(
		toolLine("shell", map[string]any{"command": "echo run >> runs; sleep " + seconds}), "say it said {{last}}")})
	_, err := s.decide(t, s.asked(t), true)
	is.NoErr(err)
	shows(t, "the command", func() bool { return sleepers(t, seconds) > 0 })
	s.kill()
	s = shellServer(t, dir)
	v = s.ended(t, v)
	is.True(strings.Contains(v.OutputText, "may have taken effect"))
	is.Equal(runs(t, dir), "run\n")
	list, err := s.approvals(t)
	is.NoErr(err)
	is.Equal(len(list), 0)
}

// TestKillNineAroundApprovals kills the program again and again while people decide.
// Each edit is made at most once, and exactly once unless the journal says that it
// was cut off.
func TestKillNineAroundApprovals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const tasks, edits, rounds = 24, 2, 10
	dir := t.TempDir()
	s := serve(t, dir)
	worker := s.careful(t, "edit_file")
	for i := range tasks {
		log := fmt.Sprint("log", i)
		lines := []string{toolLine("write_file", map[string]any{"path": log, "content": "END"})}
		for n := range edits {
			lines = append(lines, toolLine("edit_file", map[string]any{"path": log, "old": "END", "new": fmt.Sprintf("<%d>END", n)}))
		}
		s.mustPost(t, "/api/tasks", map[string]any{"workerId": worker, "taskId": fmt.Sprint("t", i), "input": offlineScript(append(lines, "say done")...)},
			"Prefer", "respond-async")
	}
	var now sync.Mutex // held while the instance changes
	stop, decided := make(chan struct{}), make(chan struct{})
	go func() { // people, who do not tire
		defer close(decided)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			now.Lock()
			s := s
			now.Unlock()
			list, _ := s.approvals(t) // it may just have been killed
			for i, c := range list {
				if i == 4 {
					break
				}
				if status, err := s.decide(t, c, true); err == nil && status != http.StatusOK {
					t.Errorf("a decision is answered with %d", status)
				}
			}
		}
	}()
	for range rounds {
		<-time.After(150 * time.Millisecond)
		now.Lock()
		s.kill()
		s = serve(t, dir)
		now.Unlock()
	}
	shows(t, "the end of all tasks", func() bool {
		a, err := s.send(t.Context(), http.MethodGet, "/api/tasks?status=completed&limit=100", nil)
		is.NoErr(err)
		b, err := s.send(t.Context(), http.MethodGet, "/api/tasks?status=error&limit=100", nil)
		is.NoErr(err)
		return strings.Count(string(a.body)+string(b.body), `"completedAt":"`) == tasks
	})
	close(stop)
	<-decided
	s.stop(t)
	checkEdits(t, dir, worker, tasks, edits)
}

func checkEdits(t *testing.T, dir, worker string, tasks, edits int) {
	t.Helper()
	is := is.New(t)
	storetest.Sound(t, dir)
	st, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	defer st.Close()
	owner, err := st.Authenticate(t.Context(), testKey)
	is.NoErr(err)
	cut := 0
	for i := range tasks {
		task, _, err := st.Task(t.Context(), owner.Caller, fmt.Sprint("t", i))
		is.NoErr(err)
		conv, err := st.Conversation(t.Context(), task.Num)
		is.NoErr(err)
		turn := conv.Turns[0]
		if turn.Status == store.Failed && turn.Failure.Code == "interrupted" {
			continue
		}
		is.Equal(turn.Status, store.Completed)
		log, err := os.ReadFile(filepath.Join(dir, "workspaces", worker, fmt.Sprint("log", i)))
		is.NoErr(err)
		steps := conv.Steps[turn.Num]
		for n := range edits {
			call, ended := steps[1+n].Call(0)
			is.True(ended)
			_, asked := steps[1+n].Approval(0)
			is.True(asked)
			made := strings.Count(string(log), fmt.Sprintf("<%d>", n))
			if call.State == store.CallInterrupted {
				cut++
			}
			if made > 1 || made == 0 && call.State != store.CallInterrupted {
				t.Errorf("task %d: edit %d is %s and was made %d times: %s", i, n, call.State, made, log)
			}
		}
	}
	t.Logf("%d calls were cut off", cut)
}
