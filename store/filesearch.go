package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
)

// A FoundFile is a published file that a search has found.
type FoundFile struct {
	WorkerID, Worker string // id and title
	Path             string
}

// The limits of a search for files. It reads only the files of the newest workers.
const (
	maxWorkersSearched = 200
	MaxSearched        = 5000 // records of one kind that a search reads at most
)

// SearchFiles returns published files whose path contains text, of workers that the caller
// may see: those of the newest workers first.
func (s *Store) SearchFiles(ctx context.Context, c people.Caller, text string, limit int) ([]FoundFile, error) {
	var f db.Fields
	db.CheckLine(&f, "q", text, db.MaxQueryText)
	if err := f.Err(); err != nil || text == "" {
		return nil, err
	}
	scan := func(row db.Scanner) (f FoundFile, err error) {
		err = row.Scan(&f.WorkerID, &f.Worker, &f.Path)
		return f, err
	}
	// A file has a row for each version, so more rows are read than files returned.
	list, err := db.All(ctx, s.db, scan, `SELECT worker, title, path FROM (SELECT w.id worker, w.title title, f.path path,
				w.num place, f.num version
			FROM (SELECT * FROM workers INDEXED BY workers_by_organization
				WHERE organization_id = ?1 AND deleted_at IS NULL ORDER BY num DESC LIMIT ?2) w
			CROSS JOIN files f INDEXED BY files_listed ON f.worker_id = w.id AND f.origin = 'published'
			WHERE (w.visibility = 'public' OR ?3 OR w.user_id = ?4
				OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?4))
			/* ORDER BY w.num DESC, f.num */ LIMIT ?5) AS listed
		WHERE path LIKE ?6 ESCAPE '\' /* ORDER BY place DESC, version */ LIMIT ?7`,
		c.OrganizationID, maxWorkersSearched, c.Role.Manages(), c.UserID, MaxSearched, db.LikePattern(text), 10*limit)
	if err != nil {
		return nil, err
	}
	known, found := map[FoundFile]bool{}, list[:0]
	for _, f := range list {
		if !known[f] && len(found) < limit {
			known[f], found = true, append(found, f)
		}
	}
	return found, nil
}
