package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func TestTurnFromAcceptedToFinished(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.WorkerID, n.NewWorker, n.Input = "", &workers.NewWorker{Instructions: "Help.",
		OutputSchema: json.RawMessage(`{}`)}, "# Hello\nthere"
	turn := f.accept(n)
	is.Equal(turn, f.reread(turn)) // the result equals the stored turn
	is.Equal(turn.Status, store.Pending)
	is.Equal(f.task(turn.TaskID).Title, "Hello")
	is.Equal(f.Queued(), int64(1))
	f.clock.advance(time.Second)
	f.startRunner("r1")
	c := f.claimOne("r1")
	is.Equal(c.Turn, f.reread(turn))
	is.Equal(c.Instructions, "Help.")
	is.Equal(string(c.OutputSchema), "{}")
	is.Equal(c.StartedAt.UnixMilli(), f.clock.now().UnixMilli())
	is.Equal(f.task(turn.TaskID).Status, store.Running)
	f.clock.advance(time.Second)
	done, err := f.FinishTurn(t.Context(), c, nil, store.Outcome{Status: store.Completed, OutputText: "Hi.",
		StructuredOutput: json.RawMessage(`{"a":1}`), IncompleteReason: store.ReasonBudget, IncompleteLimit: "steps", Duration: time.Second})
	is.NoErr(err)
	is.Equal(done, f.reread(turn))
	is.Equal([]string{done.OutputText, string(done.StructuredOutput), done.IncompleteReason, done.IncompleteLimit},
		[]string{"Hi.", `{"a":1}`, "budget_exhausted", "steps"})
	task := f.task(turn.TaskID)
	is.Equal(task.Status, store.Completed)
	is.Equal(task.CompletedAt, done.CompletedAt)
	is.Equal(task.Duration, time.Second)
	ended, err := f.TurnEnded(t.Context(), turn.ID)
	is.NoErr(err)
	is.True(ended)
	f.checkCounters()
}

// TestTargets accepts a turn for every way to name a worker and a task.
func TestTargets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.newWorker(f.owner, workers.NewWorker{Title: "Other"})
	deleted := f.newWorker(f.owner, workers.NewWorker{})
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	foreign := f.newWorker(stranger, workers.NewWorker{})
	existing := f.accept(f.turn())
	foreignTurn := store.NewTurn{Caller: stranger.Caller, WorkerID: foreign.ID, Input: "Go", Budget: store.BudgetLow}
	foreignServer := f.accept(foreignTurn)
	foreignTurn.TaskID = "shared"
	foreignClient := f.accept(foreignTurn)
	archived := f.accept(f.turn())
	is.New(t).NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, archived.TaskID, "")))
	orphan := f.turn()
	orphan.WorkerID = deleted.ID
	orphaned := f.accept(orphan)
	is.New(t).NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, deleted.ID))

	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	secret := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	hiddenTurn := f.turn()
	hiddenTurn.WorkerID = secret.ID
	hidden := f.accept(hiddenTurn)
	for name, tt := range map[string]struct {
		worker, task string
		newWorker    bool
		refused      db.Kind
		says         string
		sameTask     string // expected task; "" for a new one
		as           people.Caller
	}{
		"new worker, new task":        {newWorker: true},
		"new worker, own task id":     {newWorker: true, task: "own:1"},
		"worker, new task":            {worker: f.worker.ID},
		"worker, own task id":         {worker: f.worker.ID, task: "own.2"},
		"task alone":                  {task: existing.TaskID, sameTask: existing.TaskID},
		"task, though a worker could": {task: existing.TaskID, newWorker: true, sameTask: existing.TaskID},
		"worker and its task":         {worker: f.worker.ID, task: existing.TaskID, sameTask: existing.TaskID},
		"another worker's task":       {worker: other.ID, task: existing.TaskID, refused: db.Invalid, says: "taskId"},
		"archived task":               {task: archived.TaskID, refused: db.Conflict, says: "archived"},
		"deleted worker":              {worker: deleted.ID, refused: db.NotFound},
		"task of a deleted worker":    {task: orphaned.TaskID, refused: db.NotFound},
		"no such worker":              {worker: "wrk_none", refused: db.NotFound},
		"foreign worker":              {worker: foreign.ID, refused: db.Forbidden},
		"foreign client's task id":    {worker: f.worker.ID, task: foreignClient.TaskID},
		"foreign server's task id":    {worker: f.worker.ID, task: foreignServer.TaskID, refused: db.Forbidden},
		"and for a new worker":        {newWorker: true, task: foreignServer.TaskID, refused: db.Forbidden},
		"nobody's server's task id":   {worker: f.worker.ID, task: db.NewID("tsk", f.clock.now()), refused: db.NotFound},
		"in capitals": {worker: f.worker.ID, task: "tsk_" + strings.ToUpper(foreignServer.TaskID[4:]),
			refused: db.NotFound},
		"hidden worker's task": {worker: f.worker.ID, task: hidden.TaskID, as: mo.Caller, refused: db.Forbidden,
			says: "private"},
		"hidden worker's task alone": {task: hidden.TaskID, as: mo.Caller, refused: db.Forbidden, says: "private"},
		"hidden worker, seen task": {worker: secret.ID, task: existing.TaskID, as: mo.Caller, refused: db.Forbidden,
			says: "private"},
		"foreign worker, own task": {worker: foreign.ID, task: existing.TaskID, refused: db.Forbidden},
		"a folder":                 {worker: f.worker.ID, task: ".", refused: db.Invalid, says: "taskId"},
		"the folder above":         {worker: f.worker.ID, task: "..", refused: db.Invalid, says: "taskId"},
		"malformed task id":        {worker: f.worker.ID, task: "../etc", refused: db.Invalid, says: "taskId"},
		"long task id": {worker: f.worker.ID, task: strings.Repeat("a", 129), refused: db.Invalid,
			says: "taskId"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			n := f.turn()
			n.WorkerID, n.TaskID = tt.worker, tt.task
			if tt.as.UserID != "" {
				n.Caller = tt.as
			}
			if tt.newWorker {
				n.NewWorker = &workers.NewWorker{}
			}
			before := f.count(`SELECT count(*) FROM tasks`)
			a, err := f.CreateTurn(t.Context(), n)
			if tt.refused != 0 {
				placed := n
				_, known := f.TargetFolder(t.Context(), &placed)
				// Files are refused with the same error.
				is.True(known == nil && (tt.refused == db.Invalid && n.WorkerID != "") || known.Error() == err.Error())
				_, _, read := f.Task(t.Context(), n.Caller, tt.task)
				// Reading the task returns the same error.
				is.True(db.IsKind(err, db.Invalid) || n.WorkerID != f.worker.ID || read == nil || read.Error() == err.Error())
				is.True(db.IsKind(err, tt.refused))
				is.True(strings.Contains(err.Error(), tt.says))
				is.Equal(f.count(`SELECT count(*) FROM tasks`), before) // no task is created
				return
			}
			is.NoErr(err)
			is.Equal(a.Turn.OrganizationID, f.owner.OrganizationID)
			is.Equal(a.Turn.TaskID == tt.sameTask, tt.sameTask != "")
			if tt.task != "" {
				is.Equal(a.Turn.TaskID, tt.task)
			}
			if tt.worker != "" {
				is.Equal(a.Turn.WorkerID, tt.worker)
			}
		})
	}
	f.checkCounters()
}

func TestContinue(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	again := f.turn()
	again.Continue = true
	first := f.accept(again) // there is no task yet, so a new one is created
	is.Equal(first.Seq, int64(0))
	is.Equal(f.accept(again).TaskID, first.TaskID)
	hers := again
	hers.Caller = mo.Caller
	theirs := f.accept(hers)
	is.True(theirs.TaskID != first.TaskID) // each caller has their own task
	newest := f.accept(f.turn())
	is.Equal(f.accept(again).TaskID, newest.TaskID) // the newest task
	is.NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, newest.TaskID, "")))
	is.Equal(f.accept(again).TaskID, first.TaskID) // the newest task that is not archived
	f.checkCounters()
}

func TestNewTurnsAreChecked(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, err := f.CreateTurn(t.Context(), store.NewTurn{Caller: f.owner.Caller, WorkerID: f.worker.ID, TaskID: "a b"})
	is.True(db.IsKind(err, db.Invalid))
	is.Equal(len(err.(*db.Error).Details), 3) // every invalid field
	n := f.turn()
	n.WorkerID = ""
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), n)), db.Invalid)) // neither an existing nor a new worker
}

func TestTurnKeepsInstructions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.accept(f.turn())
	text, schema := "Be brief.", json.RawMessage(`{"type":"object"}`)
	w, err := f.Workers.UpdateWorker(t.Context(), f.owner.Caller, f.worker.ID, workers.Patch{Instructions: &text,
		OutputSchema: &schema})
	is.NoErr(err)
	is.Equal(w.Version, int64(2))
	again, err := f.Workers.Worker(t.Context(), f.owner.Caller, w.ID)
	is.NoErr(err)
	is.Equal(again, w)
	f.accept(f.turn())
	var none json.RawMessage
	is.NoErr(errOf(f.Workers.UpdateWorker(t.Context(), f.owner.Caller, f.worker.ID, workers.Patch{OutputSchema: &none})))
	title := "Renamed"
	w, err = f.Workers.UpdateWorker(t.Context(), f.owner.Caller, f.worker.ID, workers.Patch{Title: &title})
	is.NoErr(err)
	is.Equal(w.Version, int64(3)) // a title does not affect turns
	f.accept(f.turn())
	f.startRunner("r")
	var told []string
	for _, c := range f.claim("r", 3) {
		told = append(told, c.Instructions+string(c.OutputSchema))
	}
	is.Equal(told, []string{"Help.", `Be brief.{"type":"object"}`, "Be brief."})
}

func TestTasksHaveAMostOfTurns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	f.exec(`UPDATE tasks SET turn_count = ?`, store.MaxTurns)
	n := f.turn()
	n.TaskID = turn.TaskID
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), n)), db.Conflict))
}

func TestTurnsOfATask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.accept(f.turn())
	second := f.follow(first)
	third := f.follow(first)
	turns, err := f.Turns(t.Context(), first)
	is.NoErr(err)
	is.Equal(turns, []store.Turn{first, second, third})
	after, err := f.NextTurn(t.Context(), second)
	is.NoErr(err)
	is.Equal(after, third)
	is.True(db.IsNotFound(errOf(f.NextTurn(t.Context(), third))))
	since, err := f.TurnsSince(t.Context(), f.worker.ID, first.Num, 2)
	is.NoErr(err)
	is.Equal(since, []store.Turn{second, third}) // the newest turns
	is.True(db.IsNotFound(errOf(f.Turn(t.Context(), "trn_none"))))
}

func TestIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Now()
	a, b := db.NewID("tsk", now), db.NewID("tsk", now.Add(time.Millisecond))
	ordertest.Below(is, a, b) // they sort by time
	is.Equal(a, strings.ToLower(a))
	is.Equal(len(a), len("tsk_")+26)
	is.True(store.IsServerID("tsk", a))
	for _, id := range []string{"", "tsk_", "wrk" + a[3:], strings.ToUpper(a), a + "0", a[:29], "tsk_" + strings.Repeat("u", 26), "tsk_8" + a[5:]} {
		is.True(!store.IsServerID("tsk", id))
	}
	for id, valid := range map[string]bool{"a": true, "A.b_c:d-9": true, strings.Repeat("x", 128): true, "": false,
		strings.Repeat("x", 129): false, "a b": false, "a/b": false, "ä": false, "a\x00": false, "a\n": false} {
		is.Equal(db.ValidTaskID(id), valid)
	}
}

func TestTaskTitles(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"\n\n  ## Plan   the\ttrip  \nmore": "Plan the trip",
		"```\n> - \n":                       "-",
		"```offline\nsay Hello\n```":        "say Hello",
		"***\n\t\n":                         "Untitled task",
		"":                                  "Untitled task",
		strings.Repeat("é", 81):             strings.Repeat("é", 79) + "…",
		strings.Repeat("é", 80):             strings.Repeat("é", 80),
	} {
		is.New(t).Equal(store.TitleOf(input), want)
	}
}
