package store

import (
	"cmp"
	"context"
	"math"
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

// FilesByWorker lists the published files of a worker that the caller may see, each
// in its newest version, newest first, and the cursor of the next page, empty after
// the last.
func (s *Store) FilesByWorker(ctx context.Context, c Caller, workerID, cursor string, limit int) ([]ListedFile, string, error) {
	if _, err := s.seenWorker(ctx, s, c, workerID); err != nil {
		return nil, "", err
	}
	var f Fields
	checkCursor(&f, cursor)
	after, err := parseCursor(cursor)
	if err = cmp.Or(f.Err(), err); err != nil {
		return nil, "", err
	}
	before := int64(math.MaxInt64)
	if after != nil {
		before = after[1]
	}
	const listed = ` FROM files INDEXED BY files_listed WHERE worker_id = ?1 AND origin = 'published' AND num < ?2 ORDER BY num DESC `
	limit = pageLimit(limit)
	// The subquery is the outer loop, so its order is the result's.
	rows, err := all(ctx, s, scanListedFile, `SELECT `+fileColumns+`, num, (SELECT k.id FROM tasks k WHERE k.num = f.task_num)
		FROM (SELECT *`+listed+`LIMIT ?3) f
		WHERE NOT EXISTS (SELECT 1 FROM files g WHERE g.worker_id = ?1 AND g.path = f.path AND g.num > f.num AND g.origin = 'published')
		LIMIT ?4`, workerID, before, maxScanned, limit+1)
	if err != nil {
		return nil, "", err
	}
	position := func(f ListedFile) []int64 { return []int64{0, f.num} }
	return paginate(ctx, s, rows, limit, position, `SELECT 0, num`+listed+`LIMIT 1 OFFSET ?3`, workerID, before, maxScanned-1)
}

// A ListedFile is a file of a worker, and the task that made it.
type ListedFile struct {
	File
	TaskID string
	num    int64
}

func scanListedFile(row scanner) (f ListedFile, err error) {
	f.File, err = scanFile(scannerFunc(func(dest ...any) error { return row.Scan(append(dest, &f.num, &f.TaskID)...) }))
	return f, err
}

// scannerFunc is a func as a scanner.
type scannerFunc func(dest ...any) error

// Scan calls f.
func (f scannerFunc) Scan(dest ...any) error { return f(dest...) }

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
