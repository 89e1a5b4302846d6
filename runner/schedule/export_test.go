package schedule

// Prune runs the periodic deletion of old rows immediately.
func (s *Scheduler) Prune() { s.prune() }
