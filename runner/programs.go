package runner

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"journeyman/runner/model"
	"journeyman/runner/toolset"
)

// programs holds the programs that commands can run. Each is started once, in the background: until
// that has ended, preambles name none.
type programs struct {
	begun atomic.Bool
	again atomic.Int64             // Unix time in milliseconds from which another try may begin, after a failed one
	list  atomic.Pointer[[]string] // nil until it is complete
}

// programsAgain is the pause after programs could not be started.
const programsAgain = 10 * time.Minute

// findPrograms starts the programs of the shell if this runner has not done so. A model in this process
// does not read about them, so servers that have no other model start none.
func (r *Runner) findPrograms() {
	own := r.tools().List
	i := slices.IndexFunc(own, func(t toolset.Tool) bool { return t.Name == "shell" })
	if i < 0 {
		return
	}
	shell, ok := own[i].Tool.(interface {
		Programs(context.Context) ([]string, error)
	})
	if !ok || r.cfg.Now().UnixMilli() < r.programs.again.Load() || !r.programs.begun.CompareAndSwap(false, true) {
		return
	}
	// The context ends first when the runner stops, so that Stop does not wait for programs.
	list, err := shell.Programs(r.claims)
	switch {
	case err == nil:
		r.programs.list.Store(&list)
	case r.claims.Err() == nil:
		r.cfg.Log.Warn("the programs of the shell are not known", "err", err)
		r.programs.again.Store(r.cfg.Now().Add(programsAgain).UnixMilli())
		r.programs.begun.Store(false)
	}
}

// startPrograms calls findPrograms in the background if the server's own model may need it.
func (r *Runner) startPrograms() {
	if r.cfg.Shell != nil && !model.Local(r.cfg.Model) {
		r.leaser.Go(r.findPrograms)
	}
}

// startedPrograms returns the programs that have started, as far as they are known. It never waits. A turn
// calls it.
func (r *Runner) startedPrograms() []string {
	if list := r.programs.list.Load(); list != nil {
		return *list
	}
	if r.cfg.Shell != nil && !r.programs.begun.Load() {
		r.turns.Go(r.findPrograms) // in a turn, so Stop still waits for r.turns
	}
	return nil
}
