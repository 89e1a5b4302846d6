package store

import (
	"context"
	"time"
)

// Where a file of a task comes from.
const (
	Attached  = "attached"  // by the client, with the instruction
	Published = "published" // by the worker
)

// A File is a file as it was when it was attached or published.
type File struct {
	ID        string // from NewID("fil", ...)
	WorkerID  string
	TurnNum   int64
	Origin    string // Attached or Published
	Path      string // in the workspace
	Title     string
	MediaType string
	Size      int64  // in bytes
	SHA256    string // in hexadecimal; names its blob
	CreatedAt time.Time
}

const fileColumns = `id, worker_id, turn_num, origin, path, title, media_type, size, sha256, created_at`

func scanFile(row scanner) (f File, err error) {
	var created int64
	err = row.Scan(&f.ID, &f.WorkerID, &f.TurnNum, &f.Origin, &f.Path, &f.Title, &f.MediaType, &f.Size, &f.SHA256, &created)
	f.CreatedAt = fromMillis(created)
	return f, err
}

func (s *Store) insertFile(tx *Tx, t Turn, origin string, f File, now int64) error {
	if f.ID == "" {
		f.ID = NewID("fil", s.now())
	}
	_, err := tx.Exec(`INSERT INTO files (id, worker_id, task_num, turn_num, origin, path, title, media_type, size, sha256, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, t.WorkerID, t.TaskNum, t.Num, origin, f.Path, f.Title, f.MediaType, f.Size, f.SHA256, now)
	return err
}

// File gives the newest file at a path of a worker, or with version, the first 12
// characters of its SHA-256, the one of that content. The files of a deleted worker
// keep their addresses.
func (s *Store) File(ctx context.Context, c Caller, workerID, path, version string) (File, error) {
	if _, err := s.seenWorker(ctx, s, c, workerID); err != nil {
		return File{}, err
	}
	f, err := one(ctx, s, scanFile, `SELECT `+fileColumns+` FROM files WHERE worker_id = ?1 AND path = ?2
		AND (?3 = '' OR substr(sha256, 1, 12) = ?3) ORDER BY num DESC LIMIT 1`, workerID, path, version)
	return f, notFound(err, "file")
}

// FilesByTask lists what a task's turns published, oldest first.
func (s *Store) FilesByTask(ctx context.Context, taskNum int64) ([]File, error) {
	return all(ctx, s, scanFile, `SELECT `+fileColumns+` FROM files WHERE task_num = ? AND origin = 'published' ORDER BY num`, taskNum)
}

// FilesByTurn lists what was attached to a turn and what it published, oldest
// first.
func (s *Store) FilesByTurn(ctx context.Context, turnNum int64) ([]File, error) {
	return all(ctx, s, scanFile, `SELECT `+fileColumns+` FROM files WHERE turn_num = ? ORDER BY num`, turnNum)
}

// SourcesByTurn lists the sources that a turn was the first of its task to use.
func (s *Store) SourcesByTurn(ctx context.Context, turnNum int64) ([]Source, error) {
	return all(ctx, s, scanSource, `SELECT id, turn_num, url, title FROM sources WHERE turn_num = ? ORDER BY num`, turnNum)
}
