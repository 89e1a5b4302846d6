package schedule

// measure measures the size of the data folder, for the page of the server's state.
func (s *Scheduler) measure() {
	if err := s.cfg.Store.MeasureStorage(s.ctx); err != nil {
		s.complain("measure the data folder", err)
	}
}

// prunes returns the functions that delete old rows, by the kind of the rows. Each call deletes a
// batch and returns its size.
func (s *Scheduler) prunes() map[string]func() (int64, error) {
	st, ctx := s.cfg.Store, s.ctx
	prunes := map[string]func() (int64, error){
		"requests": func() (int64, error) { return st.PruneIdempotency(ctx, pruneBatch) },
		"alerts":   func() (int64, error) { return st.PruneAlerts(ctx, keepAlerts, pruneBatch) },
		"sessions": func() (int64, error) { return st.PruneSessions(ctx, pruneBatch) },
		"links":    func() (int64, error) { return st.PruneLinks(ctx, pruneBatch) },
		"programs": func() (int64, error) { return st.PruneOAuth(ctx, pruneBatch) },
		"files":    func() (int64, error) { return st.SweepBlobs(ctx) },
		"folders":  func() (int64, error) { return st.SweepFolders(ctx) },
	}
	if s.cfg.KeepMail > 0 {
		prunes["mail"] = func() (int64, error) { return st.PruneEmails(ctx, s.cfg.KeepMail, pruneBatch) }
	}
	if s.cfg.KeepDeliveries > 0 {
		prunes["deliveries"] = func() (int64, error) {
			return st.PruneDeliveries(ctx, s.cfg.KeepDeliveries, pruneBatch)
		}
	}
	if s.cfg.KeepAudit > 0 {
		prunes["audit log"] = func() (int64, error) { return st.PruneAudit(ctx, s.cfg.KeepAudit, pruneBatch) }
	}
	return prunes
}

// prune deletes old rows, a batch at a time, then old tasks, and returns the space to the disk. It
// stops where maintenance begins.
func (s *Scheduler) prune() {
	if s.paused() {
		return
	}
	before := s.cfg.Store.Counters()
	tasks, deliveries := before.TasksPruned.Load(), before.DeliveriesPruned.Load()
	for what, some := range s.prunes() {
		var err error
		// A full batch means that there may be more.
		for n := int64(pruneBatch); err == nil && n >= pruneBatch && s.ctx.Err() == nil && !s.paused(); {
			n, err = some()
		}
		if err != nil {
			// The other prunes still run.
			s.complain("prune "+what, err)
		}
	}
	// Last, because the first time it may take long. It makes its own batches.
	if _, err := s.cfg.Store.PruneTasks(s.ctx, s.cfg.KeepTasks); err != nil {
		s.complain("prune tasks", err)
	}
	p, err := s.cfg.Store.EndPruning(s.ctx, tasks, deliveries)
	if err != nil {
		s.complain("return the space of the database", err)
	}
	if p.Tasks+p.Deliveries+p.Returned > 0 {
		s.cfg.Log.Info("pruned", "tasks", p.Tasks, "deliveries", p.Deliveries, "bytes returned", p.Returned)
	}
	if p.Returned > 0 {
		s.measure() // the sizes of before are far off now
	}
}
