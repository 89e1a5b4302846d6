package store

import "sync"

// waiting counts the turns that wait in the queue, in all and by organization. The
// counts are kept in memory, so that accepting a turn costs no query: only Open counts
// rows.
type waiting struct {
	perOrganization int64 // most turns of one organization
	inAll           int64 // most turns of all together

	mu    sync.Mutex // held for moments
	total int64
	by    map[string]int64 // by organization, for those that have waiting turns
}

// add counts n more turns of an organization, or fewer if n is negative. It counts at
// once, not at the commit: the operations of one transaction keep the limits together.
func (w *waiting) add(tx Tx, organizationID string, n int64) {
	w.change(organizationID, n)
	tx.OnUndo(func() { w.change(organizationID, -n) })
}

func (w *waiting) change(organizationID string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total += n
	if w.by[organizationID] += n; w.by[organizationID] == 0 {
		delete(w.by, organizationID)
	}
}

// set replaces the counts.
func (w *waiting) set(total int64, by map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.by = total, by
}

// counts returns how many turns wait, in all and of one organization.
func (w *waiting) counts(organizationID string) (total, own int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total, w.by[organizationID]
}

// full returns a Busy error if an organization may add no turn to the queue.
func (w *waiting) full(organizationID string) error {
	total, own := w.counts(organizationID)
	switch {
	case own >= w.perOrganization:
		return Errorf(Busy, "the organization's queue is full: %d of its turns are waiting, the most there may be; "+
			"try again when some of them have run, or cancel tasks", own)
	case total >= w.inAll:
		return Errorf(Busy, "the server's queue is full: %d turns are waiting, the most there may be; try again later",
			total)
	}
	return nil
}

// scheduleRoom returns how many turns schedules may add to an organization's queue.
// Schedules fill at most half of it, so that people can still add turns when many
// schedules are due at once.
func (w *waiting) scheduleRoom(organizationID string) int64 {
	_, own := w.counts(organizationID)
	return w.perOrganization/2 - own
}

// fairness remembers which turn was claimed last. The next claim is of the next
// organization, and there of the next worker.
type fairness struct {
	organization int64
	workers      map[int64]int64 // the last worker of each organization
}

// follow notes the turn of a claim. If the claim is undone, the order is as it was before.
func (f *fairness) follow(tx Tx, organization, worker int64) {
	if f.workers == nil {
		f.workers = map[int64]int64{}
	}
	before, worked := f.organization, f.workers[organization]
	tx.OnUndo(func() { f.organization, f.workers[organization] = before, worked })
	f.organization, f.workers[organization] = organization, worker
}
