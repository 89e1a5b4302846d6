package runner

import (
	"context"
	"encoding/json"
	"time"
)

// What tests of the package from outside may look at.

// RingAge and RingBytes are what a worker-wide stream can be resumed within.
const (
	RingAge   = ringAge
	RingBytes = ringBytes
)

// Prune does what the runner does now and then.
func (r *Runner) Prune() { r.rings.prune() }

// Kept tells what the runner holds in memory: rings, turns under way in them,
// watched turns and reservations.
func (r *Runner) Kept() (rings, running, watched, reserved int) {
	r.rings.mu.Lock()
	rings = len(r.rings.m)
	for _, rg := range r.rings.m {
		rg.mu.RLock()
		running += len(rg.running)
		rg.mu.RUnlock()
	}
	r.rings.mu.Unlock()
	for _, s := range []*signals{&r.ended, &r.final} {
		s.mu.Lock()
		watched += len(s.m)
		s.mu.Unlock()
	}
	r.ledger.mu.Lock()
	reserved = len(r.ledger.m)
	r.ledger.mu.Unlock()
	return rings, running, watched, reserved
}

// ExpireRests does what the runner does now and then.
func (r *Runner) ExpireRests() { r.expireRests() }

// MaxApprovals bounds the calls of one step that people are asked about, and
// ApprovalWait how long they have.
const (
	MaxApprovals = maxApprovals
	ApprovalWait = approvalWait
)

// Persist writes as a turn's journal does.
func (r *Runner) Persist(write func(ctx context.Context) error) error { return r.persist(write) }

// PersistAgain is the pause before a write that found no room is tried again.
const PersistAgain time.Duration = persistAgain

// CheckAnswer compiles a schema and checks an answer. problem is what is wrong with
// the answer.
func CheckAnswer(schema json.RawMessage, answer string) (problem string, err error) {
	s, err := compileOutputSchema(schema)
	if err != nil {
		return "", err
	}
	if m := s.check(answer); m != nil {
		return m.Error(), nil
	}
	return "", nil
}
