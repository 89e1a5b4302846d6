package runner

import (
	"errors"
	"io/fs"
	"os"

	"journeyman/runner/workspace"
	"journeyman/store"
)

// workspace opens a folder, whose content counts for disk. The caller must call closeWorkspace after use.
func (r *Runner) workspace(folder store.Folder, disk store.OrgDisk) (*workspace.Workspace, error) {
	f := &r.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	// Look up and count under one lock, so that the last user does not close the folder in between.
	if o := f.m[folder]; o != nil {
		o.users++
		return o.ws, nil
	}
	ws, err := workspace.Open(store.FolderPath(r.cfg.Store.Dir(), folder),
		workspace.Limits{FileSize: r.cfg.FileSize, Quota: disk})
	if err != nil {
		return nil, err
	}
	if f.m == nil {
		f.m = map[store.Folder]*openWorkspace{}
	}
	f.m[folder] = &openWorkspace{ws: ws, users: 1}
	return ws, nil
}

// Browse calls fn with an existing folder. It returns false and does not call fn if the folder does
// not exist, because browsing must not create it. fn must not change the folder.
func (r *Runner) Browse(folder store.Folder, fn func(*workspace.Workspace) error) (exists bool, err error) {
	path := store.FolderPath(r.cfg.Store.Dir(), folder)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	disk, err := r.cfg.Store.DiskOfWorker(r.ctx, folder.WorkerID)
	if err != nil {
		return false, err
	}
	ws, err := r.workspace(folder, disk)
	if err != nil {
		return false, err
	}
	defer r.closeWorkspace(folder)
	return true, fn(ws)
}

// closeWorkspace ends one use of a folder. The last use closes the folder.
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
		// Remove fails for a non-empty folder, as intended. A repeated mail can leave an empty
		// folder, for example. f.mu is held, so no turn can open the folder meanwhile.
		_ = os.Remove(store.FolderPath(r.cfg.Store.Dir(), folder))
	}
}

// openWorkspace opens the turn's folder before its first tool call. So a turn without tool calls
// creates no folder. leave closes the folder.
func (r *Runner) openWorkspace(e *execution) (err error) {
	if e.ws != nil {
		return nil
	}
	e.ws, err = r.workspace(e.claim.Folder(), r.cfg.Store.DiskOf(e.claim.OrganizationID))
	return err
}
