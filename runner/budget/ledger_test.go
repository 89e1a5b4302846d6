package budget

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestLedgerHoldsTheCap lets many calls of a few organizations reserve, pay and settle at once. No
// organization exceeds its cap, and no account is left at the end.
func TestLedgerHoldsTheCap(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const (
		spendable = 20_000
		worst     = 700
	)
	var l Ledger
	var spent [3]atomic.Int64 // the costs in the database, by organization
	var overruns atomic.Int64
	var callers sync.WaitGroup
	for org := range spent {
		for n := range 16 {
			callers.Go(func() {
				for i := int64(n); ; i++ {
					rv, err := l.Reserve(t.Context(), strconv.Itoa(org), func(held int64) (Verdict, error) {
						left := spendable - spent[org].Load()
						runtime.Gosched() // other goroutines run, as during a slow database read
						if left-held < worst {
							return Verdict{Wait: held > 0}, nil
						}
						return Verdict{Nanos: worst}, nil
					})
					if err != nil || rv.nanos == 0 {
						rv.Settle()
						return
					}
					if spent[org].Add(1+i*37%worst) > spendable {
						overruns.Add(1)
					}
					rv.Settle()
				}
			})
		}
	}
	callers.Wait()
	is.Equal(overruns.Load(), int64(0))
	for org := range spent {
		ordertest.Above(is, spent[org].Load(), spendable-worst) // the remaining amount is less than one call
	}
	is.Equal(len(l.accounts), 0)
}

// TestOrganizationsDoNotWaitForEachOther delays the database read for one organization.
func TestOrganizationsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var l Ledger
	asked, answer := make(chan struct{}), make(chan struct{})
	var slow sync.WaitGroup
	slow.Go(func() {
		rv, _ := l.Reserve(t.Context(), "slow", func(int64) (Verdict, error) {
			close(asked)
			<-answer
			return Verdict{Nanos: 1}, nil
		})
		rv.Settle()
	})
	<-asked
	rv, err := l.Reserve(t.Context(), "other", func(int64) (Verdict, error) { return Verdict{Nanos: 1}, nil })
	is.NoErr(err)
	rv.Settle()
	close(answer)
	slow.Wait()
	is.Equal(len(l.accounts), 0)
}

// TestLedgerInAnOutage settles the calls of a shared account while no sum can be stored. Only the first one
// tries. A call that waits for the account ends when it is cancelled.
func TestLedgerInAnOutage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	down, tries, last := true, 0, int64(-1)
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	l := Ledger{publish: func(_ string, held int64) error {
		tries++
		if down {
			asked <- struct{}{}
			<-answer
			return errors.New("the database does not answer")
		}
		last = held
		return nil
	}}
	one := func(int64) (Verdict, error) { return Verdict{Nanos: 1, Shared: true}, nil }
	var calls []*Reservation
	for range 5 {
		rv, err := l.Reserve(t.Context(), "acme", one)
		is.NoErr(err)
		calls = append(calls, rv)
	}
	var settling sync.WaitGroup
	settling.Go(func() {
		for _, rv := range calls[1:] {
			rv.Settle()
		}
	})
	<-asked
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err := l.Reserve(ctx, "acme", one)
	is.Equal(err, stopped)
	close(answer)
	settling.Wait()
	is.Equal(tries, 1)
	down = false
	l.StoreAgain()
	is.Equal(last, int64(1)) // of the call in progress
	calls[0].Settle()
	is.Equal(last, int64(0))
	is.Equal(len(l.accounts), 0)
	is.Equal(len(l.unstored), 0)
}
