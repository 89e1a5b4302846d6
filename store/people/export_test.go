package people

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
