package command

import (
	"context"
	"sync"
	"time"

	"journeyman/store"
	"journeyman/store/gate"
)

// DiskLimits holds the flags about the free space of the data folder's disk.
type DiskLimits struct {
	DiskReserve gate.DiskLimit `default:"5%,256MiB" help:"Free space of the data folder's disk below which the server refuses new work: a share, an amount, or both, of which the smaller applies; 0 turns it off." placeholder:"LIMIT"`
	DiskWarning gate.DiskLimit `default:"10%,1GiB" help:"Free space of that disk below which pages, metrics and alerts warn; 0 turns it off." placeholder:"LIMIT"`
	OrgDisk     gate.DiskLimit `default:"50%" help:"What one organization may store: contents of files, workspaces, mails and texts of tasks. A share is one of what is free at the start, with what the data folder already holds; 0 turns it off." placeholder:"LIMIT"`
}

// watchEvery is the time between two checks of the data folder's disk. Writes of 100 MB a second
// use 200 MB in this time, less than the usual reserve.
const watchEvery = 2 * time.Second

// WatchDisk checks the disk of the data folder every few seconds until stop is called.
func (p *Program) WatchDisk(st *store.Store) (stop func()) {
	ctx, cancel := context.WithCancel(p.Context)
	var loop sync.WaitGroup
	loop.Go(func() {
		for failed := ""; ; {
			err := st.WatchDisk(ctx)
			// The same error may occur for a long time: one line is enough.
			if err != nil && ctx.Err() == nil && err.Error() != failed {
				p.Log.Error("watch the disk", "err", err)
			}
			if failed = ""; err != nil {
				failed = err.Error()
			}
			select {
			case <-time.After(watchEvery):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); loop.Wait() }
}
