package people

// UsesRemembered returns the number of cached last uses of keys and sessions.
func (s *Store) UsesRemembered() int {
	s.lastUse.mu.Lock()
	defer s.lastUse.mu.Unlock()
	return len(s.lastUse.seen)
}

// FillHashing blocks the hashing of passwords until free is called.
func (s *Store) FillHashing() (free func()) {
	for range cap(s.hashing) {
		s.hashing <- struct{}{}
	}
	return func() {
		for range cap(s.hashing) {
			<-s.hashing
		}
	}
}
