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

// This file tells the pages of an organization which kinds of its records have changed. An event
// names kinds and nothing else: a page reads the records again, with the rights of its user.

// A changeLog counts the changes of each organization. So a page that was written at one count,
// or a client that returns with one, gets exactly the changes that it has missed.
type changeLog struct {
	start string // begins the positions of this process: those of an earlier one are unknown

	mu      sync.Mutex // held for moments
	counts  map[string]*changeCounts
	changed signals // of organizations, by id
}

// changeCounts are the changes of one organization since the start.
type changeCounts struct {
	total int64
	last  map[store.Change]int64 // number of the last change of each kind
}

func newChangeLog(now time.Time) *changeLog {
	return &changeLog{start: strconv.FormatInt(now.UnixNano(), 36), counts: map[string]*changeCounts{}}
}

// RecordsChanged informs the pages of an organization that records of a kind have changed. It
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

// since returns the kinds that have changed after a position, and the position now. After an
// unknown position, all kinds have.
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
	position       string    // the client knows all changes up to here
	next           time.Time // before this time no event is returned
}

// changesEvery is the least time between two events of a ChangeStream. What changes
// meanwhile is one event.
const changesEvery = 500 * time.Millisecond

// Changes returns the stream of an organization's changes after a position.
func (h *Hub) Changes(organizationID, position string) *ChangeStream {
	return &ChangeStream{hub: h, organizationID: organizationID, position: position}
}

// Next waits for changes. done is always false. It returns an error when ctx ends, and
// ErrClosed when the service stops.
func (s *ChangeStream) Next(ctx context.Context) (events []Event, done bool, err error) {
	for {
		changed, leave := s.hub.changes.changed.watch(s.organizationID) // before the look, so that none is missed
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

// pause waits, so that more changes can join the next event.
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
	if err != nil { // never: these are words of ours
		data = []byte(`{}`)
	}
	return NewEvent(position, bytes.TrimSpace(data))
}

// Busy returns the ids of an organization's workers of which a turn is executed now.
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
