package store

import "context"

// ReadOnly makes the store refuse every write with the error why, until release is called. Reads go
// on. If there are several reasons, writers get the newest one. release may be called more than
// once.
func (s *Store) ReadOnly(why *Error) (release func()) {
	g := &s.gate
	own := *why // two calls with the same error count as two reasons
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reasons = append(g.reasons, &own)
	g.publish()
	return func() { g.release(&own) }
}

// AwaitWritable waits until the store takes writes with this context. It returns the error of ctx
// if that ends before.
func (s *Store) AwaitWritable(ctx context.Context) error {
	for {
		changed := s.gate.change() // before the check, so that no change is missed
		if s.WritableIn(ctx) == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Room returns nil, or the error with which the store refuses new work now. Work that was
// accepted before goes on as long as the store takes its writes: see WritableIn.
func (s *Store) Room() error { return s.RoomIn(context.Background()) }

// RoomIn is Room for new work with that context. In maintenance, a running turn may still start
// work of other workers: see DuringMaintenance.
func (s *Store) RoomIn(ctx context.Context) error {
	if err := s.WritableIn(ctx); err != nil {
		return err
	}
	if _, level := s.Disk(); level == DiskFull {
		return diskFullError(nil)
	}
	return nil
}

// ReadOnlyCodes returns the codes of all reasons why the store takes no writes now, and none if it
// takes them.
func (s *Store) ReadOnlyCodes() (codes []string) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, why := range g.reasons {
		codes = append(codes, why.Code)
	}
	return codes
}

// Disk returns the space of the data folder's disk and its level. It measures at most once a
// second. If the disk cannot be measured, the last measurement counts.
func (s *Store) Disk() (DiskSpace, DiskLevel) {
	d := &s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := d.now().Sub(d.measured); age < 0 || age >= diskMaxAge { // negative after the clock was set back
		_ = d.measure() // WatchDisk reports the error
	}
	return d.space, d.level
}
