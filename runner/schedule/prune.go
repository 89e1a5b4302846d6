package schedule

// measure measures the size of the data folder for the server's status page.
func (s *Scheduler) measure() {
	if err := s.cfg.Store.MeasureStorage(s.ctx); err != nil {
		s.logError("measure the data folder", err)
	}
}

// measureOrganizations measures what each organization stores, so that their limits hold.
func (s *Scheduler) measureOrganizations() {
	if err := s.cfg.Store.MeasureOrganizations(s.ctx); err != nil {
		s.logError("measure the organizations", err)
	}
}

// prunes returns the functions that delete old rows, by kind of row. Each call deletes one batch
// and returns the number of deleted rows.
func (s *Scheduler) prunes() map[string]func() (int64, error) {
	st, ctx := s.cfg.Store, s.ctx
	prunes := map[string]func() (int64, error){
		"requests": func() (int64, error) { return st.PruneIdempotency(ctx, pruneBatch) },
		"alerts":   func() (int64, error) { return st.Effects.PruneAlerts(ctx, keepAlerts, pruneBatch) },
		"sessions": func() (int64, error) { return st.People.PruneSessions(ctx, pruneBatch) },
		"links":    func() (int64, error) { return st.People.PruneLinks(ctx, pruneBatch) },
		"programs": func() (int64, error) { return st.People.PruneOAuth(ctx, pruneBatch) },
		"files":    func() (int64, error) { return st.SweepBlobs(ctx) },
		"folders":  func() (int64, error) { return st.SweepFolders(ctx) },
	}
	if s.cfg.KeepMail > 0 {
		prunes["mail"] = func() (int64, error) { return st.Effects.PruneEmails(ctx, s.cfg.KeepMail, pruneBatch) }
	}
	if s.cfg.KeepDeliveries > 0 {
		prunes["deliveries"] = func() (int64, error) {
			return st.Effects.PruneDeliveries(ctx, s.cfg.KeepDeliveries, pruneBatch)
		}
	}
	if s.cfg.KeepAudit > 0 {
		prunes["audit log"] = func() (int64, error) { return st.PruneAudit(ctx, s.cfg.KeepAudit, pruneBatch) }
	}
	return prunes
}

// prune deletes old rows in batches, then old tasks, and returns free pages to the file system. It
// stops when maintenance begins.
func (s *Scheduler) prune() {
	if s.paused() || !s.cfg.Store.Leads() {
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
			s.logError("prune "+what, err)
		}
	}
	// Prune tasks last, because the first run may take long. PruneTasks splits its work into
	// batches.
	if _, err := s.cfg.Store.PruneTasks(s.ctx, s.cfg.KeepTasks); err != nil {
		s.logError("prune tasks", err)
	}
	p, err := s.cfg.Store.EndPruning(s.ctx, tasks, deliveries)
	if err != nil {
		s.logError("return the space of the database", err)
	}
	if p.Tasks+p.Deliveries+p.Returned > 0 {
		s.cfg.Log.Info("pruned", "tasks", p.Tasks, "deliveries", p.Deliveries, "bytes returned", p.Returned)
	}
	if p.Returned > 0 {
		s.measure() // the measured sizes are no longer valid
	}
}
