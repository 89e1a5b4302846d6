package store

import (
	"errors"
	"time"
)

const maintenanceMessage = "the server is in maintenance: it takes no changes and no new work until that ends"

// BeginMaintenance makes the store refuse every write, except those with a context of
// DuringMaintenance. It returns false if the store was in maintenance already.
func (s *Store) BeginMaintenance() bool {
	m := &s.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return false
	}
	m.since, m.end = s.now(), s.ReadOnly(ReadOnlyError(CodeMaintenance, maintenanceMessage))
	return true
}

// EndMaintenance ends the maintenance. The store stays read-only if there is another reason.
// EndMaintenance returns false if the store was not in maintenance.
func (s *Store) EndMaintenance() bool {
	m := &s.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil {
		return false
	}
	m.end()
	m.end = nil
	return true
}

// InMaintenance reports whether the store is in maintenance, and since when.
func (s *Store) InMaintenance() (since time.Time, ok bool) {
	m := &s.maintenance
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since, m.end != nil
}

// Maintenance returns the error with which changes are refused in maintenance, or nil. Packages
// call it before a change that begins outside the store.
func (s *Store) Maintenance() error {
	if _, ok := s.InMaintenance(); ok {
		return ReadOnlyError(CodeMaintenance, maintenanceMessage)
	}
	return nil
}

// IsMaintenance reports whether err is the refusal of a server in maintenance.
func IsMaintenance(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == CodeMaintenance
}
