package mail

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// floodWays are the ways in which a stranger can make the server store mail that starts no work. Each returns
// the i-th mail, with its sender in the envelope. %s is the worker's address.
var floodWays = map[string]func(i int) (from, to, raw string){
	"automatic": func(i int) (from, to, raw string) {
		return "eve@example.net", "%s", junk(i, 60<<10, "Auto-Submitted: auto-generated")
	},
	"bounces": func(i int) (from, to, raw string) {
		return "", "%s", junk(i, 60<<10, `Content-Type: multipart/report; boundary=b`, "Subject: "+strings.Repeat("s", 900))
	},
	"postmaster": func(i int) (from, to, raw string) {
		return "eve@example.net", "postmaster@workers.example", junk(i, 60<<10)
	},
	"held": func(i int) (from, to, raw string) {
		return fmt.Sprintf("eve%d@example.net", i%3), "%s", junk(i, 100<<10)
	},
	"copies": func(i int) (from, to, raw string) {
		return "eve@example.net", "%s", fmt.Sprintf("Received: by %d; x\n", i) + junk(0, 60<<10)
	},
	"no text": func(i int) (from, to, raw string) {
		return "eve@example.net", "%s", junk(i, 100, "List-Id: <a.example>", "X-Long: "+strings.Repeat("x ", 30<<10))
	},
}

// junk returns a mail of a stranger with a text of some bytes.
func junk(i, bytes int, fields ...string) string {
	return letter(strings.Repeat("All work and no play.\n", bytes/22), append(fields, "From: eve@example.net",
		fmt.Sprintf("Message-ID: <%d@example.net>", i))...)
}

// A flood sends the mails of strangers.
type flood struct {
	*post
	refused, sent atomic.Int64 // mails
	bytes         atomic.Int64 // of all of them
}

// run sends a number of mails of each way side by side, and continues for at least a time.
func (f *flood) run(rounds int, least time.Duration) {
	begun := time.Now()
	var group sync.WaitGroup
	for _, mail := range floodWays {
		group.Go(func() {
			for i := 0; i < rounds || time.Since(begun) < least; i++ {
				from, to, raw := mail(i)
				to = strings.Replace(to, "%s", WorkerAddress(f.worker.ID, f.cfg.Domain), 1)
				_, _, err := f.deliverTo(to, fmt.Sprintf("192.0.2.%d", i%2), from, raw)
				f.sent.Add(1)
				f.bytes.Add(int64(len(raw)))
				switch {
				case db.IsKind(err, db.Limited):
					f.refused.Add(1)
				case err != nil:
					f.t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// disk returns the bytes of the data folder.
func (p *post) disk() (n int64) {
	p.t.Helper()
	is.New(p.t).NoErr(filepath.WalkDir(p.store.Dir(), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err == nil { // a temporary file may be gone
			n += info.Size()
		}
		return nil
	}))
	return n
}

// TestStrangersFlood lets strangers send mail that starts no work, in all ways at once. The rows and the bytes on
// the disk stay bounded, and members' mails are accepted meanwhile.
func TestStrangersFlood(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"example.com": {"v=spf1 ip4:198.51.100.1 -all"}}
	const mebibyte = 1 << 20
	p := newPost(t, true, func(c *Config) {
		c.Accept, c.Hold, c.Resolver, c.Domain, c.Loops = Members, true, d, "workers.example", store.MailLimits{PerSender: -1}
		c.Limits = Limits{FromNetwork: 2 * mebibyte, FromStrangers: 3 * mebibyte}
	})
	var members []string
	for i := range 60 {
		members = append(members, letter(fmt.Sprint(i), fmt.Sprintf("Message-ID: <m%d@example.com>", i)))
	}
	member := func(raw string) time.Duration {
		begun := time.Now()
		e, _ := p.delivered("198.51.100.1", "ann@example.com", raw)
		is.Equal(e.Status, store.EmailAccepted)
		is.True(!p.turn(e).Stranger())
		return time.Since(begun)
	}
	var alone, beside time.Duration
	for _, raw := range members[:30] {
		alone += member(raw)
	}
	before := p.disk()

	f := &flood{post: p}
	done := make(chan struct{})
	least := time.Duration(storetest.Rounds(120, 0)) * time.Second
	go func() { defer close(done); f.run(300, least) }()
	for _, raw := range members[30:] { // spread over the flood
		beside += member(raw)
		select {
		case <-done:
		case <-time.After(least / 30):
		}
	}
	<-done
	grown := p.disk() - before
	t.Logf("%d mails of %d MiB, %d refused; the disk has grown by %d MiB; a member's mail takes %v alone and %v beside",
		f.sent.Load(), f.bytes.Load()/mebibyte, f.refused.Load(), grown/mebibyte, alone/30, beside/30)

	// Two networks with 200 mails each of both states, of at most 24 KiB if ignored.
	rows := map[store.EmailStatus]int{}
	for _, e := range p.emails(store.Inbound) {
		rows[e.Status]++
		is.True(e.Status != store.EmailIgnored || e.Size <= 25<<10)
	}
	is.Equal(rows[store.EmailAccepted], len(members))
	ordertest.AtMost(is, rows[store.EmailIgnored], 400)
	ordertest.Above(is, rows[store.EmailIgnored], 300)
	ordertest.AtMost(is, rows[store.EmailHeld], 400)
	ordertest.Above(is, f.refused.Load(), 0)           // held mail beyond the limit of a day
	ordertest.Above(is, f.bytes.Load(), 50*mebibyte)   // much more than the server stores
	ordertest.Below(is, grown, 3*mebibyte+30*mebibyte) // held mail, and the database with its log
}

// TestBeginningOfIgnoredMail releases an automatic mail of which only the beginning is stored.
func TestBeginningOfIgnoredMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	raw := letter("Code 4711\n"+strings.Repeat("More text.\n", 10_000), "List-Id: <a.example>")
	is.Equal(p.send("ann@example.com", p.address(), raw), "250 2.0.0 OK: queued")
	e := p.emails(store.Inbound)[0]
	is.Equal([]string{string(e.Status), e.Reason}, []string{"ignored", "mailing-list (only the beginning of the mail is kept)"})
	ordertest.Below(is, e.Size, 9<<10)
	e, err := p.Release(t.Context(), p.owner.Caller, e.ID)
	is.NoErr(err)
	input := p.turn(e).Input
	is.True(strings.HasPrefix(input, "Code 4711\n") && strings.HasSuffix(input, "\n\n(Only the beginning of this mail was kept.)"))
	is.Equal(string(message.Beginning([]byte(raw[:200]))), raw[:200]) // a short mail is whole
}

// TestIntake takes bytes of strangers' mail until a limit, which fills up again within a day.
func TestIntake(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	in := newIntake(10*minCharge, 25*minCharge)
	take := func(organization, network string, n int64) string {
		err := in.take(organization, network, n*minCharge, now)
		if err == nil {
			return "taken"
		}
		is.True(db.IsKind(err, db.Limited))
		return strings.Fields(strings.TrimPrefix(err.Error(), "too much mail of "))[0]
	}
	for _, tt := range []struct {
		organization, network string
		n                     int64
		pause                 time.Duration
		want                  string
	}{
		{"org_a", "a", 10, 0, "taken"}, {"org_a", "a", 1, 0, "your"},
		{"org_a", "a", 1, intakeTime/10 - time.Second, "your"},
		{"org_a", "a", 0, 2 * time.Second, "taken"}, // as much as the smallest charge
		{"org_b", "b", 10, 0, "taken"}, {"org_c", "", 7, 0, "strangers"}, {"org_c", "", 6, 0, "taken"},
		{"org_d", "c", 1, 0, "strangers"}, {"org_d", "c", 10, intakeTime, "taken"},
		{"org_d", "d", 3, 0, "strangers"}, // an organization has half
		{"org_e", "d", 3, 0, "taken"},
	} {
		now = now.Add(tt.pause)
		is.Equal(take(tt.organization, tt.network, tt.n), tt.want)
	}
	is.Equal(len(in.of), 5) // the limits of the others are full again
}
