package store

import "sync/atomic"

// Counters count what was committed since the store was opened, for monitoring.
// Sums that must be exact for ever stand in the database.
type Counters struct {
	TurnsCompleted, TurnsFailed, TurnsAborted atomic.Int64 // by how they ended
	Steps                                     atomic.Int64 // model calls finished
	InputTokens, OutputTokens                 atomic.Int64
	Cost                                      atomic.Int64 // nano-dollars
	AttemptsSucceeded, AttemptsFailed         atomic.Int64 // of webhook deliveries
	EmailsReceived                            atomic.Int64 // mails kept, one a worker addressed
	Commits, Operations                       atomic.Int64 // transactions, and the operations they grouped
}

// Counters gives the counters, which go on counting.
func (s *Store) Counters() *Counters { return &s.counters }

// metered counts what meter has written.
func (c *Counters) metered(t Turn, u Usage, ended bool) {
	c.Steps.Add(u.Steps)
	c.InputTokens.Add(u.InputTokens)
	c.OutputTokens.Add(u.OutputTokens)
	c.Cost.Add(u.Cost())
	if !ended {
		return
	}
	switch t.Status {
	case Failed:
		c.TurnsFailed.Add(1)
	case Aborted:
		c.TurnsAborted.Add(1)
	default:
		c.TurnsCompleted.Add(1)
	}
}

func (c *Counters) attempted(success bool) {
	if success {
		c.AttemptsSucceeded.Add(1)
	} else {
		c.AttemptsFailed.Add(1)
	}
}
