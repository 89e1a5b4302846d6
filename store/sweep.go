package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"journeyman/store/db"
)

const (
	// orphanAge is the time for which bytes and folders without a reference are kept. The request
	// or tool call that stored them adds a reference within this time, or never.
	orphanAge = 24 * time.Hour

	// One call sweeps only a small part of everything, so that no call takes long.
	sweptBlobFolders = 4
	sweptOwnFolders  = 1000
)

// SweepBlobs removes bytes that nothing refers to, such as the files of refused requests and of
// forgotten mail. Each call continues where the last one stopped and looks at a small part:
// blobFolders/sweptBlobFolders calls look at everything. It returns the number of removed blobs. It
// does nothing while a backup runs, and stops when the store refuses writes: see WritableIn.
func (s *Store) SweepBlobs(ctx context.Context) (n int64, err error) {
	if !s.backups.TryLock() {
		return 0, nil
	}
	defer s.backups.Unlock()
	for range sweptBlobFolders {
		removed, err := s.sweepBlobFolder(ctx, fmt.Sprintf("%02x", s.nextBlobs))
		if n += removed; err != nil {
			return n, fmt.Errorf("remove files without use: %w", err)
		}
		s.nextBlobs = (s.nextBlobs + 1) % blobFolders
	}
	return n, nil
}

// sweepBlobFolder removes the blobs of a folder that nothing refers to, from the bucket, too.
func (s *Store) sweepBlobFolder(ctx context.Context, folder string) (n int64, err error) {
	if s.bucket != nil {
		if n, err = s.sweepBucket(ctx, folder); err != nil {
			return n, err
		}
	}
	entries, err := readDir(filepath.Join(s.blobDir(), folder))
	for _, e := range entries {
		removed, err := s.sweepBlob(ctx, e.Name())
		if err != nil {
			return n, err
		}
		if removed && s.bucket == nil {
			n++
		}
	}
	return n, err
}

// readDir is os.ReadDir that returns nothing for a folder that does not exist.
func readDir(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// sweepBlob removes a blob unless a row refers to it, or may do so soon.
func (s *Store) sweepBlob(ctx context.Context, name string) (removed bool, err error) {
	sha, begun := strings.CutSuffix(name, removedSuffix)
	if !isSHA256(sha) {
		return false, nil // a file of another program
	}
	if begun { // a process was killed during the removal
		return s.endRemoval(s.blobPath(sha))
	}
	if old, err := s.isOldBlob(sha); err != nil || !old {
		return false, err
	}
	if used, err := s.usesBlob(ctx, sha); err != nil || used {
		return false, err
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	// A request that has stored the same bytes since then has renewed the blob's time.
	if old, err := s.isOldBlob(sha); err != nil || !old {
		return false, err
	}
	if err := s.Gate.WritableIn(ctx); err != nil { // maintenance may begin in the middle of a sweep
		return false, err
	}
	// On another node a request may store the same bytes at any moment. It then replaces the blob by a
	// new one. No request replaces the renamed file.
	path := s.blobPath(sha)
	if err := os.Rename(path, path+removedSuffix); err != nil {
		return false, err
	}
	return s.endRemoval(path)
}

// endRemoval completes a removal: it deletes the renamed blob. If a request has meanwhile stored
// the same bytes, endRemoval restores the name instead.
func (s *Store) endRemoval(path string) (removed bool, err error) {
	info, err := os.Stat(path + removedSuffix)
	switch {
	case err == nil && s.isOrphan(info.ModTime()):
		removed, err = true, os.Remove(path+removedSuffix)
	case err == nil:
		err = os.Rename(path+removedSuffix, path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // another node has ended it
	}
	return removed, err
}

// isSHA256 reports whether a file has the name of a blob.
func isSHA256(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == sha256.Size
}

// usesBlob reports whether a row refers to a blob.
func (s *Store) usesBlob(ctx context.Context, sha string) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM files WHERE sha256 = ?1)
		OR EXISTS (SELECT 1 FROM call_images WHERE sha256 = ?1)
		OR EXISTS (SELECT 1 FROM inbound_emails WHERE source_sha256 = ?1)
		OR EXISTS (SELECT 1 FROM outbound_emails WHERE source_sha256 = ?1)`, sha)
}

// isOldBlob reports whether a blob exists and no request has stored its bytes for orphanAge.
func (s *Store) isOldBlob(sha string) (bool, error) {
	info, err := os.Stat(s.blobPath(sha))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && s.isOrphan(info.ModTime()), err
}

// isOrphan reports whether bytes or a folder of that time may be removed if nothing refers to
// them.
func (s *Store) isOrphan(at time.Time) bool {
	return s.now().Sub(at) > orphanAge && at.After(s.keptUntil)
}

// SweepFolders removes own folders of tasks that do not exist. A crash leaves such a
// folder if it comes between storing attachments and accepting the turn. Each call
// continues where the last one stopped, and begins again after the end. It returns how
// many folders it removed.
func (s *Store) SweepFolders(ctx context.Context) (n int64, err error) {
	if !s.backups.TryLock() {
		return 0, nil
	}
	defer s.backups.Unlock()
	folders, listErr := s.ownFoldersAfter(s.lastSwept, sweptOwnFolders)
	for _, f := range folders {
		s.lastSwept = f // before the attempt, so that a folder that fails does not stop the others
		removed, err := s.sweepOwnFolder(ctx, f[0], f[1])
		if err != nil {
			return n, fmt.Errorf("remove folders without a task: %w", err)
		}
		if removed {
			n++
		}
	}
	if len(folders) < sweptOwnFolders {
		s.lastSwept = [2]string{}
	}
	return n, listErr
}

// ownFoldersAfter returns the own folders of tasks that follow after, at most limit of
// them. Each is the id of a worker and the name of the folder.
func (s *Store) ownFoldersAfter(after [2]string, limit int) (list [][2]string, err error) {
	workspaces := filepath.Join(s.dir, "workspaces")
	workers, err := readDir(workspaces)
	for _, w := range workers {
		workerID, ok := strings.CutSuffix(w.Name(), ownFoldersSuffix)
		if !ok || workerID < after[0] {
			continue
		}
		folders, err := readDir(filepath.Join(workspaces, w.Name()))
		if err != nil {
			return list, err
		}
		for _, f := range folders {
			switch {
			case workerID == after[0] && f.Name() <= after[1]:
				continue
			case len(list) == limit:
				return list, nil
			}
			list = append(list, [2]string{workerID, f.Name()})
		}
	}
	return list, err
}

// sweepOwnFolder removes a folder unless its task exists, or may exist soon.
func (s *Store) sweepOwnFolder(ctx context.Context, workerID, name string) (removed bool, err error) {
	taskID := taskOfFolder(name)
	if taskID == "" {
		return false, nil // some other program's folder
	}
	path := FolderPath(s.dir, Folder{WorkerID: workerID, TaskID: taskID})
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !s.isOrphan(info.ModTime()) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	used, err := db.One(ctx, s.db, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?
		AND worker_num = `+db.WorkerNum+`)`, taskID, workerID)
	if err == nil && !used {
		err = s.Gate.WritableIn(ctx) // maintenance may begin in the middle of a sweep
	}
	if err != nil || used {
		return false, err
	}
	return true, os.RemoveAll(path)
}
