package mail

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
)

// TestPostmaster sends mail of anyone to the postmaster, under any policy.
func TestPostmaster(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) { c.Accept = "boss@example.com" })
	for i, from := range []string{"stranger@example.net", "", "mailer-daemon@example.net"} {
		answer := p.send(from, []string{"postmaster@" + domain, "PostMaster@" + strings.ToUpper(domain), "postmaster+abuse@" + domain}[i],
			letter("You send me mail I never asked for.", "From: "+from, "Auto-Submitted: auto-generated"))
		is.True(strings.HasPrefix(answer, "250"))
	}
	got := p.emails(store.Inbound)
	is.Equal(len(got), 3)
	for _, e := range got {
		is.Equal([]string{string(e.Status), e.WorkerID, e.TaskID, e.OrgID}, []string{"ignored", "", "", p.owner.OrganizationID})
	}
	_, raw := p.source(got[0])
	is.True(strings.Contains(raw, "never asked for"))
	is.Equal(p.store.Queued(), int64(0)) // no task

	// The other recipients of a mail share its answer, and their policy applies.
	c := p.dial().greet()
	defer c.Close()
	c.must("250", c.say("MAIL FROM:<stranger@example.net>"))
	c.must("250", c.say("RCPT TO:<postmaster@%s>", domain))
	c.must("452", c.say("RCPT TO:<%s>", p.address()))
	c.must("250", c.say("RSET"))
	c.must("250", c.say("MAIL FROM:<stranger@example.net>"))
	c.must("250", c.say("RCPT TO:<%s>", p.address()))
	c.must("452", c.say("RCPT TO:<postmaster@%s>", domain))

	_, err := p.Release(t.Context(), p.owner.Caller, got[0].ID)
	is.True(db.IsKind(err, db.Conflict)) // it starts no work
	_, err = p.Receive(t.Context(), p.owner, "", []string{"postmaster@" + domain}, []byte(letter("x")))
	is.True(db.IsNotFound(err)) // operators use the API instead
}
