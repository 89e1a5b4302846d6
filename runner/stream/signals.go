package stream

import (
	"runtime"
	"sync"

	"journeyman/store"
)

// signals wake the watchers of an id when something about it has changed. A watcher then
// looks itself. Ids that nobody watches take no memory.
type signals struct {
	wakeUp *alarm

	mu sync.Mutex // guards m and its signals
	m  map[string]*signal
}

// watch returns a channel that closes at the next change. A watcher calls watch before it
// looks, so that it misses no change, and leave afterwards.
func (s *signals) watch(id string) (changed <-chan struct{}, leave func()) {
	w, leave := s.watcher(id)
	return w.changed, leave
}

// watcher is watch, but returns the watcher, which gets what fireWith is called with.
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

// fire wakes the watchers of an id.
func (s *signals) fire(id string) { s.fireWith(id, nil) }

// fireWith wakes the watchers of an id and gives them a conversation, which they share.
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

// watched returns how many ids have watchers.
func (s *signals) watched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

// A signal wakes its watchers at the next change. Its owner has a lock for it.
type signal struct {
	watchers []*watcher
}

// A watcher waits for the next change of a signal.
type watcher struct {
	changed chan struct{} // closed at the change
	at      int           // index in the watchers of the signal; -1 after the change

	conv *store.Conversation // of fireWith; set before changed is closed
}

// watch adds a watcher.
func (sg *signal) watch() *watcher {
	w := &watcher{changed: make(chan struct{}), at: len(sg.watchers)}
	sg.watchers = append(sg.watchers, w)
	return w
}

// leave removes a watcher. It does nothing after the change.
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

// An alarm wakes watchers for the loop that executes a turn, and the loop never waits for
// them. Each watcher writes to a socket as soon as it runs. Were thousands woken together,
// the loop would get no processor until all have written.
type alarm struct {
	mu      sync.Mutex // guards the fields below
	waiting []*watcher // to be woken
	running bool       // a goroutine wakes them
}

// wokenAtOnce is the number of watchers that are woken before other goroutines may run.
const wokenAtOnce = 8

// wake wakes a few watchers at once, and leaves more of them to a goroutine. It owns the
// slice from now on.
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

// run wakes the watchers that wait, a group at a time. After each group it goes to the end
// of the scheduler's queue, behind the group and everybody else. It never blocks, and ends
// when all are woken.
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

// next takes the next group of watchers. Without one, the goroutine of run must end.
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
