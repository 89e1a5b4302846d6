package mail

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestSlots lets connections of several networks wait for the only slot.
func TestSlots(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	s := newSlots()
	s.free = 1
	newPass := func(network string) *pass {
		return &pass{slots: s, network: network, now: func() time.Time { return now }}
	}
	holder := newPass("a")
	is.Equal(holder.enter(), nil)
	s.ofMember("member", now)
	is.Equal(newPass("member").enter(), nil) // needs no slot
	is.Equal(s.free, 0)

	type waits struct {
		*pass
		name  string
		ready <-chan struct{}
	}
	var all []waits
	for _, name := range []string{"b1", "b2", "b3", "c1", "c2", "d1", "closed", "paused"} {
		p := newPass(name[:1])
		all = append(all, waits{p, name, p.enter()})
		is.True(all[len(all)-1].ready != nil)
	}
	all[6].close()
	resume := all[7].pause()
	var order []string
	for holder != nil {
		holder.pause() // gives the slot to the next
		holder = nil
		for _, w := range all {
			if w.held {
				holder, order = w.pass, append(order, w.name)
				<-w.ready // closed
			}
		}
	}
	is.Equal(strings.Join(order, " "), "b1 c1 d1 b2 c2 b3")
	<-all[6].ready // without a slot
	<-all[7].ready
	is.Equal(s.free, 1)
	is.Equal(len(s.waiting), 0)
	resume()
	is.Equal(s.free, 0) // the slot of "paused"
	all[7].close()
	is.Equal(s.free, 1)

	now = now.Add(membersTime + time.Second)
	is.Equal(newPass("member").enter(), nil)
	is.Equal(s.free, 0) // the member's last mail is too old
}

// slowDNS is a resolver that waits for the end of a channel before it looks up a domain.
type slowDNS struct {
	dns
	domain       string
	asked, until chan struct{}
}

func (d slowDNS) LookupTXT(ctx context.Context, name string) ([]string, error) {
	if strings.TrimSuffix(name, ".") == d.domain {
		d.asked <- struct{}{}
		<-d.until
	}
	return d.dns.LookupTXT(ctx, name)
}

// TestNoSlotWhileWaiting lets a stranger wait in the middle of a mail, and another one for the DNS. The mail of a
// third one needs the only slot.
func TestNoSlotWhileWaiting(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := slowDNS{dns{}, "slow.example", make(chan struct{}, 10), make(chan struct{})}
	p := newPost(t, true, func(c *Config) {
		c.Accept, c.Domain, c.Resolver = Anyone, "workers.example", d
	})
	p.slots.mu.Lock()
	p.slots.free = 1 // before the first connection
	p.slots.mu.Unlock()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(elsewhere{ln}) }()
	answerDNS := sync.OnceFunc(func() { close(d.until) })
	defer answerDNS()
	address := WorkerAddress(p.worker.ID, "workers.example")
	dial := func(from string) *peer {
		c, err := dialFrom(t, from, ln.Addr().String())
		is.NoErr(err)
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	mail := func(domain string) string {
		return strings.ReplaceAll(letter("Hello.", "From: eve@"+domain, "Message-ID: <1@"+domain+">"), "\n", "\r\n")
	}

	stalled := dial("127.0.2.1")
	stalled.begin("eve@example.net", address)
	_, err = fmt.Fprint(stalled, mail("example.net"))
	is.NoErr(err)
	slow := dial("127.0.2.2")
	slow.begin("eve@slow.example", address)
	_, err = fmt.Fprint(slow, mail("slow.example")+"\r\n.\r\n")
	is.NoErr(err)
	<-d.asked
	is.Equal(dial("127.0.2.3").post("eve@example.org", address, mail("example.org")), "250 2.0.0 OK: queued")
	answerDNS()
	is.Equal(slow.answer(), "250 2.0.0 OK: queued")
	is.Equal(stalled.say("."), "250 2.0.0 OK: queued")
	is.Equal(len(p.emails(store.Inbound)), 3)
	is.NoErr(p.Shutdown(t.Context()))
	is.NoErr(<-served)
}
