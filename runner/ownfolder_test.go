package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// stopTool simulates a crash in its first call: it sends a copy of the data folder, and the test
// continues with that copy. *f is set before the tool is called.
func stopTool(f **fixture, copied chan<- death, die func(*fixture) death) fakeTool {
	var once sync.Once
	return fakeTool{name: "stop", repeatable: true, fn: func(context.Context, tool.Host, json.RawMessage) (json.RawMessage, error) {
		once.Do(func() { copied <- die(*f) })
		return json.RawMessage(`"ok"`), nil
	}}
}

// TestOwnFolderSurvivesRestart ends the process during a stranger's turn. The turn continues
// after a crash, and also in a restored backup.
func TestOwnFolderSurvivesRestart(t *testing.T) {
	t.Parallel()
	for name, die := range map[string]func(*fixture) death{
		"crash": (*fixture).die,
		"backup": func(f *fixture) death {
			if storetest.OnServer() {
				return f.die() // PostgreSQL has no other kind of copy
			}
			var archive bytes.Buffer
			dir := filepath.Join(f.t.TempDir(), "restored")
			report, err := f.store.Backup(context.Background(), &archive)
			if err == nil && report.Unread == 0 {
				err = store.Restore(context.Background(), dir, &archive)
			}
			return death{dir, err}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var f *fixture
			copied := make(chan death, 1)
			f = newFixture(t, withTools(stopTool(&f, copied, die)))
			f.worker = f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{
				StrangerTools: rules(t, `["read_file", "write_file", "list_files", "publish_file", "stop"]`)}})
			n := store.NewTurn{Caller: f.stranger(), WorkerID: f.worker.ID, Budget: store.BudgetStandard,
				Input: script(`tool write_file {"path": "b.txt", "content": "beta"}`, `tool stop {}`, `tool read_file {"path": "a.txt"}`,
					`tool publish_file {"path": "b.txt"}`, `tool list_files {}`, "say {{last}}")}
			is.NoErr(f.Attach(t.Context(), &n, []store.File{f.kept("a.txt", "alpha")}))
			turn := f.acceptTurn(n)
			g := f.after(until(t, copied, "the process ends"))
			g.start()
			turn = g.wait(turn)
			is.Equal(turn.Status, store.Completed)
			is.True(strings.Contains(turn.OutputText, "a.txt\t5\nb.txt\t4\n")) // only these two files
			is.True(strings.Contains(string(g.journal(turn)[2].Calls[0].Output), "alpha"))
			files := g.filesOf(turn)
			is.Equal(len(files), 1)
			is.Equal(files[0].Path, "tasks/"+turn.TaskID+"/b.txt")
		})
	}
}
