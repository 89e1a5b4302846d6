package lists

import (
	"net/http"
	"slices"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// A workerRow is a worker of the list.
type workerRow struct {
	workers.Worker
	Pinned bool
	By     string   // name of the creator
	Last   *taskRow // newest task; nil without one
	Days   []bar    // turns of the last days
	Turns  int64    // of these days
}

// A bar is a day of a small plot.
type bar struct{ X, Height int64 }

// The size of the small plot, in units of its view box.
const (
	barsHigh = 18
	barStep  = 4
)

// barsOf returns a plot of counts, and their sum. The highest bar fills the plot.
func barsOf(counts []int64) (bars []bar, sum int64) {
	most := slices.Max(append([]int64{1}, counts...))
	for i, n := range counts {
		sum += n
		if n > 0 {
			bars = append(bars, bar{int64(i) * barStep, max(1, n*barsHigh/most)})
		}
	}
	return bars, sum
}

// workerRows returns the rows of workers.
func (d *Pages) workerRows(r *frame.Request, list []workers.Worker) ([]workerRow, error) {
	pins, err := d.Store.Workers.Pins(r.Context(), r.Who.Caller)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	rows := make([]workerRow, 0, len(list))
	for _, w := range list {
		row := workerRow{Worker: w, Pinned: slices.ContainsFunc(pins, func(p workers.Pin) bool { return p.ID == w.ID })}
		row.By, err = frame.Once(names, w.UserID, func() (string, error) {
			return d.Store.People.UserName(r.Context(),
				w.UserID)
		})
		if err != nil {
			return nil, err
		}
		counts, err := d.Store.Effects.WorkerActivity(r.Context(), w)
		if err != nil {
			return nil, err
		}
		row.Days, row.Turns = barsOf(counts)
		if row.Last, err = d.lastTask(r, w); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// lastTask returns the row of a worker's newest task, or nil if it has none.
func (d *Pages) lastTask(r *frame.Request, w workers.Worker) (*taskRow, error) {
	last, err := d.Store.LatestTask(r.Context(), w)
	if db.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := d.taskRows(r, nil, []store.Task{last})
	if err != nil {
		return nil, err
	}
	if rows[0].Mine, err = d.waitsFor(r, last); rows[0].Mine {
		rows[0].State = "waiting"
	}
	return &rows[0], err
}

// waitsFor reports whether a task waits for a decision or an answer of the user.
func (d *Pages) waitsFor(r *frame.Request, t store.Task) (bool, error) {
	if t.Wait == nil || t.Wait.For != store.WaitForPerson {
		return false, nil
	}
	list, _, err := d.Store.Approvals(r.Context(), r.Who.Caller,
		store.ApprovalQuery{TaskID: t.ID, Mine: true, Limit: frame.ApprovalsOfTask})
	return slices.ContainsFunc(list, func(a store.Approval) bool { return a.Status == store.ApprovalPending }), err
}

// keepWorker puts a worker that a task made into the lists.
func (d *Pages) keepWorker(r *frame.Request) (string, error) {
	kept := workers.CreatedOrigin
	w, err := d.Store.Workers.UpdateWorker(r.Context(), r.Who.Caller, r.Params.ByName("workerId"),
		workers.Patch{Origin: &kept})
	return frame.Done("/workers/"+w.ID, "worker-kept"), err
}

func (d *Pages) pinWorker(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return backTo(f), d.Store.Workers.PinWorker(r.Context(), r.Who.Caller, r.Params.ByName("workerId"))
}

func (d *Pages) unpinWorker(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return backTo(f), d.Store.Workers.UnpinWorker(r.Context(), r.Who.Caller, r.Params.ByName("workerId"))
}

// backTo returns the page from which a form was sent, if it is on this server, otherwise the list
// of workers.
func backTo(f *frame.Form) string {
	if to := frame.LocalPage(f.Get("back")); to != "/" {
		return to
	}
	return "/workers"
}
