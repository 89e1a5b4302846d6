package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestReadOnly makes the store read-only for a full disk and for maintenance, which end in either
// order. Writes are refused until both have ended, and reads succeed.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for name, diskFirst := range map[string]bool{"the disk first": true, "the maintenance first": false} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			st := storetest.Open(t, store.Options{})
			owner, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
			create := func(ctx context.Context) error {
				return errOf(st.Workers.CreateWorker(ctx, owner.Caller, workers.NewWorker{Title: "W"}, db.IdempotencyKey{}))
			}
			during := gate.DuringMaintenance(t.Context())
			is.NoErr(create(t.Context()))
			is.True(st.Gate.BeginMaintenance())
			is.True(!st.Gate.BeginMaintenance()) // maintenance has already begun
			is.True(db.IsMaintenance(create(t.Context())))
			is.True(db.IsKind(create(t.Context()), db.Busy)) // the refusal is temporary
			is.NoErr(create(during))                         // operators and running turns
			disk := st.Gate.ReadOnly(db.CodeStorage, "the disk is full")
			is.Equal(create(t.Context()).Error(), "the disk is full")
			is.Equal(create(during).Error(), "the disk is full") // no writes are permitted
			is.True(st.Ping(during) != nil)
			workers, _, err := st.Workers.List(t.Context(), owner.Caller, workers.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(len(workers), 2) // reads succeed

			await := func(ctx context.Context) <-chan error {
				done := make(chan error, 1)
				go func() { done <- st.Gate.AwaitWritable(ctx) }()
				return done
			}
			all, finishing := await(t.Context()), await(during)
			heard := func(done <-chan error) {
				t.Helper()
				select {
				case err := <-done:
					is.NoErr(err)
				case <-time.After(time.Minute):
					t.Fatal("nobody hears that the store takes writes again")
				}
			}
			if diskFirst {
				disk()
				disk() // does nothing
				heard(finishing)
				is.NoErr(create(during))
				is.True(db.IsMaintenance(st.Gate.Room()))
				is.True(db.IsMaintenance(st.Gate.Maintenance()))
				is.True(st.Gate.EndMaintenance())
			} else {
				is.True(st.Gate.EndMaintenance())
				is.True(!st.Gate.EndMaintenance()) // maintenance has already ended
				is.NoErr(st.Gate.Maintenance())
				is.Equal(create(t.Context()).Error(), "the disk is full")
				select {
				case <-all:
					t.Fatal("the end of the maintenance has opened the gate")
				case <-finishing:
					t.Fatal("the end of the maintenance has opened the gate")
				default:
				}
				disk()
				heard(finishing)
			}
			heard(all)
			is.NoErr(create(t.Context()))
			is.NoErr(st.Gate.Room())
			is.NoErr(st.Gate.AwaitWritable(t.Context())) // returns at once
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			is.True(st.Gate.BeginMaintenance())
			is.Equal(st.Gate.AwaitWritable(ended), context.Canceled)
		})
	}
}

// TestClaimInMaintenance keeps queued turns in the queue. A running turn can end, and can start the
// turn of another worker.
func TestClaimInMaintenance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	running := running(f)
	f.accept(f.turn())
	n, err := f.RunningTurns(t.Context())
	is.NoErr(err)
	is.Equal(n, int64(1))
	is.True(f.Gate.BeginMaintenance())
	during := gate.DuringMaintenance(t.Context())
	claims, err := f.ClaimTurns(during, "r", 5, 5)
	is.NoErr(err)
	is.Equal(len(claims), 0) // even for the runner, whose other writes are permitted
	is.Equal(f.ScheduleRoom(), int64(0))
	is.True(db.IsMaintenance(errOf(f.CreateTurn(t.Context(), f.turn()))))
	is.NoErr(errOf(f.CreateTurn(during, f.turn()))) // by a running turn
	is.NoErr(errOf(f.FinishTurn(during, running, nil, store.Outcome{Status: store.Completed})))
	n, err = f.RunningTurns(t.Context())
	is.NoErr(err)
	is.Equal(n, int64(0))
	is.True(f.Gate.EndMaintenance())
	claims, err = f.ClaimTurns(t.Context(), "r", 5, 5)
	is.NoErr(err)
	is.Equal(len(claims), 2) // all accepted turns
}

// TestMaintenanceBeforeAWaitingWrite begins maintenance while writes of the runner wait for the
// writer. These writes must not begin or end any turns.
func TestMaintenanceBeforeAWaitingWrite(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	retrying := down(f) // due in a minute, and expires in an hour
	f.accept(f.turn())  // waits in the queue
	f.clock.advance(2 * time.Hour)
	during := gate.DuringMaintenance(t.Context())

	release := hold(t, f.Store)
	done := make(chan error, 3)
	var claims []store.Claim
	var resumed, answered int
	var next *time.Time
	var expired []store.Turn
	for _, write := range []func() error{
		func() (err error) { claims, err = f.ClaimTurns(during, "r", 5, 5); return err },
		func() (err error) { resumed, next, err = f.ResumeDue(during, 5); return err },
		func() (err error) { expired, answered, err = f.ExpireSuspended(during, 5); return err },
	} {
		go func() { done <- write() }()
	}
	storetest.Eventually(t, "the writes to wait", func() bool { return f.Waiting() == 3 })
	is.True(f.Gate.BeginMaintenance())
	release()
	for range 3 {
		is.NoErr(<-done)
	}
	is.Equal([]int{len(claims), resumed, len(expired), answered}, []int{0, 0, 0, 0})
	is.True(next != nil && next.Before(f.clock.now())) // the turn is still due
	n, err := f.RunningTurns(t.Context())
	is.NoErr(err)
	is.Equal(n, int64(0))
	is.True(f.Gate.EndMaintenance())
	due, _ := f.resumeDue()
	is.Equal(due, 1)
	is.Equal(f.reread(retrying.Turn).Wait, nil)
	is.Equal(len(f.claim("r", 5)), 2)
}
