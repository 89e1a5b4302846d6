package mcp

import (
	"errors"
	"reflect"
)

// errRetired is the error of a server that a reload has removed or replaced.
var errRetired = errors.New("its configuration has changed")

// Changes returns the names of the servers that Replace would start, replace or remove.
func (p *Pool) Changes(servers []Server) (names []string) {
	kept := map[string]bool{}
	for _, s := range servers {
		if old := p.find(s.Name); old != nil && reflect.DeepEqual(old.Server, s) {
			kept[s.Name] = true
		} else {
			names = append(names, s.Name)
			kept[s.Name] = true
		}
	}
	for _, old := range p.list() {
		if !kept[old.Name] {
			names = append(names, old.Name)
		}
	}
	return names
}

// Replace replaces the servers of the pool by servers that Load returned. Servers with an
// unchanged configuration keep their connections. The connections of the others end after their
// calls in progress.
func (p *Pool) Replace(servers []Server) {
	list, kept := []*server{}, map[*server]bool{}
	var started []*server
	for _, s := range servers {
		same := p.find(s.Name)
		if same == nil || !reflect.DeepEqual(same.Server, s) {
			same = p.newServer(s)
			started = append(started, same)
		}
		list, kept[same] = append(list, same), true
	}
	before := p.list()
	p.servers.Store(&list)
	for _, s := range before {
		if !kept[s] {
			p.begin(s.retire)
		}
	}
	for _, s := range started {
		p.greet(s)
	}
}

// retire ends the connections of a server when no call uses them. New calls use its
// replacement, if there is one.
func (s *server) retire() {
	s.inUse.Lock() // waits for the calls in progress
	s.mu.Lock()
	s.retired = true
	live := s.live
	s.mu.Unlock()
	s.inUse.Unlock()
	if live != nil {
		live.end()
	}
	t := &s.tenants
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.by {
		s.pool.begin(x.server.retire)
	}
}
