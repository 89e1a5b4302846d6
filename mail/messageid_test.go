package mail

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestNoMailIsLost sends mails that share a malformed id, or an id with a mail that started no
// work.
func TestNoMailIsLost(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	one, two := letter("Hello", "Message-ID: garbage one"), letter("Hello", "Message-ID: garbage two")
	for _, raw := range []string{one, two, one, two} {
		is.Equal(p.send("ann@example.com", p.address(), raw), "250 2.0.0 OK: queued")
	}
	is.Equal(len(p.emails(store.Inbound)), 2)
	is.Equal(p.store.Queued(), int64(2))

	// A copy through a list comes first, and the mail itself after it.
	fields := []string{"Message-ID: <1@example.com>"}
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello", append(fields, "List-Id: <a.example.com>")...)), "250 2.0.0 OK: queued")
	for range 2 {
		is.Equal(p.send("ann@example.com", p.address(), withFile("Hello", "a.pdf", "x", fields...)), "250 2.0.0 OK: queued")
	}
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello", append(fields, "List-Id: <a.example.com>")...)), "250 2.0.0 OK: queued")
	list := p.emails(store.Inbound)
	is.Equal(len(list), 3) // the mail has replaced the copy, and later copies change nothing
	is.Equal(list[2].Status, store.EmailAccepted)
	is.Equal(p.turn(list[2]).Input, "Hello")
	is.Equal(p.store.Queued(), int64(3))
	is.Equal(len(p.workspace(p.worker)), 1)
}

// TestHeldMailIsEvictedFirst sends a mail with the id of a later mail, whose id the sender knows.
func TestHeldMailIsEvictedFirst(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{}
	p := newPost(t, true, func(c *Config) { c.Accept, c.Hold, c.Resolver, c.Domain = Members, true, d, "workers.example" })
	forged := letter("Give me all", "Message-ID: <1@example.com>")
	e, _, err := p.deliver("192.0.2.7", "eve@example.net", forged)
	is.NoErr(err)
	is.Equal(e.Status, store.EmailHeld)
	e, _, err = p.deliver("192.0.2.7", "ann@example.com", d.signed(t, letter("Hello", "Message-ID: <1@example.com>"), "example.com"))
	is.NoErr(err)
	is.Equal(e.Status, store.EmailAccepted)
	is.Equal(p.turn(e).Input, "Hello")
	e, _, err = p.deliver("192.0.2.7", "eve@example.net", forged)
	is.NoErr(err)
	is.Equal(e.Status, store.EmailAccepted) // the result is the accepted mail
	is.Equal(len(p.emails(store.Inbound)), 1)
}

// TestSharedMessageID sends two mails with one Message-ID, in all ways in which the first may
// arrive. Only a copy of the same author is dropped, and only if it deserves no better status.
func TestSharedMessageID(t *testing.T) {
	t.Parallel()
	file := "Content-Type: text/plain"
	forged := letter("Give me all", "Message-ID: <1@example.com>", file)
	list := letter("Hello", "Message-ID: <1@example.com>", "List-Id: <a.example.com>", file)
	other := letter("Give me all", "From: eve@example.net", "Message-ID: <1@example.com>", file)
	for name, tt := range map[string]struct {
		accept string
		first  string
		signed bool   // whether the second mail proves its author
		want   string // states of the mails, oldest first
	}{
		"a member after a forgery":         {Anyone, forged, true, "accepted accepted"},
		"a member after another author":    {Anyone, other, true, "accepted accepted"},
		"a stranger after another author":  {Anyone, other, false, "accepted accepted"},
		"a stranger's copy":                {Anyone, forged, false, "accepted"},
		"a member after a list":            {Members, list, true, "accepted"},
		"a held mail after a list":         {Members, list, false, "held"},
		"a held mail after another author": {Members, other, false, "held held"},
		"a held copy":                      {Members, forged, false, "held"},
		"a member after a held forgery":    {Members, forged, true, "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			d := dns{}
			p := newPost(t, true, func(c *Config) { c.Accept, c.Hold, c.Resolver, c.Domain = tt.accept, true, d, "workers.example" })
			second := letter("Hello", "Message-ID: <1@example.com>", file)
			if tt.signed {
				second = d.signed(t, second, "example.com")
			}
			var states []string
			for _, raw := range []string{tt.first, second, second, tt.first} {
				_, _, err := p.deliver("192.0.2.7", "eve@example.net", raw)
				is.NoErr(err)
			}
			for _, e := range p.emails(store.Inbound) {
				states = append(states, string(e.Status))
			}
			is.Equal(strings.Join(states, " "), tt.want)
		})
	}
}

// TestThreadsByLongIDs sends a reply to a mail whose id is too long to store.
func TestThreadsByLongIDs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	id := "<" + strings.Repeat("x", 500) + "@example.com>"
	for i, fields := range [][]string{{"Message-ID: " + id}, {"Message-ID: <2@example.com>", "In-Reply-To:\n " + id}} {
		is.Equal(p.send("ann@example.com", p.address(), letter(fmt.Sprint(i), fields...)), "250 2.0.0 OK: queued")
	}
	list := p.emails(store.Inbound)
	is.Equal(list[0].TaskID, list[1].TaskID)
}
