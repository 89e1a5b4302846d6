package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/storetest"
)

// before is a database of version 1. Two strangers and a member have tasks of one worker. The files
// of all tasks are in the worker's folder. Bob's second turn is pending.
const before = `PRAGMA user_version = 1;
INSERT INTO organizations VALUES ('org_1', 'Acme', NULL, 1);
INSERT INTO users VALUES ('usr_1', 'ann@acme.test', 'Ann', NULL, 1);
INSERT INTO memberships VALUES ('org_1', 'usr_1', 'owner', 1);
INSERT INTO workers VALUES (1, 'wrk_1', 'org_1', 'usr_1', 'Clerk', '', 'public', 1, 1, 1, NULL);
INSERT INTO worker_versions (worker_id, version, instructions, created_at) VALUES ('wrk_1', 1, 'Help.', 1);
INSERT INTO tasks VALUES (1, 'tsk_bob', 'org_1', 'wrk_1', NULL, 'Bob', 'pending', 'email', 2, 1, 0, 0, 1, NULL, NULL),
	(2, 'tsk_eve', 'org_1', 'wrk_1', NULL, 'Eve', 'completed', 'email', 1, 0, 0, 0, 1, 2, NULL),
	(3, 'tsk_ann', 'org_1', 'wrk_1', 'usr_1', 'Ann', 'completed', 'ui', 1, 0, 0, 0, 1, 2, NULL);
INSERT INTO turns (num, id, task_num, seq, organization_id, worker_id, worker_version, created_by_user_id, triggered_by, input, budget, status, ready,
	claims, interruptions, abort_requested, output_text, model, steps, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
	reasoning_tokens, model_cost, tool_cost, duration_ms, created_at, completed_at)
SELECT column1, 'trn_' || column1, column2, column3, 'org_1', 'wrk_1', 1, column4, 'email', column5, 'standard', column6, column1 = 4, 0, 0, 0, '', '',
	0, 0, 0, 0, 0, 0, 0, 0, 0, 1, iif(column6 = 'pending', NULL, 2)
FROM (VALUES (1, 1, 0, NULL, 'Keep this.', 'completed'), (2, 2, 0, NULL, 'And this.', 'completed'), (3, 3, 0, 'usr_1', 'Note.', 'completed'),
	(4, 1, 1, NULL, %[1]s, 'pending'));
INSERT INTO files SELECT column1, 'fil_' || column1, 'wrk_1', column2, column3, column4, column5, column5, 'text/plain', 8, column6, 1
FROM (VALUES (1, 1, 1, 'attached', 'contract.txt', %[2]s), (2, 1, 1, 'published', 'tasks/list.txt', %[2]s), (3, 2, 2, 'attached', 'eve.txt', %[3]s),
	(4, 1, 4, 'attached', 'more.txt', %[2]s));`

// TestStrangersAfterUpgrade upgrades a data folder in which strangers' tasks shared the worker's
// folder. Files keep their addresses, and each task gets its own folder.
func TestStrangersAfterUpgrade(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	shared := filepath.Join(dir, "workspaces", "wrk_1")
	is.NoErr(os.MkdirAll(shared, 0o700))
	for name, content := range map[string]string{"contract.txt": "of Bob 1", "more.txt": "of Bob 1", "eve.txt": "of Eve 2", "note.txt": "of Ann 3"} {
		is.NoErr(os.WriteFile(filepath.Join(shared, name), []byte(content), 0o600))
	}
	letter := script(`tool list_files {}`, `tool read_file {"path": "contract.txt"}`, `tool read_file {"path": "eve.txt"}`, `tool read_file {"path": "note.txt"}`,
		`tool edit_file {"path": "contract.txt", "old": "Bob", "new": "Robert"}`, `tool publish_file {"path": "contract.txt"}`, "say done")
	f := upgraded(t, dir, letter)
	is.NoErr(f.Start(t.Context()))
	t.Cleanup(f.stop)

	waiting, err := f.store.Turn(t.Context(), "trn_4")
	is.NoErr(err)
	check := func(turn store.Turn, content string) {
		turn = f.wait(turn)
		is.Equal(turn.Status, store.Completed)
		is.True(turn.OwnFolder && turn.Stranger())
		var count []string
		for _, st := range f.journal(turn)[:4] {
			count = append(count, string(st.Calls[0].Output))
		}
		is.True(strings.Contains(count[0], "contract.txt") && strings.Contains(count[0], "more.txt") && strings.Contains(count[0], "tasks/list.txt"))
		is.True(!strings.Contains(count[0], "eve") && !strings.Contains(count[0], "note"))
		is.True(strings.Contains(count[1], content)) // the turn has all files of its own task
		is.True(strings.Contains(count[2], "no file") && strings.Contains(count[3], "no file"))
	}
	check(waiting, "of Bob 1")
	bob := store.NewTurn{Caller: f.stranger(), WorkerID: "wrk_1", TaskID: "tsk_bob", Input: letter, Budget: store.BudgetStandard}
	check(f.acceptTurn(bob), "of Robert 1") // earlier changes in the folder remain

	for path, content := range map[string]string{"contract.txt": "of Bob 1", "tasks/list.txt": "of Bob 1", "eve.txt": "of Eve 2", "tasks/tsk_bob/contract.txt": "of Robert 1"} {
		file, err := f.store.File(t.Context(), f.owner, "wrk_1", path, "")
		is.NoErr(err)
		blob, err := f.store.OpenBlob(t.Context(), file.SHA256)
		is.NoErr(err)
		b := make([]byte, len(content))
		_, err = blob.Read(b)
		is.NoErr(err)
		is.Equal(string(b), content)
		is.NoErr(blob.Close())
	}
	is.Equal(f.run(script(`tool read_file {"path": "contract.txt"}`, "say {{last}}"), "tsk_ann").Status, store.Completed)
	b, err := os.ReadFile(filepath.Join(shared, "contract.txt"))
	is.NoErr(err)
	is.Equal(string(b), "of Bob 1") // the members' folder has not changed
}

// upgraded opens a data folder with the database before, and returns a fixture over it. Bob's mail
// in it is pending.
func upgraded(t *testing.T, dir, letter string) *fixture {
	t.Helper()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	sums := map[string]string{}
	for _, content := range []string{"of Bob 1", "of Eve 2"} {
		b, err := st.PutBlob(t.Context(), strings.NewReader(content), 100)
		is.NoErr(err)
		sums[content] = b.SHA256
	}
	is.NoErr(os.CopyFS(filepath.Join(dir, "files"), os.DirFS(filepath.Join(st.Dir(), "files"))))
	old, err := os.ReadFile("../store/testdata/schema-v1.sql")
	is.NoErr(err)
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	storetest.Script(t, dir, string(old)+fmt.Sprintf(before, quoted(letter), quoted(sums["of Bob 1"]), quoted(sums["of Eve 2"])))
	opened, err := store.Open(context.Background(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	t.Cleanup(func() { _ = opened.Close() })
	f := fixtureOn(t, opened, withBudget(runner.Limits{}))
	f.owner = store.Caller{OrganizationID: "org_1", UserID: "usr_1", Role: store.RoleOwner, Trigger: store.TriggerAPI}
	f.worker = store.Worker{ID: "wrk_1"}
	return f
}
