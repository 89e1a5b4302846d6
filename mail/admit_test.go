package mail

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestCharges sends mails of a stranger whose network may send two of the smallest mails in a day. A copy costs
// nothing, nor does a mail that the full queue refuses.
func TestCharges(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]string{"accepted": Anyone, "held": Members} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newPostWith(t, true, store.Options{QueueLimit: 4}, func(c *Config) { // one of them for strangers
				c.Accept, c.Hold, c.Resolver, c.Domain = accept, true, dns{}, "workers.example"
				c.Limits = Limits{FromNetwork: 2 * minCharge}
			})
			send := func(i, times int) (e store.Email, says string) {
				for range times {
					var err error
					e, _, err = p.deliver("192.0.2.1", "eve@example.net", junk(i, 100))
					if says = string(e.Status); err != nil {
						says = fmt.Sprint(db.IsKind(err, db.Busy), db.IsKind(err, db.Limited))
					}
				}
				return e, says
			}
			const busy, limited = "true false", "false true"
			first, says := send(1, 1)
			is.Equal(says, name)
			if name == "accepted" {
				_, says = send(2, 5) // the queue is full
				is.Equal(says, busy)
				_, _, err := p.store.AbortTask(t.Context(), p.owner.Caller, first.TaskID)
				is.NoErr(err)
			}
			copied, _ := send(1, 5)
			is.Equal(copied.ID, first.ID)
			_, says = send(2, 1)
			is.Equal(says, name)
			if name == "accepted" {
				_, says = send(3, 1)
				is.Equal(says, busy)
				return
			}
			_, says = send(3, 1)
			is.Equal(says, limited)
		})
	}
}

// TestHeldAfterIgnoredCopy has a copy of a stranger's mail arrive through a mailing list before the mail itself. The
// mail is held whole, and can be released.
func TestHeldAfterIgnoredCopy(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) {
		c.Accept, c.Hold, c.Resolver, c.Domain = Members, true, dns{}, "workers.example"
	})
	copied, _ := p.delivered("192.0.2.1", "eve@example.net", junk(1, 60<<10, "List-Id: <a.example>"))
	is.Equal(copied.Status, store.EmailIgnored)
	held, _ := p.delivered("192.0.2.2", "eve@example.net", junk(1, 60<<10))
	is.Equal(held.Status, store.EmailHeld)
	ordertest.Above(is, held.Size, 50<<10)
	is.True(held.ID != copied.ID)
	is.Equal(statuses(p.emails(store.Inbound)), "held") // the copy has made way
	_, err := p.Release(t.Context(), p.owner.Caller, held.ID)
	is.NoErr(err)
}
