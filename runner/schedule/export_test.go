package schedule

// Prune is what the scheduler does every ten minutes.
func (s *Scheduler) Prune() { s.prune() }
