package store

import (
	"context"
	"sync"
	"sync/atomic"
)

// A claimFate records what a runner has learned about the claims of one call of ClaimTurns. The
// connection to a database server can break during the commit. Then ClaimTurns returns an error,
// although the server may have committed the claims.
type claimFate struct{ state atomic.Int32 }

const (
	claimsBegun int32 = iota + 1 // OnClaimed was called
	claimsLost                   // ClaimTurns has returned an error
)

// begin reports whether the runner may begin with the claims, which are committed now.
func (f *claimFate) begin() bool {
	return f.state.CompareAndSwap(0, claimsBegun) || f.state.Load() == claimsBegun
}

// lose records that ClaimTurns has returned an error. It reports false if OnClaimed was called
// before. Otherwise OnClaimed is never called for these claims.
func (f *claimFate) lose() bool { return f.state.CompareAndSwap(0, claimsLost) }

// abandoned are claims that no runner carries out. EndLeases puts their turns back into the queue.
type abandoned struct {
	mu     sync.Mutex // guards claims
	claims []Claim
}

func (a *abandoned) add(claims ...Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.claims = append(a.claims, claims...)
}

func (a *abandoned) take() []Claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	claims := a.claims
	a.claims = nil
	return claims
}

// returnAbandoned puts the turns of abandoned claims back into the queue.
func (s *Store) returnAbandoned(ctx context.Context) error {
	claims := s.abandoned.take()
	for i, c := range claims {
		if err := s.ReturnTurn(ctx, c); err != nil {
			s.abandoned.add(claims[i:]...)
			return err
		}
	}
	return nil
}
