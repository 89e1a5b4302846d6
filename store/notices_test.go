package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestNotices receives mail of unproven authors from many networks. The server sends a bounded number of
// notices, which raise no alerts and are deleted like other mail of strangers.
func TestNotices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	receive := func(id, network, author string) {
		n := f.mail(id)
		n.ReplyTo, n.NoticeTo, n.Network = "", author, network
		f.receive(n)
	}
	send := func(i int) { receive(fmt.Sprint(i), fmt.Sprintf("10.0.%d.%d", i/256, i%256), "bob@example.net") }
	notices := func() int64 { return f.count(`SELECT count(*) FROM outbound_emails WHERE kind = 'notice'`) }
	for i := range 110 { // through a relay, each author twice
		receive(fmt.Sprint("relayed", i), "", fmt.Sprintf("bob%d@example.net", i/2))
	}
	is.Equal(notices(), int64(50)) // the limit of relays
	f.clock.advance(24*time.Hour + time.Millisecond)
	f.exec(`DELETE FROM outbound_emails`)
	for i := range 110 {
		send(i)
		f.clock.advance(time.Second)
	}
	is.Equal(notices(), int64(100))
	f.clock.advance(24*time.Hour - 110*time.Second + time.Millisecond)
	send(1000)
	is.Equal(notices(), int64(101)) // the first one is a day old
	r := f.claimReplies(10)[0]
	is.Equal(r.Kind, store.ReplyNotice)
	is.NoErr(f.Effects.ComposeReply(f.ctx(), &r, "Notice", []byte("raw")))
	is.NoErr(f.Effects.GiveUpReply(f.ctx(), r, "no such user"))
	is.Equal(f.count(`SELECT count(*) FROM alerts`), int64(0))
	f.clock.advance(time.Hour)
	is.NoErr(errOf(f.Effects.PruneEmails(f.ctx(), time.Minute, 1000)))
	is.Equal(notices(), int64(100)) // the others are still queued
}
