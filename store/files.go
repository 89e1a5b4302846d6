package store

import (
	"cmp"
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func (s *Store) insertFile(tx db.Tx, t Turn, origin string, f File, now int64) error {
	return tx.ExecLater(`INSERT INTO files (id, worker_id, task_num, turn_num, origin, path, title, media_type, size,
			sha256, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		cmp.Or(f.ID, db.NewID("fil", s.db.Now())), t.WorkerID, t.taskNum, t.Num, origin, f.Path, f.Title, f.MediaType, f.Size,
		f.SHA256, now)
}

// File returns the newest file at a path of a worker. With a version, the first 12
// characters of a SHA-256, it returns the file with that content. The files of a deleted
// worker keep their addresses.
func (s *Store) File(ctx context.Context, c people.Caller, workerID, path, version string) (File, error) {
	if _, err := workers.VisibleOrDeleted(ctx, s.db, c, workerID); err != nil {
		return File{}, err
	}
	f, err := db.One(ctx, s.db, scanFile, `SELECT `+fileColumns+` FROM files WHERE worker_id = ?1 AND path = ?2
		AND (?3 = '' OR substr(sha256, 1, 12) = ?3) ORDER BY num DESC LIMIT 1`, workerID, path, version)
	named := "path"
	if version != "" {
		named = "path and version"
	}
	return f, db.NoRow(err, db.Errorf(db.NotFound, "the worker has no file with that %s", named))
}

// IsFileOf reports whether a turn of the worker has a file with that path and content.
func (s *Store) IsFileOf(ctx context.Context, workerID, path, sha256 string) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool,
		`SELECT EXISTS (SELECT 1 FROM files WHERE worker_id = ? AND path = ? AND sha256 = ?)`,
		workerID, path, sha256)
}

// FilesByWorker returns the published files of a worker that the caller may see, each in
// its newest version, newest first. It also returns the cursor of the next page, which is
// empty after the last.
func (s *Store) FilesByWorker(ctx context.Context, c people.Caller, workerID, cursor string,
	limit int) ([]ListedFile, string, error) {
	if _, err := workers.VisibleOrDeleted(ctx, s.db, c, workerID); err != nil {
		return nil, "", err
	}
	var f db.Fields
	of := db.ScopeOf("files", workerID)
	before := of.ReadNum(&f, cursor)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	const listed = ` FROM files INDEXED BY files_listed WHERE worker_id = ?1 AND origin = 'published' AND num < ?2
		ORDER BY num DESC `
	limit = db.PageLimit(limit)
	// The subquery is the outer loop, so its order is the result's.
	rows, err := db.All(ctx, s.db, scanListedFile, `SELECT `+fileColumns+`, num,
		(SELECT k.id FROM tasks k WHERE k.num = f.task_num)
		FROM (SELECT *`+listed+`LIMIT ?3) f
		WHERE NOT EXISTS (SELECT 1 FROM files g
			WHERE g.worker_id = ?1 AND g.path = f.path AND g.num > f.num AND g.origin = 'published')
		/* ORDER BY f.num DESC */ LIMIT ?4`, workerID, before, db.MaxScanned, limit+1)
	if err != nil {
		return nil, "", err
	}
	return db.Paginate(ctx, s.db, rows, limit, of, func(f ListedFile) []any { return []any{f.num} },
		`SELECT num`+listed+`LIMIT 1 OFFSET ?3`, workerID, before, db.MaxScanned-1)
}

// A ListedFile is a file of a worker, and the task that published it.
type ListedFile struct {
	File
	TaskID string
	num    int64
}

func scanListedFile(row db.Scanner) (f ListedFile, err error) {
	f.File, err = scanFile(db.ScannerFunc(func(dest ...any) error { return row.Scan(append(dest, &f.num, &f.TaskID)...) }))
	return f, err
}

// FilesByTask returns the files that a task's turns published, oldest first.
func (s *Store) FilesByTask(ctx context.Context, task TaskRef) ([]File, error) {
	return db.All(ctx, s.db, scanFile, `SELECT `+fileColumns+` FROM files WHERE task_num = ? AND origin = 'published'
		ORDER BY num`, task.taskKey())
}

// FilesByTurn returns the files that were attached to a turn, and those that the turn
// published, oldest first.
func (s *Store) FilesByTurn(ctx context.Context, t Turn) ([]File, error) {
	return db.All(ctx, s.db, scanFile, `SELECT `+fileColumns+` FROM files WHERE turn_num = ? ORDER BY num`, t.Num)
}
