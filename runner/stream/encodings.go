package stream

import "sync"

// encodings caches the latest events of a turn that this process executes. Readers that follow
// the turn pass the same positions, so the first of them encodes for all.
type encodings struct {
	mu    sync.Mutex // held while a reader encodes
	list  []encoding // oldest first
	bytes int        // total length of all events
}

// An encoding holds the events between two positions, for one value of approvals.
type encoding struct {
	from, to  position
	approvals bool
	events    []Event
	bytes     int
}

// Limits of the events that are kept for other readers. The newest encoding is always kept.
const (
	keptEncodings = 128
	keptBytes     = 256 << 10
)

// encode returns events that follow the position of a reader's encoder. It may return fewer
// events than the snapshot has: the next call returns more.
func (c *encodings) encode(e *encoder, s snapshot) []Event {
	if c == nil || e.byWord { // only the client that sent an instruction gets texts word by word
		return e.encode(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.list) - 1; i >= 0; i-- { // from the end: most readers are near it
		if known := c.list[i]; known.from == e.at && known.approvals == e.approvals {
			e.at = known.to
			return known.events
		}
	}
	made := encoding{from: e.at, approvals: e.approvals}
	made.events = e.encode(s) // a separate statement, because it changes e.at
	made.to = e.at
	for _, event := range made.events {
		made.bytes += len(event.Data)
	}
	if len(made.events) > 0 {
		c.add(made)
	}
	return made.events
}

// add keeps an encoding, and drops the oldest ones beyond the limits. The caller holds mu.
func (c *encodings) add(made encoding) {
	c.list = append(c.list, made)
	c.bytes += made.bytes
	for (c.bytes > keptBytes || len(c.list) > keptEncodings) && len(c.list) > 1 {
		c.bytes -= c.list[0].bytes
		c.list[0] = encoding{} // release its memory now: append moves the other elements only later
		c.list = c.list[1:]
	}
}
