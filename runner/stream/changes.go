package stream

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"journeyman/runner/view"
	"journeyman/store/db"
)

// This file sends the dashboard pages of an organization the kinds of records that have changed.
// An event contains only these kinds: a page reads the records again, with the rights of its user.

// A changeLog counts the changes of each organization. A page or a returning client sends the
// position of its last change, and gets only the changes after it.
type changeLog struct {
	now func() time.Time

	mu      sync.Mutex // guards the fields below, except changed
	begun   time.Time  // the log contains all changes since this time
	start   string     // prefix of this log's positions
	counts  map[string]*changeCounts
	changed signals // by organization id
}

// changeCounts holds the changes of one organization since the start of the process.
type changeCounts struct {
	total int64
	last  map[db.Change]lastChange
}

// A lastChange is the last change of a kind.
type lastChange struct {
	number int64 // the value of total at the change
	at     time.Time
}

// changeMargin is subtracted from the time in a position of another node. Changes that happened within
// this margin are sent again: the clocks of nodes differ, and a change arrives late.
const changeMargin = 5 * time.Second

func newChangeLog(now func() time.Time) *changeLog {
	l := &changeLog{now: now, counts: map[string]*changeCounts{}}
	l.begin()
	return l
}

// begin makes all positions unknown. The caller holds mu, or has the only reference.
func (l *changeLog) begin() {
	l.begun = l.now()
	l.start = strconv.FormatInt(l.begun.UnixNano(), 36)
}

// RecordsChanged notifies the pages of an organization that records of a kind have changed. It
// never blocks.
func (h *Hub) RecordsChanged(organizationID string, what db.Change) {
	h.changes.add(organizationID, what)
}

func (l *changeLog) add(organizationID string, what db.Change) {
	l.mu.Lock()
	c := l.counts[organizationID]
	if c == nil {
		c = &changeCounts{last: map[db.Change]lastChange{}}
		l.counts[organizationID] = c
	}
	c.total++
	c.last[what] = lastChange{c.total, l.now()}
	l.mu.Unlock()
	l.changed.fire(organizationID)
}

// forget forgets all changes, so the pages of all organizations read all kinds of records again.
func (l *changeLog) forget() {
	l.mu.Lock()
	l.begin()
	l.mu.Unlock()
	for _, organizationID := range l.changed.ids() {
		l.changed.fire(organizationID)
	}
}

// ChangesNow returns the position after the last change of an organization.
func (h *Hub) ChangesNow(organizationID string) string {
	_, now := h.changes.since(organizationID, "")
	return now
}

// since returns the kinds that have changed after a position, and the current position. After
// an unknown position, since returns all kinds.
func (l *changeLog) since(organizationID, position string) (kinds []db.Change, now string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c changeCounts
	if known := l.counts[organizationID]; known != nil {
		c = *known
	}
	now = fmt.Sprintf("%s.%d.%d", l.start, c.total, l.now().UnixMilli())
	after := l.after(position, c.total)
	for _, kind := range db.Changes() {
		if last := c.last[kind]; after == nil || last.number > 0 && after(last) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, now
}

// after returns a function that reports whether a change comes after a position, or nil if the
// position is unknown. total is the number of changes. The caller holds mu.
func (l *changeLog) after(position string, total int64) func(lastChange) bool {
	start, rest, _ := strings.Cut(position, ".")
	number, millis, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	at, bad := strconv.ParseInt(millis, 10, 64)
	switch since := time.UnixMilli(at).Add(-changeMargin); {
	case err != nil || bad != nil || n < 0:
		return nil
	case start == l.start && n <= total:
		return func(c lastChange) bool { return c.number > n }
	case start != l.start && l.begun.Before(since) && !since.After(l.now()):
		return func(c lastChange) bool { return c.at.After(since) }
	}
	return nil
}

// A ChangeStream returns the changes of one organization. It belongs to one goroutine.
type ChangeStream struct {
	hub            *Hub
	organizationID string
	position       string    // the client has received all changes up to here
	next           time.Time // no event is returned before this time
}

// changesEvery is the minimum time between two events of a ChangeStream. Changes during this
// time are combined into one event.
const changesEvery = 500 * time.Millisecond

// Changes returns the stream of an organization's changes after a position.
func (h *Hub) Changes(organizationID, position string) *ChangeStream {
	return &ChangeStream{hub: h, organizationID: organizationID, position: position}
}

// Next waits for changes. done is always false. It returns an error when ctx ends, and
// ErrClosed when the service stops.
func (s *ChangeStream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for {
		changed, leave := s.hub.changes.changed.watch(s.organizationID) // first, so that no change is missed
		kinds, now := s.hub.changes.since(s.organizationID, s.position)
		wait := time.Until(s.next)
		switch {
		case len(kinds) == 0:
			err = s.hub.await(ctx, changed)
		case wait > 0:
			err = s.hub.awaitFor(ctx, nil, wait) // later changes join the next event
		default:
			leave()
			s.position, s.next = now, time.Now().Add(changesEvery)
			return []Event{changeEvent(now, kinds)}, false, nil
		}
		leave()
		if err != nil {
			return nil, false, err
		}
	}
}

func changeEvent(position string, kinds []db.Change) Event {
	data, err := view.Marshal(map[string][]db.Change{"changed": kinds})
	if err != nil { // impossible: kinds are plain strings
		data = []byte(`{}`)
	}
	return NewEvent(position, bytes.TrimSpace(data))
}

// Busy returns the ids of an organization's workers that execute a turn now.
func (h *Hub) Busy(organizationID string) map[string]bool {
	busy := map[string]bool{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.live {
		if l.organizationID == organizationID {
			busy[l.workerID] = true
		}
	}
	return busy
}
