package store_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestPostmasterMailIsBounded keeps the newest, and shows them to those alone who
// manage mail.
func TestPostmasterMailIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	stranger := f.caller("Globex", "sam@globex.test", store.RoleOwner)
	member := f.caller("Acme", "mo@acme.test", store.RoleMember)
	f.receive(f.mail("work@x"))
	var first, last store.Email
	for i := range 1003 {
		e, err := f.ReceivePostmasterEmail(f.ctx(), store.NewEmail{MessageID: fmt.Sprint(i % 2), To: "postmaster@x", Subject: fmt.Sprint(i)}, []byte("raw"))
		is.NoErr(err)
		if last = e; i == 3 {
			first = e
		}
	}
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails WHERE worker_id IS NULL`), int64(1000))
	is.Equal(f.count(`SELECT count(*) FROM inbound_emails`), int64(1001)) // no other mail is pushed out
	for _, e := range []store.Email{first, last} {
		again, err := f.Email(f.ctx(), f.owner.Caller, e.ID)
		is.NoErr(err)
		is.Equal(again.Subject, e.Subject)
		for _, c := range []store.Identity{member, stranger} {
			_, err = f.Email(f.ctx(), c.Caller, e.ID)
			is.True(store.IsKind(err, store.Forbidden))
			list, _, err := f.Emails(f.ctx(), c.Caller, store.EmailQuery{Status: store.EmailIgnored, Limit: 5})
			is.NoErr(err)
			is.Equal(len(list), 0)
		}
	}
}
