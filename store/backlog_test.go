package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

func TestBacklog(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	b, err := f.Backlog(t.Context())
	is.NoErr(err)
	is.Equal(b.Turns.Count, int64(0))
	is.Equal(b.Turns.Age, time.Duration(0)) // an empty queue has no age
	f.accept(f.turn())
	f.clock.advance(time.Minute)
	f.accept(f.turn())
	f.clock.advance(time.Second)
	b, err = f.Backlog(t.Context())
	is.NoErr(err)
	is.Equal(b.Turns.Count, int64(2))
	is.Equal(b.Turns.Age, 61*time.Second) // the age of the oldest turn
	is.Equal(b.Deliveries.Count, int64(0))
	is.Equal(b.Held, store.Waiting{})

	for _, id := range []string{"first@x", "second@x"} {
		held := f.mail(id)
		held.Turn, held.Status = nil, store.EmailHeld
		is.NoErr(errOf(f.ReceiveEmails(f.ctx(), []store.NewEmail{held}, []byte("Subject: Please"), store.MailLimits{})))
		f.clock.advance(time.Minute)
	}
	b, err = f.Backlog(t.Context())
	is.NoErr(err)
	is.Equal(b.Held, store.Waiting{Count: 2, Age: 2 * time.Minute}) // the age of the oldest mail
}

func TestSizes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	s := f.Sizes(t.Context())
	ordertest.Above(is, s.Database, 0)
	is.True(s.WAL > 0 || storetest.OnServer()) // both files exist
	ordertest.Above(is, s.Free, 0)             // the folder is on a disk
	ordertest.AtMost(is, s.Free, s.Disk)       // the folder is on a disk
	is.Equal(s.Reserve, int64(0))              // the store has no disk limit
	limited := newFixtureWith(t, store.Options{DiskReserve: gate.DiskLimit{Bytes: 7}, DiskWarning: gate.DiskLimit{Share: 0.5}}).Sizes(t.Context())
	is.Equal(limited.Reserve, int64(7))
	is.Equal(limited.Warning, limited.Disk/2)
}
