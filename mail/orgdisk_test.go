package mail

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
)

// TestMailToAFullOrganization mails a worker whose organization stores as much as it may. The sender keeps
// the mail, which is accepted when there is room again. The postmaster gets mail all the same.
func TestMailToAFullOrganization(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPostWith(t, true, store.Options{OrgDisk: gate.DiskLimit{Bytes: 100_000}}, nil)
	disk := p.store.DiskOf(p.worker.OrganizationID)
	c := p.dial().greet()
	defer c.Close()
	c.must("250", c.say("MAIL FROM:<ann@example.com>"))
	left := disk.Left()
	disk.Add(left)
	c.must("452 4.2.2", c.say("RCPT TO:<%s>", p.address()))
	c.must("250", c.say("RCPT TO:<postmaster@%s>", "localhost"))
	c.must("250", c.say("RSET"))
	disk.Add(-500) // room for the envelope, but not for the mail
	c.begin("ann@example.com", p.address())
	mail := "Subject: Hello\r\nFrom: ann@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nDo it.\r\n"
	for range 20 {
		mail += "a line of the text that has some more words than are needed\r\n"
	}
	c.must("452 4.2.2", c.say("%s.", mail))
	is.Equal(len(p.emails(store.Inbound)), 0)
	is.Equal(disk.Left(), int64(500)) // nothing counts that was refused
	disk.Add(-left)
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello")), "250 2.0.0 OK: queued")
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello", "Message-ID: <2@example.com>")), "250 2.0.0 OK: queued")
	before := disk.Left()
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello", "Message-ID: <2@example.com>")), "250 2.0.0 OK: queued")
	ordertest.Below(is, before-disk.Left(), 1000) // a copy is listed, with little of its text
}
