package mail

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// An elsewhere is a listener whose peers seem to be on the internet: a peer at 127.A.B.C has the address 192.A.B.C.
type elsewhere struct{ net.Listener }

func (e elsewhere) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	return elsewhereConn{c}, err
}

type elsewhereConn struct{ net.Conn }

func (c elsewhereConn) RemoteAddr() net.Addr {
	addr := *c.Conn.RemoteAddr().(*net.TCPAddr)
	addr.IP = slices.Clone(addr.IP.To4())
	addr.IP[0] = 192
	return &addr
}

// dialFrom connects from an address 127.A.B.C to the second listener at to, and greets.
func dialFrom(t testing.TB, from, to string) (*peer, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Minute}
	c, err := d.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute))
	p := &peer{t: t, Conn: c, r: bufio.NewReader(c)}
	p.answer()
	p.say("EHLO mx.example.com")
	return p, nil
}

// post sends one mail and returns the last answer.
func (c *peer) post(from, to, raw string) string {
	for _, line := range []string{"MAIL FROM:<" + from + ">", "RCPT TO:<" + to + ">", "DATA"} {
		if a := c.say("%s", line); a[0] != '2' && a[0] != '3' { // an answer is never empty
			return a
		}
	}
	return c.say("%s\r\n.", raw)
}

// TestMemberBesideFlood measures how long a member's mail takes over one connection while strangers send mail
// over many others.
func TestMemberBesideFlood(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) {
		c.Accept, c.Hold, c.Domain, c.Loops = Members, true, "workers.example", store.MailLimits{PerSender: -1}
		c.Resolver = dns{"example.com": {"v=spf1 ip4:192.51.100.1 -all"}}
		c.Limits = Limits{FromNetwork: 2 << 20, FromStrangers: 3 << 20}
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	served := make(chan error, 1)
	go func() { served <- p.Serve(elsewhere{ln}) }()
	address := WorkerAddress(p.worker.ID, "workers.example")
	member, err := dialFrom(t, "127.51.100.1", ln.Addr().String())
	is.NoErr(err)
	defer member.Close()
	n := 0
	send := func() time.Duration {
		n++
		raw := strings.ReplaceAll(letter(fmt.Sprint(n), fmt.Sprintf("Message-ID: <m%d@example.com>", n)), "\n", "\r\n")
		begun := time.Now()
		is.Equal(member.post("ann@example.com", address, raw), "250 2.0.0 OK: queued")
		return time.Since(begun)
	}
	mails := storetest.Rounds(400, 20)
	var alone, beside []time.Duration
	for range mails {
		alone = append(alone, send())
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	var f flood
	for _, mail := range floodWays {
		for conn := range 5 { // of each network
			group.Go(func() { f.sendOver(t, ln.Addr().String(), fmt.Sprintf("127.0.2.%d", conn%2+1), address, mail, stop) })
		}
	}
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	begun := time.Now()
	for len(beside) < mails || time.Since(begun) < time.Duration(storetest.Rounds(30, 1))*time.Second {
		beside = append(beside, send())
		<-pace.C
	}
	close(stop)
	group.Wait()
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("%d mails of strangers, %d refused, in %v; a member's mail: median %v alone, %v beside; of 20 the slowest %v and %v",
		f.sent.Load(), f.refused.Load(), time.Since(begun).Round(time.Second), alone[len(alone)/2], beside[len(beside)/2],
		alone[len(alone)*19/20], beside[len(beside)*19/20])
	ordertest.Above(is, f.sent.Load(), 0)
	ordertest.Below(is, beside[len(beside)/2], time.Second)
	is.NoErr(p.Shutdown(t.Context()))
	is.NoErr(<-served)
}

// sendOver sends mails of a way from an address until stop.
func (f *flood) sendOver(t testing.TB, to, from, address string, mail func(int) (from, to, raw string), stop chan struct{}) {
	_, _, raw := mail(0)
	raw = strings.ReplaceAll(raw, "\n", "\r\n")
	var c *peer
	for i := 0; ; i++ {
		select {
		case <-stop:
			if c != nil {
				_ = c.Close()
			}
			return
		default:
		}
		if c == nil {
			var err error
			if c, err = dialFrom(t, from, to); err != nil {
				t.Error(err)
				return
			}
		}
		sender, recipient, _ := mail(i)
		own := fmt.Sprintf("Received: by %d\r\n", i) + strings.Replace(raw, "<0@", fmt.Sprintf("<%d@", i), 1)
		a := c.post(sender, strings.Replace(recipient, "%s", address, 1), own)
		f.sent.Add(1)
		if !strings.HasPrefix(a, "250") {
			f.refused.Add(1)
		}
		if a[0] < '2' || a[0] > '5' || strings.HasPrefix(a, "421") { // the connection has ended
			_ = c.Close()
			c = nil
		}
	}
}
