package store

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"journeyman/store/db"
	"journeyman/store/people"
)

// waiting counts the turns in the queue: the total and the number of each organization. The counts
// are kept in memory, so that accepting a turn costs no query: only Open counts rows. Among nodes,
// CatchUp counts them again and again, because other nodes add and claim turns, too.
type waiting struct {
	perOrganization int64 // greatest number of waiting turns of one organization
	inAll           int64 // greatest number of waiting turns of all organizations
	shared          bool  // other nodes use the same queue

	mu    sync.Mutex // held only briefly
	total laneCounts
	by    map[string]laneCounts // by organization, for those that have waiting turns

	// announced counts turns that other nodes have queued since the last count of the rows; counted is the part of it
	// that the count under way sees.
	announced, counted int64

	// The additions that a count of the rows may not have seen. The value tells whether their writes are
	// committed. It is empty unless shared.
	underWay map[*addition]bool
}

// laneCounts are the numbers of waiting turns of each lane.
type laneCounts [lanes]int64

// all returns the number of turns of all lanes.
func (c laneCounts) all() int64 { return c[ofMembers] + c[ofStrangers] }

// forStrangers returns the share of strangers in a limit: a quarter, at least one. The rest is for
// members, whatever strangers send.
func forStrangers(limit int64) int64 { return max(1, limit/4) }

// An addition is a number of turns that a write adds.
type addition struct {
	organizationID string
	lane           lane
	n              int64
}

// accept counts one more turn of an organization. It returns a Busy error if the organization may
// add no turn to the queue. It counts at once, not at the commit, so that writes at the same time
// keep the limits together.
func (w *waiting) accept(tx db.Tx, organizationID string, stranger bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusal(organizationID, stranger); err != nil {
		return err
	}
	w.addHeld(tx, addition{organizationID, laneOf(stranger), 1})
	return nil
}

// add counts n more turns of an organization, or fewer if n is negative, whatever the limits.
func (w *waiting) add(tx db.Tx, organizationID string, l lane, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addHeld(tx, addition{organizationID, l, n})
}

// addHeld is add for a caller that holds w.mu. It subtracts the turns if the write is undone.
func (w *waiting) addHeld(tx db.Tx, a addition) {
	w.change(a)
	if w.shared && a.n > 0 {
		w.underWay[&a] = false
		tx.OnCommit(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.underWay[&a] = true
		})
	}
	tx.OnUndo(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.underWay, &a)
		w.change(addition{a.organizationID, a.lane, -a.n})
	})
}

// change changes the counts. w.mu is held.
func (w *waiting) change(a addition) {
	w.total[a.lane] += a.n
	own := w.by[a.organizationID]
	own[a.lane] += a.n
	if w.by[a.organizationID] = own; own == (laneCounts{}) {
		delete(w.by, a.organizationID)
	}
}

// begin must be called before a count of the rows, which sees all committed additions.
func (w *waiting) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted = w.announced
	maps.DeleteFunc(w.underWay, func(_ *addition, committed bool) bool { return committed })
}

// set replaces the counts by those of the rows. Additions that the count may have missed are counted in
// any case: otherwise their turns could wait until the next count.
func (w *waiting) set(total laneCounts, by map[string]laneCounts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total, w.by = total, by
	w.announced, w.counted = max(0, w.announced-w.counted), 0
	for a := range w.underWay {
		w.change(*a)
	}
}

// counts returns the number of waiting turns: of all organizations, and of one.
func (w *waiting) counts(organizationID string) (total, own int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total.all(), w.by[organizationID].all()
}

// in returns the number of waiting turns of a lane, and of those that other nodes have announced.
func (w *waiting) in(l lane) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total[l] + w.announced
}

// announce counts n turns that other nodes have queued, until the next count of the rows. No limit includes them,
// since their lane and their organization are not known.
func (w *waiting) announce(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.announced += n
}

// announcements returns the number of announced turns.
func (w *waiting) announcements() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.announced
}

// foundNoMore drops n announced turns: a claim that began later has found all that this node may claim.
func (w *waiting) foundNoMore(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.announced, w.counted = max(0, w.announced-n), max(0, w.counted-n)
}

// full returns a Busy error if an organization may add no turn of a member, or of a stranger, to the
// queue.
func (w *waiting) full(organizationID string, stranger bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal(organizationID, stranger)
}

// refusal is full for a caller that holds w.mu.
func (w *waiting) refusal(organizationID string, stranger bool) error {
	total, own := w.total, w.by[organizationID]
	switch {
	case own.all() >= w.perOrganization:
		return db.Errorf(db.Busy, "the organization's queue is full: %d of its turns are waiting, which is the limit; "+
			"try again when some of them have run, or cancel tasks", own.all())
	case total.all() >= w.inAll:
		return db.Errorf(db.Busy, "the server's queue is full: %d turns are waiting, which is the limit; try again later",
			total.all())
	case stranger && own[ofStrangers] >= forStrangers(w.perOrganization),
		stranger && total[ofStrangers] >= forStrangers(w.inAll):
		return db.Errorf(db.Busy, "too much work of people who are not members is waiting; try again later")
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

// fairness remembers which turn of each lane was claimed last. The next claim is of the next
// organization, and there of the next worker.
type fairness struct {
	mu      sync.Mutex // guards the fields below, for engines that run writes side by side
	circles [lanes]circle
	members int // claims of members' turns since the last one of a stranger's
}

// A circle is the order of the organizations and workers of a lane.
type circle struct {
	organization int64           // of the last claim
	workers      map[int64]int64 // the last worker of each organization
}

// lastOrganization returns the organization of a lane's last claim.
func (f *fairness) lastOrganization(l lane) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.circles[l].organization
}

// lastWorker returns the worker of a lane's last claim in an organization.
func (f *fairness) lastWorker(l lane, organization int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.circles[l].workers[organization]
}

// strangersNext reports whether a stranger's turn is next, before those of members.
func (f *fairness) strangersNext() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members >= 3
}

// follow records the turn of a claim. If the claim is undone, the order is as it was before.
func (f *fairness) follow(tx db.Tx, l lane, organization, worker int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &f.circles[l]
	if c.workers == nil {
		c.workers = map[int64]int64{}
	}
	before, worked, members := c.organization, c.workers[organization], f.members
	tx.OnUndo(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		c.organization, c.workers[organization], f.members = before, worked, members
	})
	c.organization, c.workers[organization] = organization, worker
	if f.members++; l == ofStrangers {
		f.members = 0
	}
}

// Queued returns the number of waiting turns. Among nodes, it is as old as the last CatchUp, and includes the turns that
// other nodes have announced since.
func (s *Store) Queued() int64 {
	total, _ := s.waiting.counts("")
	return max(total+s.waiting.announcements(), 0)
}

// Announce says that another node has queued n turns, which the last CatchUp may not have counted. The next ClaimTurns
// looks for them.
func (s *Store) Announce(n int) { s.waiting.announce(int64(n)) }

// QueueRoom returns the Busy error with which a new turn of c would be refused now because the queue is full.
func (s *Store) QueueRoom(c people.Caller) error {
	return s.waiting.full(c.OrganizationID, c.Stranger())
}

// ScheduleRoom returns how many turns schedules may add to the queue of all
// organizations together: they fill at most half of it. DueSchedules keeps each
// organization within its own half. While the disk is full, it returns 0: see gate.Gate.Room.
func (s *Store) ScheduleRoom() int64 {
	if s.Gate.Room() != nil {
		return 0
	}
	return s.waiting.inAll/2 - s.Queued()
}

// countQueue counts the turns that an earlier process left waiting, or that any node has added or claimed.
func (s *Store) countQueue(ctx context.Context) error {
	s.waiting.begin()
	var total laneCounts
	by := map[string]laneCounts{}
	for l := range lanes {
		// Two ranges of the lane's index. A turn that becomes ready meanwhile may count twice, but is not missed.
		for _, ready := range []int{0, 1} {
			_, err := db.All(ctx, s.db, func(row db.Scanner) (struct{}, error) {
				var organizationID string
				var n int64
				err := row.Scan(&organizationID, &n)
				own := by[organizationID]
				own[l] += n
				total[l] += n
				by[organizationID] = own
				return struct{}{}, err
			}, `SELECT `+db.OrganizationID+`, count(*) FROM turns`+l.waiting()+`ready = ? GROUP BY organization_num`, ready)
			if err != nil {
				return fmt.Errorf("count queue: %w", err)
			}
		}
	}
	s.waiting.set(total, by)
	return nil
}
