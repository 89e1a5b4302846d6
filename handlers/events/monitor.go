package events

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A monitor checks all open streams from one goroutine. It sends heartbeats to silent streams, and
// ends those whose client has lost the permission to read. So readers need no timers and only wait
// for events.
type monitor struct {
	timing Timing

	mu       sync.Mutex // guards the fields below
	readers  map[*reader]struct{}
	running  bool // while there are readers
	checking bool // a permission check is running
}

func newMonitor(timing Timing) *monitor {
	return &monitor{timing: timing, readers: map[*reader]struct{}{}}
}

// add starts the monitoring of a reader.
func (m *monitor) add(rd *reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers[rd] = struct{}{}
	if !m.running {
		m.running = true
		go m.run() // ends soon after the last reader
	}
}

func (m *monitor) remove(rd *reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readers, rd)
}

// run checks every reader regularly, while there are readers.
func (m *monitor) run() {
	tick := time.NewTicker(max(time.Millisecond, min(m.timing.BeatEvery, m.timing.CheckEvery)/10))
	defer tick.Stop()
	for now := range tick.C {
		silent, unchecked, more := m.due(now)
		if !more {
			return
		}
		if len(unchecked) > 0 {
			go m.check(unchecked) // one at a time: a slow database must not delay heartbeats
		}
		for i, rd := range silent {
			rd.beat()
			if i%8 == 7 {
				runtime.Gosched() // running turns must not wait until all heartbeats are written
			}
		}
	}
}

// due returns the readers that need a heartbeat, and those to check.
func (m *monitor) due(now time.Time) (silent []*reader, unchecked map[string][]*reader, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.readers) == 0 {
		m.running = false
		return nil, nil, false
	}
	unchecked = map[string][]*reader{}
	for rd := range m.readers {
		if now.Sub(rd.lastWrite()) >= m.timing.BeatEvery {
			silent = append(silent, rd)
		}
		if !m.checking && now.Sub(rd.checked) >= m.timing.CheckEvery {
			rd.checked = now
			unchecked[rd.client.Subject] = append(unchecked[rd.client.Subject], rd)
		}
	}
	m.checking = m.checking || len(unchecked) > 0
	return silent, unchecked, true
}

// check ends the readers that have lost their permission. Readers of one subject share one check.
func (m *monitor) check(unchecked map[string][]*reader) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.checking = false
	}()
	for _, group := range unchecked {
		if m.refused(group[0]) {
			for _, rd := range group {
				rd.cancel()
			}
		}
	}
}

// refused reports whether a reader's client has lost its permission. The check does not end with the reader,
// because readers of the same subject share its answer.
func (m *monitor) refused(rd *reader) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(rd.ctx), max(m.timing.CheckEvery, time.Second))
	defer cancel()
	return rd.client.Refused(ctx)
}
