package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestMailThatStartsNoWorkIsBounded receives more mails than a sender, a network and a worker may have. The
// oldest are deleted, by their number and by their bytes, and no other mail.
func TestMailThatStartsNoWorkIsBounded(t *testing.T) {
	t.Parallel()
	sender := func(i int) string { return fmt.Sprintf("%d@example.net", i) }
	network := func(i int) string { return fmt.Sprint("2001:db8:", i, "::/64") }
	for name, tt := range map[string]struct {
		mail       func(i int) (from, network string)
		sent, kept int
		bytes      int // of each
	}{
		"one sender":            {func(i int) (string, string) { return sender(1), network(i) }, 55, 50, 10},
		"one network":           {func(i int) (string, string) { return sender(i), network(1) }, 204, 200, 10},
		"one worker":            {func(i int) (string, string) { return sender(i), network(i) }, 1004, 1000, 10},
		"a relay":               {func(i int) (string, string) { return sender(i), "" }, 1004, 1000, 10},
		"bytes of one sender":   {func(i int) (string, string) { return sender(1), network(i) }, 7, 5, 6 << 20},
		"bytes of one network":  {func(i int) (string, string) { return sender(i), network(1) }, 6, 4, 15 << 20},
		"one mail of all bytes": {func(i int) (string, string) { return sender(1), network(1) }, 3, 1, 65 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.sent > 1000 || tt.bytes > 10<<20 {
				storetest.Slow(t)
			}
			is := is.New(t)
			f := newFixture(t)
			none := func(i int, status store.EmailStatus) store.NewEmail {
				n := f.mail(fmt.Sprint(status, i))
				n.Turn, n.Status = nil, status
				n.From, n.Network = tt.mail(i)
				return n
			}
			raw := []byte(strings.Repeat("x", tt.bytes))
			// Mails of the same sender and network that no other mail may displace.
			proven := none(0, store.EmailHeld)
			proven.Content, proven.Proven = "proven", store.AuthorProven
			others := f.receive(f.mail("work"), none(0, store.EmailIgnored))
			held, _, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{proven}, []byte("x"), store.MailLimits{})
			is.NoErr(err)
			dropped := int64(0)
			for i := range tt.sent {
				list, _, err := f.ReceiveEmails(f.ctx(), []store.NewEmail{none(i, store.EmailHeld)}, raw, store.MailLimits{})
				is.NoErr(err)
				dropped += list[0].Dropped
			}
			count := func(where string, args ...any) int {
				return int(f.count(`SELECT count(*) FROM inbound_emails WHERE `+where, args...))
			}
			kept := count(`status = 'held' AND proven = 0`)
			is.True(kept == tt.kept || kept == tt.kept-1) // a network counts the proven mail, too
			is.Equal(count(`status = 'held' AND proven = 0 AND message_id = ?`, fmt.Sprint("held", tt.sent-1)), 1)
			is.Equal(count(`status = 'held' AND proven = 0 AND message_id = 'held0'`), 0) // the oldest
			is.Equal(count(`id = ? OR id = ?`, others[0].ID, others[1].ID), 2)
			if !strings.Contains(name, "network") && tt.kept > 1 {
				is.Equal(count(`id = ?`, held[0].ID), 1)
				is.Equal(dropped, int64(tt.sent-tt.kept))
			}
		})
	}
}
