package mail

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
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
	e, _ := p.delivered("192.0.2.7", "eve@example.net", forged)
	is.Equal(e.Status, store.EmailHeld)
	e, _ = p.delivered("192.0.2.7", "ann@example.com", p.signed(d, letter("Hello", "Message-ID: <1@example.com>"), "example.com"))
	is.Equal(e.Status, store.EmailAccepted)
	is.Equal(p.turn(e).Input, "Hello")
	e, _ = p.delivered("192.0.2.7", "eve@example.net", forged)
	is.Equal(e.Status, store.EmailAccepted) // the result is the accepted mail
	is.Equal(len(p.emails(store.Inbound)), 1)
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

// TestRepeatedAnswerByMail answers a stranger's question by mail, and delivers the answer twice, because
// its first 250 was lost. It counts once, and the author of the first mail is the sender of the turn.
func TestRepeatedAnswerByMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{}
	p := newPost(t, false, func(c *Config) { c.Accept, c.Resolver, c.Domain = Anyone, d, domain })
	p.worker = p.newWorker(p.owner.Caller, store.NewWorker{Title: "Waiter",
		Settings: store.WorkerSettings{StrangerTools: store.ToolRules{{Tool: "ask_user"}}}})
	first, _ := p.delivered("192.0.2.7", "ann@example.com",
		letter(askingFor(`{"question": "Who?"}`), "Message-ID: <q1@example.com>"))
	question, _ := p.questionOf(1)
	answer := p.signed(d, letter("me", "Message-ID: <a1@example.com>", "In-Reply-To: <"+question+">"), "example.com")
	for range 2 {
		p.delivered("192.0.2.7", "ann@example.com", answer)
		storetest.Eventually(t, "the end of the turn", func() bool { return p.turn(first).Status.Ended() })
	}
	is.Equal(len(p.emails(store.Inbound)), 2)
	sender, err := p.store.Sender(t.Context(), p.turn(first))
	is.NoErr(err)
	is.Equal(sender, "ann@example.com")
}
