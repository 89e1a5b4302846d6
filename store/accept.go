package store

import (
	"cmp"
	"context"
	"errors"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// CreateTurn accepts an instruction. When it returns, the turn is durably in the queue, or a runner
// has claimed it already: see UseSlots.
//
// CreateTurn may be a locking write (see db.DB.Hot), unless it looks for the newest task. It locks the task
// to which it adds a turn, and each end of a turn changes that row. So neither the number of the
// new turn nor the turns before it can change. The unique index on the ids of tasks decides which
// write creates a task. The limits of the queue are counted in memory, before the commit. The
// rights of the caller, the worker and the spending may change at the same time. The result is then
// the same as if they changed right after this write. But the worker is locked, so that it is not deleted
// before the commit: see workers.Runnable. RememberIn decides between equal requests.
func (s *Store) CreateTurn(ctx context.Context, n NewTurn) (Accepted, error) {
	if err := n.check(); err != nil {
		return Accepted{}, err
	}
	// The disk is read before the transaction: the writer serves all callers and must not
	// wait for a disk.
	n.workspace, n.atOnce, n.mayAnswer = s.look(ctx, n), true, true
	accept := func() (Accepted, error) {
		return s.acceptOnce(ctx, n.IdempotencyKey, !n.Continue,
			func(tx db.Tx) (Accepted, error) { return s.acceptTurn(ctx, tx, n) })
	}
	a, err := accept()
	if errors.Is(err, errElsewhere) {
		n.atOnce = false
		return accept()
	}
	return a, err
}

// acceptOnce returns the turn that accept makes in a write, or the turn that the same
// request made before. locking is as for db.DB.Hot.
func (s *Store) acceptOnce(ctx context.Context, key db.IdempotencyKey, locking bool,
	accept func(tx db.Tx) (Accepted, error)) (a Accepted, err error) {
	a, replayed, err := db.CreateOnceIn(ctx, s.db, locking, key, func(tx db.Tx, id string) (a Accepted, err error) {
		a.Turn, err = db.One(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE id = ?`, id)
		return a, err
	}, func(tx db.Tx) (Accepted, string, error) {
		a, err := accept(tx)
		return a, a.Turn.ID, err
	})
	a.Replayed = replayed
	return a, err
}

// acceptTurn adds the turn of n, and its worker and task if they are new. If n is the answer to a
// question, it adds none.
func (s *Store) acceptTurn(ctx context.Context, tx db.Tx, n NewTurn) (Accepted, error) {
	s.db.MakeStorable(&n.Input, &n.Title)
	// The checks of the disk and of the queue come first, because they cost no query.
	if err := s.Gate.RoomIn(ctx); err != nil {
		return Accepted{}, err
	}
	full := s.waiting.full(n.Caller.OrganizationID, n.Caller.Stranger())
	if full != nil && n.TaskID == "" && !n.Continue {
		return Accepted{}, full
	}
	task, w, err := s.target(ctx, tx, n)
	if err != nil {
		return Accepted{}, err
	}
	// A full queue and a reached cap refuse no answer, because the turn that asks was accepted before.
	if a, ok, err := s.answerByMessage(ctx, tx, n, task); err != nil || ok {
		a.WorkerCreatedAt = w.CreatedAt
		return a, err
	}
	if full != nil {
		return Accepted{}, full
	}
	if err := s.People.CheckSpending(ctx, tx, w.OrganizationID, w.CreditCap); err != nil {
		return Accepted{}, err
	}
	if err := s.DiskOf(w.OrganizationID).Fits(int64(len(n.Input))); err != nil {
		return Accepted{}, err
	}
	tx.OnCommit(func() { s.DiskOf(w.OrganizationID).Add(int64(len(n.Input))) })
	return s.addAccepted(ctx, tx, n, task, w)
}

// addAccepted stores a turn that nothing refuses, with its files, and its task if that is new.
func (s *Store) addAccepted(ctx context.Context, tx db.Tx, n NewTurn, task Task, w workers.Worker) (Accepted, error) {
	slots, err := s.takeSlot(ctx, tx, n, task, w)
	if err != nil {
		return Accepted{}, err
	}
	if slots != nil {
		n.runnerID = slots.RunnerID
	}
	now := s.db.Millis()
	if task.num == 0 {
		task, err = s.insertTask(tx, n, w, now) // insertTurn finds its num
	} else {
		err = addTurn(tx, task.num, n.runnerID != "")
	}
	if err != nil {
		return Accepted{}, err
	}
	// If a later check fails, the write undoes the worker, the task and the turn.
	t, err := s.insertTurn(ctx, tx, n, task, w, now)
	if err == nil {
		err = n.checkAttachments(t)
	}
	if err != nil {
		return Accepted{}, err
	}
	if n.runnerID != "" {
		err = s.claimAccepted(ctx, tx, t, n.runnerID, w, len(n.Attachments) > 0)
	} else {
		// accept returns an error if other writes have filled the queue since. If a later statement
		// fails, undoing the write also undoes this count.
		err = s.waiting.accept(tx, t.OrganizationID, t.Stranger())
	}
	if err != nil {
		return Accepted{}, err
	}
	s.db.Notify(tx, t.OrganizationID, db.ChangedTasks)
	for _, f := range n.Attachments {
		if err := s.insertFile(tx, t, Attached, f, now); err != nil {
			return Accepted{}, err
		}
	}
	return Accepted{Turn: t, WorkerCreatedAt: w.CreatedAt}, nil
}

// Lookup returns the turn that an earlier request with the same key created. ok is false if there
// was no such request.
func (s *Store) Lookup(ctx context.Context, key db.IdempotencyKey) (t Turn, ok bool, err error) {
	id, err := s.db.FindResult(ctx, s.db, key)
	if err != nil || id == "" {
		return Turn{}, false, err
	}
	t, err = s.Turn(ctx, id)
	return t, err == nil, err
}

func (s *Store) insertTask(tx db.Tx, n NewTurn, w workers.Worker, now int64) (Task, error) {
	t := Task{ID: cmp.Or(n.TaskID, n.NewTaskID, db.NewID("tsk", s.db.Now())), OrganizationID: w.OrganizationID,
		WorkerID:  w.ID,
		Title:     db.FirstRunes(cmp.Or(n.Title, TitleOf(n.Input)), workers.MaxTitle), // a mail's subject has no other limit
		OwnFolder: n.ownFolder(w)}
	return t, tx.ExecLater(`INSERT INTO tasks (id, organization_num, worker_num, created_by_user_num, title, triggered_by,
			turn_count, unfinished, running, outcome, cost, duration_ms, created_at, own_folder)
		VALUES (?, `+db.OrganizationNum+`, ?, `+db.UserNum+`, ?, ?, 1, 1, ?, NULL, 0, 0, ?, ?)`,
		t.ID, t.OrganizationID, w.Num, db.Nullable(n.Caller.UserID), t.Title, n.Caller.Trigger, n.runnerID != "", now,
		t.OwnFolder)
}

func (s *Store) insertTurn(ctx context.Context, tx db.Tx, n NewTurn, task Task, w workers.Worker,
	now int64) (t Turn, err error) {
	t = Turn{ID: cmp.Or(n.TurnID, s.NewTurnID()), taskNum: task.num, TaskID: task.ID, Seq: task.TurnCount,
		OrganizationID: w.OrganizationID, WorkerID: w.ID, WorkerVersion: w.Version,
		CreatedByUserID: n.Caller.UserID, KeyID: n.Caller.KeyID, OwnFolder: task.OwnFolder || n.Caller.Stranger(),
		TriggeredBy: n.Caller.Trigger, Input: n.Input, Budget: n.Budget,
		Status: Pending, Ready: task.Unfinished == 0, CreatedAt: db.FromMillis(now)}
	var started any
	if n.runnerID != "" {
		t.Status, t.Claims, t.StartedAt, started = Running, 1, new(t.CreatedAt), now
	}
	// The envelope is stored with the turn, so that a retry tells the model the same.
	if t.Envelope, err = s.envelope(ctx, tx, n, t); err != nil {
		return t, err
	}
	_, err = db.One(ctx, tx, db.Into(&t.Num, &t.taskNum), `INSERT INTO turns (id, task_num, seq, organization_num,
			worker_num, worker_version, created_by_user_num, api_key_num, own_folder, triggered_by, input, budget, status, ready, runner_id, claims,
			started_at, interruptions, abort_requested, output_text, model, steps, input_tokens, output_tokens,
			cache_read_tokens, cache_write_tokens, reasoning_tokens, model_cost, tool_cost, duration_ms, created_at,
			envelope)
		SELECT ?, coalesce(?, (SELECT k.num FROM tasks k WHERE k.id = ? AND k.organization_num = o.num)), ?, o.num,
			?, ?, `+db.UserNum+`, `+db.KeyNum+`, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, ?
		FROM organizations o WHERE o.id = ?
		RETURNING num, task_num`,
		t.ID, db.Nullable(t.taskNum), t.TaskID, t.Seq, w.Num, t.WorkerVersion, db.Nullable(t.CreatedByUserID),
		db.Nullable(t.KeyID), t.OwnFolder, t.TriggeredBy, t.Input, t.Budget, t.Status, t.Ready,
		db.Nullable(n.runnerID), t.Claims, started, now, t.Envelope, t.OrganizationID)
	return t, err
}

// TargetFolder returns the folder in which the turn of n will work, so that its attachments can be
// stored there before CreateTurn. It sets the ids in n on which the folder depends: those of a new
// worker and a new task. It returns the errors of CreateTurn.
func (s *Store) TargetFolder(ctx context.Context, n *NewTurn) (Folder, error) {
	task, w, err := s.existing(ctx, s.db, *n)
	switch {
	case err != nil || w.ID != "":
	case n.NewWorker != nil:
		n.NewWorker.ID = cmp.Or(n.NewWorker.ID, db.NewID("wrk", s.db.Now()))
		w.ID, w.Workspace = n.NewWorker.ID, n.NewWorker.Workspace
	default:
		err = db.Fields{{Path: "workerId", Message: "is required"}}.Err()
	}
	if err != nil {
		return Folder{}, err
	}
	if task.num == 0 {
		n.NewTaskID = cmp.Or(n.NewTaskID, db.NewID("tsk", s.db.Now()))
		// insertTask chooses the id and the folder in the same way.
		task.ID, task.OwnFolder = cmp.Or(n.TaskID, n.NewTaskID), n.ownFolder(w)
	}
	return Turn{WorkerID: w.ID, TaskID: task.ID, OwnFolder: task.OwnFolder || n.Caller.Stranger()}.Folder(), nil
}
