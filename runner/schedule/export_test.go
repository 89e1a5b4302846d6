package schedule

// Prune does at once what the scheduler does every ten minutes.
func (s *Scheduler) Prune() { s.prune() }
