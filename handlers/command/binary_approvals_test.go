//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// A waitingCall holds the fields of an approval that the tests read.
type waitingCall struct{ ID, TaskID, ToolName, Status string }

// approvals returns the approvals that wait for a decision. The error is that of the connection.
func (s *instance) approvals(t testing.TB) ([]waitingCall, error) {
	t.Helper()
	a, err := s.send(t.Context(), http.MethodGet, "/api/approvals?limit=100", nil)
	var list struct{ Items []waitingCall }
	if err == nil {
		err = json.Unmarshal(a.body, &list)
	}
	return list.Items, err
}

// asked waits until exactly one call waits for a decision, and its turn is suspended. The approval is
// stored before that: after a kill in between, the turn would be pending.
func (s *instance) asked(t *testing.T) waitingCall {
	t.Helper()
	var list []waitingCall
	storetest.Eventually(t, "a call that waits", func() bool {
		var err error
		list, err = s.approvals(t)
		is.New(t).NoErr(err)
		return len(list) == 1 && s.mustGet(t, "/api/tasks/"+list[0].TaskID).Task.WaitingFor != nil
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

// runs returns the files that the commands of a data folder have written.
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

// TestKillWhileSuspended kills the program while a turn waits for a decision, and again between the
// decision and the call, which runs once.
func TestKillWhileSuspended(t *testing.T) {
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
	// The suspended turn holds no slot, and this turn takes the only one until the next kill.
	other := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say I run", "wait 100s")}, "Prefer", "respond-async")
	s.until(t, other, func(v seenRun) bool { return v.Status == "running" })
	status, err := s.decide(t, call, true)
	is.NoErr(err)
	is.Equal(status, http.StatusOK)
	s.kill()
	is.Equal(runs(t, dir), "") // the decision is stored, and the call has not begun
	s = start("2")
	v = s.ended(t, v)
	is.True(strings.HasPrefix(v.OutputText, "it said exit status: 0"))
	is.Equal(runs(t, dir), "run\n")
	status, err = s.decide(t, call, true) // a client without an answer repeats the request
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

// TestKillDuringApprovedCall kills the program while an approved command runs. The command does not
// run again, and there is no second approval.
func TestKillDuringApprovedCall(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := shellServer(t, dir)
	seconds := fmt.Sprintf("1003.%d", os.Getpid())
	v := s.mustPost(t, "/api/workers/"+s.careful(t, "shell"), map[string]any{"input": offlineScript(
		toolLine("shell", map[string]any{"command": "echo run >> runs; sleep " + seconds}), "say it said {{last}}")})
	_, err := s.decide(t, s.asked(t), true)
	is.NoErr(err)
	storetest.Eventually(t, "the command", func() bool { return sleepers(t, seconds) > 0 })
	s.kill()
	s = shellServer(t, dir)
	v = s.ended(t, v)
	is.True(strings.Contains(v.OutputText, "may have taken effect"))
	is.Equal(runs(t, dir), "run\n")
	list, err := s.approvals(t)
	is.NoErr(err)
	is.Equal(len(list), 0)
}
