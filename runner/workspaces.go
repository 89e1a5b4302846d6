package runner

import (
	"path/filepath"
	"sync"

	"journeyman/runner/sandbox"
)

// workspaces are the open folders of workers, one for all the turns that work in
// it at once: so that edits do not lose one another and its limits are counted
// once.
type workspaces struct {
	mu sync.Mutex
	m  map[string]*openWorkspace // by worker id
}

type openWorkspace struct {
	ws    *sandbox.Workspace
	users int
}

// workspace opens the folder of a worker. closeWorkspace must be called after use.
func (r *Runner) workspace(workerID string) (*sandbox.Workspace, error) {
	f := &r.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.m[workerID]; o != nil {
		o.users++
		return o.ws, nil
	}
	ws, err := sandbox.OpenWorkspace(filepath.Join(r.cfg.Store.Dir(), "workspaces", workerID), sandbox.Limits{})
	if err != nil {
		return nil, err
	}
	if f.m == nil {
		f.m = map[string]*openWorkspace{}
	}
	f.m[workerID] = &openWorkspace{ws: ws, users: 1}
	return ws, nil
}

func (r *Runner) closeWorkspace(workerID string) {
	f := &r.folders
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.m[workerID]
	if o.users--; o.users > 0 {
		return
	}
	delete(f.m, workerID)
	if err := o.ws.Close(); err != nil {
		r.cfg.Log.Warn("close workspace", "worker", workerID, "err", err)
	}
}

// openWorkspace opens the worker's folder before a turn's first tool call.
func (r *Runner) openWorkspace(w *work) (err error) {
	if w.ws == nil {
		w.ws, err = r.workspace(w.claim.WorkerID)
	}
	return err
}
