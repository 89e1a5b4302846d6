package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"journeyman/runner/sandbox"
	"journeyman/store"
)

// workspace opens a folder. closeWorkspace must be called after use.
func (r *Runner) workspace(folder store.Folder) (*sandbox.Workspace, error) {
	f := &r.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	// Found and counted under one lock: the last user must not close it in between.
	if o := f.m[folder]; o != nil {
		o.users++
		return o.ws, nil
	}
	ws, err := sandbox.OpenWorkspace(store.FolderPath(r.cfg.Store.Dir(), folder), sandbox.Limits{})
	if err != nil {
		return nil, err
	}
	if f.m == nil {
		f.m = map[store.Folder]*openWorkspace{}
	}
	f.m[folder] = &openWorkspace{ws: ws, users: 1}
	return ws, nil
}

// Browse calls fn with a folder that exists, and reports false without a call otherwise: to
// look at a folder creates none. fn must change nothing in it.
func (r *Runner) Browse(folder store.Folder, fn func(*sandbox.Workspace) error) (exists bool, err error) {
	path := store.FolderPath(r.cfg.Store.Dir(), folder)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	ws, err := r.workspace(folder)
	if err != nil {
		return false, err
	}
	defer r.closeWorkspace(folder)
	return true, fn(ws)
}

// closeWorkspace ends one use of a folder. The last user closes it.
func (r *Runner) closeWorkspace(folder store.Folder) {
	f := &r.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.m[folder]
	if o.users--; o.users > 0 {
		return
	}
	delete(f.m, folder)
	if err := o.ws.Close(); err != nil {
		r.cfg.Log.Warn("close workspace", "worker", folder.WorkerID, "task", folder.TaskID, "err", err)
	}
	if folder.TaskID != "" {
		// Remove fails for a folder with files, and that is intended. An empty one is left by a
		// mail that came twice, for example. f.mu is held, so no turn can open it meanwhile.
		_ = os.Remove(store.FolderPath(r.cfg.Store.Dir(), folder))
	}
}

// openWorkspace opens the turn's folder before its first tool call. A turn without tool calls
// so creates no folder. carryOut closes it.
func (r *Runner) openWorkspace(ctx context.Context, e *execution) (err error) {
	if e.ws != nil {
		return nil
	}
	if e.ws, err = r.workspace(e.claim.Folder()); err != nil || !e.claim.OwnFolder {
		return err
	}
	return r.bringFiles(ctx, e)
}

// bringFiles copies files of the task that are stored under other addresses into the
// task's own folder. Tasks of strangers may be older than such folders: their files are in
// the shared folder, which their turns no longer see. It replaces no file.
func (r *Runner) bringFiles(ctx context.Context, e *execution) error {
	files, err := r.cfg.Store.FilesFromElsewhere(ctx, e.claim.Turn)
	if err != nil {
		return fmt.Errorf("read the task's files: %w", err)
	}
	for _, f := range store.NewestFiles(files) {
		if _, err := e.ws.Stat(f.Path); !sandbox.IsNotFound(err) {
			continue
		}
		data, err := r.readFile(f)
		if err == nil {
			err = e.ws.WriteFile(f.Path, data)
		}
		// A refusal means that the folder is full, or that another file has this path. The turn
		// can work without the file, so only other errors end it.
		if _, refused := errors.AsType[*sandbox.Error](err); err != nil && !refused {
			return fmt.Errorf("bring %s: %w", f.ID, err)
		}
	}
	return nil
}
