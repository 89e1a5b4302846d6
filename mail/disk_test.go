package mail

import (
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/gate"
)

// TestMailOnFullDisk mails a server whose disk is full. The sender gets a temporary refusal before
// the mail arrives, and mail is accepted when there is room again.
func TestMailOnFullDisk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var free atomic.Int64
	free.Store(50)
	p := newPostWith(t, true, store.Options{DiskReserve: gate.DiskLimit{Bytes: 2},
		Statfs: func(string) (gate.DiskSpace, error) { return gate.DiskSpace{Free: free.Load(), Total: 100}, nil }}, nil)
	free.Store(0)
	is.NoErr(p.store.WatchDisk(t.Context()))
	c := p.dial().greet()
	defer c.Close()
	c.must("452 4.3.1", c.say("MAIL FROM:<ann@example.com>"))
	free.Store(50)
	is.NoErr(p.store.WatchDisk(t.Context()))
	c.begin("ann@example.com", p.address())
	free.Store(0) // while the mail arrives
	is.NoErr(p.store.WatchDisk(t.Context()))
	c.must("452 4.3.1", c.say("Subject: Hello\r\nFrom: ann@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nDo it.\r\n."))
	is.Equal(p.store.Queued(), int64(0))
	is.Equal(len(p.emails(store.Inbound)), 0) // no part of the mail is stored
}
