package runner

import "sync"

// signals tells those who watch an id that something has changed: they look
// themselves. Nothing is kept for ids that nobody watches.
type signals struct {
	mu sync.Mutex
	m  map[string]*signal
}

type signal struct {
	changed  chan struct{} // closed at the change
	watchers int
}

// watch gives a channel that closes at the next change. Watch before looking, and
// leave after.
func (s *signals) watch(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]*signal{}
	}
	sg := s.m[id]
	if sg == nil {
		sg = &signal{changed: make(chan struct{})}
		s.m[id] = sg
	}
	sg.watchers++
	return sg.changed
}

func (s *signals) leave(id string, changed chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// After a change the entry is gone, or another one is in its place.
	if sg := s.m[id]; sg != nil && sg.changed == changed {
		if sg.watchers--; sg.watchers == 0 {
			delete(s.m, id)
		}
	}
}

func (s *signals) fire(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sg := s.m[id]; sg != nil {
		close(sg.changed)
		delete(s.m, id)
	}
}
