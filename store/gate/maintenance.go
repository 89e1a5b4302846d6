package gate

import (
	"context"
	"sync"
	"time"
)

const maintenanceMessage = "the server is in maintenance: it takes no changes and no new work until that ends"

// CodeMaintenance is the code of the errors with which a server in maintenance refuses changes.
const CodeMaintenance = "maintenance"

// A maintenance is a time in which changes are refused, at the operator's request. It is not
// stored, so a restart ends it.
type maintenance struct {
	mu    sync.Mutex // guards the fields below
	since time.Time
	end   func() // opens the gate; nil without maintenance
}

// duringMaintenance is the key of contexts of DuringMaintenance.
type duringMaintenance struct{}

// DuringMaintenance returns a context whose writes are taken in maintenance, too: the ends of
// earlier work, sessions of people, and actions of the operator.
func DuringMaintenance(ctx context.Context) context.Context {
	return context.WithValue(ctx, duringMaintenance{}, true)
}

func isDuringMaintenance(ctx context.Context) bool { return ctx.Value(duringMaintenance{}) != nil }

// BeginMaintenance makes the gate refuse every write, except those with a context of
// DuringMaintenance. It returns false if the gate was in maintenance already.
func (g *Gate) BeginMaintenance() bool {
	m := &g.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return false
	}
	m.since, m.end = g.now(), g.ReadOnly(CodeMaintenance, maintenanceMessage)
	return true
}

// EndMaintenance ends the maintenance. Writes stay refused if there is another reason.
// EndMaintenance returns false if the gate was not in maintenance.
func (g *Gate) EndMaintenance() bool {
	m := &g.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil {
		return false
	}
	m.end()
	m.end = nil
	return true
}

// InMaintenance reports whether the gate is in maintenance, and since when.
func (g *Gate) InMaintenance() (since time.Time, ok bool) {
	m := &g.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since, m.end != nil
}

// Maintenance returns the error with which changes are refused in maintenance, or nil. Packages
// call it before a change that begins outside the store.
func (g *Gate) Maintenance() error {
	if _, ok := g.InMaintenance(); ok {
		return g.refuse(CodeMaintenance, maintenanceMessage)
	}
	return nil
}
