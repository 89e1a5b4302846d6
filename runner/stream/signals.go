package stream

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"journeyman/store"
)

// signals wakes the watchers of an id after a change. A woken watcher reads the new state
// itself. Ids without watchers take no memory.
type signals struct {
	wakeUp *alarm

	mu sync.Mutex // guards m and its signals
	m  map[string]*signal
}

// watch returns a channel that closes at the next change. A watcher calls watch before it reads
// the state, so that it misses no change. It calls leave when it no longer waits.
func (s *signals) watch(id string) (changed <-chan struct{}, leave func()) {
	w, leave := s.watcher(id)
	return w.changed, leave
}

// watcher is like watch, but returns the watcher, whose conv field holds the argument of
// fireWith.
func (s *signals) watcher(id string) (w *watcher, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]*signal{}
	}
	sg := s.m[id]
	if sg == nil {
		sg = &signal{}
		s.m[id] = sg
	}
	w = sg.watch()
	return w, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// After a change, the entry is gone or belongs to later watchers.
		if sg.leave(w); len(sg.watchers) == 0 && s.m[id] == sg {
			delete(s.m, id)
		}
	}
}

// awaited reports whether an id has watchers.
func (s *signals) awaited(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[id] != nil
}

// fire wakes the watchers of an id.
func (s *signals) fire(id string) { s.fireWith(id, nil) }

// fireWith wakes the watchers of an id and passes them a conversation, which they share.
func (s *signals) fireWith(id string, conv *store.Conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sg := s.m[id]; sg != nil {
		if conv != nil {
			for _, w := range sg.watchers {
				w.conv = conv
			}
		}
		sg.fire(s.wakeUp)
		delete(s.m, id)
	}
}

// ids returns the ids that have watchers.
func (s *signals) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.m))
}

// watched returns how many ids have watchers.
func (s *signals) watched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

// A signal wakes its watchers at the next change. The owner of the signal provides the lock.
type signal struct {
	watchers []*watcher
}

// A watcher waits for the next change of a signal.
type watcher struct {
	changed chan struct{} // closed at the change
	at      int           // index in the watchers of the signal; -1 after the change

	conv *store.Conversation // the argument of fireWith; set before changed is closed
}

// watch adds a watcher.
func (sg *signal) watch() *watcher {
	w := &watcher{changed: make(chan struct{}), at: len(sg.watchers)}
	sg.watchers = append(sg.watchers, w)
	return w
}

// leave removes a watcher. After the change, it does nothing.
func (sg *signal) leave(w *watcher) {
	last := len(sg.watchers) - 1
	if w.at > last || w.at < 0 || sg.watchers[w.at] != w {
		return
	}
	sg.watchers[last].at = w.at
	sg.watchers[w.at] = sg.watchers[last]
	sg.watchers[last] = nil
	sg.watchers = sg.watchers[:last]
	w.at = -1
}

// fire wakes the watchers.
func (sg *signal) fire(a *alarm) {
	a.wake(sg.watchers)
	sg.watchers = nil
}

// An alarm wakes watchers, so that the loop that executes a turn never waits for them. Each
// watcher writes to a socket as soon as it runs. If thousands were woken together, the loop
// would get no CPU time until all had written.
type alarm struct {
	mu      sync.Mutex // guards the fields below
	waiting []*watcher // watchers to wake
	running bool       // whether the goroutine of run exists
}

// wokenAtOnce is the number of watchers that are woken before other goroutines may run.
const wokenAtOnce = 8

// wake wakes a short list immediately, and leaves a longer one to a goroutine. It takes
// ownership of the slice.
func (a *alarm) wake(list []*watcher) {
	if len(list) <= wokenAtOnce {
		closeAll(list)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		a.waiting = list
	} else {
		a.waiting = append(a.waiting, list...)
	}
	if !a.running {
		a.running = true
		go a.run()
	}
}

// run wakes the waiting watchers in groups. After each group it yields, so that the group and
// all other runnable goroutines run first. It never blocks, and returns when all are woken.
func (a *alarm) run() {
	for {
		group := a.next()
		if len(group) == 0 {
			return
		}
		closeAll(group)
		runtime.Gosched()
	}
}

// next takes the next group of watchers. If it returns none, the goroutine of run must end.
func (a *alarm) next() []*watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(wokenAtOnce, len(a.waiting))
	group := a.waiting[:n:n]
	a.waiting = a.waiting[n:]
	if n == 0 {
		a.waiting, a.running = nil, false
	}
	return group
}

func closeAll(list []*watcher) {
	for _, w := range list {
		close(w.changed)
	}
}
