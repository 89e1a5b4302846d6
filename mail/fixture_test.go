package mail

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-message/mail"

	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestMain makes this program work as a document reader, as the real program does.
func TestMain(m *testing.M) {
	filters := tool.Filters()
	filters["markdown"] = message.RenderMarkdown
	filters["endless"] = func([]byte) ([]byte, error) { select {} }
	sandbox.BeFilter(os.Args, filters)
	storetest.SideBySide(4)
	os.Exit(m.Run())
}

var (
	testPool      = sandbox.NewFilterPool()
	testDocuments = tool.NewDocuments(testPool)
	testHTML      = testDocuments.MailHTML
)

// A post is a mail server under test, with a real store and runner, one organization and a public
// worker.
type post struct {
	*Server
	t      testing.TB
	store  *store.Store
	runner *runner.Runner
	addr   string
	owner  people.Identity
	worker workers.Worker
}

// domain is the domain of worker addresses in tests.
const domain = "localhost"

// newPost starts a server. The runner runs unless idle is set.
func newPost(t testing.TB, idle bool, change func(*Config)) *post {
	t.Helper()
	return newPostWith(t, idle, store.Options{QueueLimit: 1_000_000}, change)
}

func newPostWith(t testing.TB, idle bool, opt store.Options, change func(*Config)) *post {
	t.Helper()
	is := is.New(t)
	st := storetest.Open(t, opt)
	prices, err := model.LoadPrices("")
	is.NoErr(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	rn := runner.New(runner.Config{Store: st, Model: offline.New(), Prices: prices, Tools: tool.All(testDocuments), BaseURL: "http://jm.test", Log: log})
	cfg := Config{Store: st, Runner: rn, Log: log, Domain: domain, HTML: testHTML,
		Envelope: testDocuments.OpenEnvelope}
	if change != nil {
		change(&cfg)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	p := &post{Server: New(cfg), t: t, store: st, runner: rn, addr: ln.Addr().String()}
	p.owner, _ = storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	p.worker = p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Scribe", Instructions: "Help."})
	served := make(chan error, 1)
	go func() { served <- p.Serve(ln) }()
	if !idle {
		is.NoErr(rn.Start(t.Context()))
	}
	p.Start()
	t.Cleanup(func() { p.stop(idle, served) })
	return p
}

func (p *post) stop(idle bool, served chan error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.Shutdown(ctx) // a test may have left connections open
	_ = p.Close()       // a machine under load may have left replies
	p.loops.Wait()
	if err := <-served; err != nil {
		p.t.Error(err)
	}
	if !idle {
		if err := p.runner.Stop(ctx); err != nil {
			p.t.Error(err)
		}
	}
}

func (p *post) newWorker(c people.Caller, n workers.NewWorker) workers.Worker {
	p.t.Helper()
	w, _, err := p.store.Workers.CreateWorker(p.t.Context(), c, n, db.IdempotencyKey{})
	is.New(p.t).NoErr(err)
	return w
}

// address returns the address of the worker.
func (p *post) address() string { return WorkerAddress(p.worker.ID, domain) }

// A peer sends SMTP line by line, so that tests can break its rules.
type peer struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (p *post) dial() *peer {
	p.t.Helper()
	c, err := net.Dial("tcp", p.addr)
	is.New(p.t).NoErr(err)
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	p.t.Cleanup(func() { _ = c.Close() })
	return &peer{t: p.t, Conn: c, r: bufio.NewReader(c)}
}

// answer reads one answer, with any number of lines.
func (c *peer) answer() string {
	c.t.Helper()
	var all strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return all.String() + "(" + err.Error() + ")"
		}
		all.WriteString(line)
		if len(line) < 4 || line[3] != '-' {
			return strings.TrimRight(all.String(), "\r\n")
		}
	}
}

// say sends a line and returns the answer.
func (c *peer) say(format string, args ...any) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.Conn, format+"\r\n", args...); err != nil {
		return err.Error()
	}
	return c.answer()
}

// must fails the test unless the answer begins with code.
func (c *peer) must(code, answer string) {
	c.t.Helper()
	if !strings.HasPrefix(answer, code) {
		c.t.Fatalf("answer %q, want %s", answer, code)
	}
}

// begin sends the envelope of a mail, and the command before its content.
func (c *peer) begin(from, to string) {
	c.t.Helper()
	c.must("250", c.say("MAIL FROM:<%s>", from))
	c.must("250", c.say("RCPT TO:<%s>", to))
	c.must("354", c.say("DATA"))
}

// greet waits for the greeting and sends EHLO.
func (c *peer) greet() *peer {
	c.t.Helper()
	c.must("220", c.answer())
	c.must("250", c.say("EHLO mx.example.com"))
	return c
}

// send sends a mail and returns the last answer.
func (p *post) send(from, to, raw string) string {
	p.t.Helper()
	c := p.dial().greet()
	defer c.Close()
	if a := c.say("MAIL FROM:<%s>", from); !strings.HasPrefix(a, "250") {
		return a
	}
	for one := range strings.SplitSeq(to, " ") {
		if a := c.say("RCPT TO:<%s>", one); !strings.HasPrefix(a, "250") {
			return a
		}
	}
	c.must("354", c.say("DATA"))
	raw = strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\n", "\r\n")
	return c.say("%s\r\n.", strings.ReplaceAll(raw, "\r\n.", "\r\n.."))
}

// letterDate is the Date of a letter that names no other.
const letterDate = "Sat, 21 Nov 2026 09:30:00 +0000"

// letter returns a plain mail with the given header fields.
func letter(text string, fields ...string) string {
	var b strings.Builder
	all := strings.Join(fields, "\n")
	for _, f := range []string{"From: Ann <ann@example.com>", "To: worker", "Subject: Question", "Date: " + letterDate} {
		if key, _, _ := strings.Cut(f, ":"); !strings.Contains("\n"+all, "\n"+key+":") {
			b.WriteString(f + "\n")
		}
	}
	if all != "" {
		b.WriteString(all + "\n")
	}
	return b.String() + "\n" + text + "\n"
}

// emails returns all mails of a direction, oldest first.
func (p *post) emails(direction string) (all []store.Email) {
	p.t.Helper()
	q := store.EmailQuery{Direction: direction, Limit: 100}
	for {
		list, next, err := p.store.Effects.Emails(p.t.Context(), p.owner.Caller, q)
		is.New(p.t).NoErr(err)
		if all = append(all, list...); next == "" {
			slices.Reverse(all)
			return all
		}
		q.Cursor = next
	}
}

// turn returns the turn of a mail.
func (p *post) turn(e store.Email) store.Turn {
	p.t.Helper()
	t, err := p.store.Turn(p.t.Context(), e.TurnID)
	is.New(p.t).NoErr(err)
	return t
}

// replies waits until n replies have one of the states, and returns them.
func (p *post) replies(n int, states ...store.EmailStatus) []store.Email {
	p.t.Helper()
	var list []store.Email
	storetest.Eventually(p.t, fmt.Sprintf("%d replies in state %v", n, states), func() bool {
		list = slices.DeleteFunc(p.emails(store.Outbound), func(e store.Email) bool { return !slices.Contains(states, e.Status) })
		return len(list) >= n
	})
	return list
}

// source returns a mail's source, parsed.
func (p *post) source(e store.Email) (*mail.Reader, string) {
	p.t.Helper()
	raw, err := p.store.Effects.EmailSource(p.t.Context(), e)
	is.New(p.t).NoErr(err)
	r, err := mail.CreateReader(bytes.NewReader(raw))
	is.New(p.t).NoErr(err)
	return r, string(raw)
}
