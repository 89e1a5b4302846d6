package store

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// waiting counts the turns in the queue: the total and the number of each organization. The counts
// are kept in memory, so that accepting a turn costs no query: only Open counts rows. Among nodes,
// CatchUp counts them again and again, because other nodes add and claim turns, too.
type waiting struct {
	perOrganization int64 // greatest number of waiting turns of one organization
	inAll           int64 // greatest number of waiting turns of all organizations
	shared          bool  // other nodes use the same queue

	mu    sync.Mutex // held only briefly
	total int64
	by    map[string]int64 // by organization, for those that have waiting turns

	// The additions that a count of the rows may not have seen. The value tells whether their writes are
	// committed. It is empty unless shared.
	underWay map[*addition]bool
}

// An addition is a number of turns that a write adds.
type addition struct {
	organizationID string
	n              int64
}

// accept counts one more turn of an organization. It returns a Busy error if the organization may
// add no turn to the queue. It counts at once, not at the commit, so that writes at the same time
// keep the limits together.
func (w *waiting) accept(tx Tx, organizationID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusal(organizationID); err != nil {
		return err
	}
	w.addHeld(tx, organizationID, 1)
	return nil
}

// add counts n more turns of an organization, or fewer if n is negative, whatever the limits.
func (w *waiting) add(tx Tx, organizationID string, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addHeld(tx, organizationID, n)
}

// addHeld is add for a caller that holds w.mu. It subtracts the turns if the write is undone.
func (w *waiting) addHeld(tx Tx, organizationID string, n int64) {
	w.change(organizationID, n)
	a := &addition{organizationID, n}
	if w.shared && n > 0 {
		w.underWay[a] = false
		tx.OnCommit(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.underWay[a] = true
		})
	}
	tx.OnUndo(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.underWay, a)
		w.change(organizationID, -n)
	})
}

// change changes the counts. w.mu is held.
func (w *waiting) change(organizationID string, n int64) {
	w.total += n
	if w.by[organizationID] += n; w.by[organizationID] == 0 {
		delete(w.by, organizationID)
	}
}

// begin must be called before a count of the rows, which sees all committed additions.
func (w *waiting) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.underWay, func(_ *addition, committed bool) bool { return committed })
}

// set replaces the counts by those of the rows. Additions that the count may have missed are counted in
// any case: otherwise their turns could wait until the next count.
func (w *waiting) set(total int64, by map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.by = total, by
	for a := range w.underWay {
		w.change(a.organizationID, a.n)
	}
}

// counts returns the number of waiting turns: of all organizations, and of one.
func (w *waiting) counts(organizationID string) (total, own int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total, w.by[organizationID]
}

// full returns a Busy error if an organization may add no turn to the queue.
func (w *waiting) full(organizationID string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal(organizationID)
}

// refusal is full for a caller that holds w.mu.
func (w *waiting) refusal(organizationID string) error {
	total, own := w.total, w.by[organizationID]
	switch {
	case own >= w.perOrganization:
		return Errorf(Busy, "the organization's queue is full: %d of its turns are waiting, which is the limit; "+
			"try again when some of them have run, or cancel tasks", own)
	case total >= w.inAll:
		return Errorf(Busy, "the server's queue is full: %d turns are waiting, which is the limit; try again later",
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
	mu           sync.Mutex // guards the fields below, for engines that run writes side by side
	organization int64
	workers      map[int64]int64 // the last worker of each organization
}

// lastOrganization returns the organization of the last claim.
func (f *fairness) lastOrganization() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.organization
}

// lastWorker returns the worker of the last claim in an organization.
func (f *fairness) lastWorker(organization int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workers[organization]
}

// follow records the turn of a claim. If the claim is undone, the order is as it was before.
func (f *fairness) follow(tx Tx, organization, worker int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.workers == nil {
		f.workers = map[int64]int64{}
	}
	before, worked := f.organization, f.workers[organization]
	tx.OnUndo(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.organization, f.workers[organization] = before, worked
	})
	f.organization, f.workers[organization] = organization, worker
}

// Queued returns the number of waiting turns. Among nodes, it is as old as the last CatchUp.
func (s *Store) Queued() int64 {
	total, _ := s.waiting.counts("")
	return max(total, 0)
}

// ScheduleRoom returns how many turns schedules may add to the queue of all
// organizations together: they fill at most half of it. DueSchedules keeps each
// organization within its own half. While the disk is full, it returns 0: see Room.
func (s *Store) ScheduleRoom() int64 {
	if s.Room() != nil {
		return 0
	}
	return s.waiting.inAll/2 - s.Queued()
}

// countQueue counts the turns that an earlier process left waiting, or that any node has added or claimed.
func (s *Store) countQueue(ctx context.Context) error {
	s.waiting.begin()
	var total int64
	by := map[string]int64{}
	add := func(row scanner) (struct{}, error) {
		var organizationID string
		var n int64
		err := row.Scan(&organizationID, &n)
		total += n
		by[organizationID] += n
		return struct{}{}, err
	}
	// Two ranges of the index. A turn that becomes ready meanwhile may count twice, but is not missed.
	for _, ready := range []int{0, 1} {
		_, err := all(ctx, s.db, add, `SELECT `+idOfOrganization+`, count(*) FROM turns INDEXED BY turns_queued
			WHERE status = 'pending' AND ready = ? GROUP BY organization_num`, ready)
		if err != nil {
			return fmt.Errorf("count queue: %w", err)
		}
	}
	s.waiting.set(total, by)
	return nil
}
