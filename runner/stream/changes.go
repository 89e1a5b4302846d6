package stream

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"journeyman/runner/view"
	"journeyman/store"
)

// This file sends the dashboard pages of an organization the kinds of records that changed. An
// event contains only these kinds: a page reads the records again, with the rights of its user.

// A changeLog counts the changes of each organization. A page or a returning client sends the
// count of its last change, and gets only the changes after it.
type changeLog struct {
	start string // prefix of this process's positions: positions of an earlier process are unknown

	mu      sync.Mutex // guards counts
	counts  map[string]*changeCounts
	changed signals // by organization id
}

// changeCounts holds the changes of one organization since the start of the process.
type changeCounts struct {
	total int64
	last  map[store.Change]int64 // the value of total at the last change of each kind
}

func newChangeLog(now time.Time) *changeLog {
	return &changeLog{start: strconv.FormatInt(now.UnixNano(), 36), counts: map[string]*changeCounts{}}
}

// RecordsChanged notifies the pages of an organization that records of a kind have changed. It
// never blocks.
func (h *Hub) RecordsChanged(organizationID string, what store.Change) {
	h.changes.add(organizationID, what)
}

func (l *changeLog) add(organizationID string, what store.Change) {
	l.mu.Lock()
	c := l.counts[organizationID]
	if c == nil {
		c = &changeCounts{last: map[store.Change]int64{}}
		l.counts[organizationID] = c
	}
	c.total++
	c.last[what] = c.total
	l.mu.Unlock()
	l.changed.fire(organizationID)
}

// ChangesNow returns the position after the last change of an organization.
func (h *Hub) ChangesNow(organizationID string) string {
	_, now := h.changes.since(organizationID, "")
	return now
}

// since returns the kinds that have changed after a position, and the current position. After
// an unknown position, since returns all kinds.
func (l *changeLog) since(organizationID, position string) (kinds []store.Change, now string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var c changeCounts
	if known := l.counts[organizationID]; known != nil {
		c = *known
	}
	now = l.start + "." + strconv.FormatInt(c.total, 10)
	start, number, _ := strings.Cut(position, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || start != l.start || n < 0 || n > c.total {
		return store.Changes(), now
	}
	for _, kind := range store.Changes() {
		if c.last[kind] > n {
			kinds = append(kinds, kind)
		}
	}
	return kinds, now
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
			err = s.pause(ctx, wait)
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

// pause waits for d, so that later changes join the next event.
func (s *ChangeStream) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.hub.open.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func changeEvent(position string, kinds []store.Change) Event {
	data, err := view.Marshal(map[string][]store.Change{"changed": kinds})
	if err != nil { // impossible: position and kinds are plain strings
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
