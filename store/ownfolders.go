package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Workspace returns the folder of a worker's tasks, or the own folder of one of them. The
// folder may not exist. It returns Forbidden unless the caller created the worker, and
// NotFound for a task of another worker.
func (s *Store) Workspace(ctx context.Context, c people.Caller, workerID, taskID string) (Folder, error) {
	if _, err := workers.Own(ctx, s.db, c, workerID); err != nil || taskID == "" {
		return Folder{WorkerID: workerID}, err
	}
	task, _, err := visibleTask(ctx, s.db, c, taskID)
	if err != nil {
		return Folder{}, err
	}
	if task.WorkerID != workerID {
		return Folder{}, db.Errorf(db.NotFound, "the worker has no task of that id")
	}
	return Folder{WorkerID: workerID, TaskID: task.ID}, nil
}

// tasksWithFolders is the number of a worker's newest tasks that OwnFolders reads.
const tasksWithFolders = 1000

// OwnFolders returns the newest tasks of a worker that have a folder of their own, at most
// limit. It returns Forbidden unless the caller created the worker.
func (s *Store) OwnFolders(ctx context.Context, c people.Caller, workerID string, limit int) ([]Task, error) {
	w, err := workers.Own(ctx, s.db, c, workerID)
	if err != nil {
		return nil, err
	}
	// The inner query bounds the rows that are read if few tasks have such a folder.
	return db.All(ctx, s.db, scanTask, `SELECT `+taskColumns+` FROM (SELECT * FROM tasks INDEXED BY tasks_by_worker
		WHERE worker_num = ? AND archived_at IS NULL ORDER BY created_at DESC, num DESC LIMIT ?) AS tasks
		WHERE own_folder = 1 /* ORDER BY created_at DESC, num DESC */ LIMIT ?`,
		w.Num, tasksWithFolders, limit)
}
