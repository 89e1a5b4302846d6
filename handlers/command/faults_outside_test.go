//go:build linux

package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	netsmtp "net/smtp"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/matryer/is"
)

// A receiver is a webhook endpoint that stores the ids of the deliveries of each turn.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	turns map[string]map[string]int // the number of each delivery, by turn
	fault http.HandlerFunc          // answers instead; usually nil
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	h := &receiver{turns: map[string]map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		fault := h.fault
		h.mu.Unlock()
		if fault != nil {
			fault(w, r)
			return
		}
		h.note(r)
	}))
	t.Cleanup(h.Close)
	return h
}

// note stores a complete delivery.
func (h *receiver) note(r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var v struct {
		ID   string
		Turn struct{ ID string }
	}
	if err != nil || json.Unmarshal(body, &v) != nil {
		return // truncated by a kill
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[v.Turn.ID] == nil {
		h.turns[v.Turn.ID] = map[string]int{}
	}
	h.turns[v.Turn.ID][v.ID]++
}

func (h *receiver) breaks(fault http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// of returns the deliveries of a turn, with the number of each.
func (h *receiver) of(turn string) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turns[turn]
}

// A relayHost is a mail server that receives the replies. It counts them by Message-ID.
type relayHost struct {
	addr  string
	mu    sync.Mutex
	got   map[string]int
	fault func() error // called first for a mail; usually nil
}

func newRelayHost(t testing.TB) *relayHost {
	t.Helper()
	h := &relayHost{got: map[string]int{}}
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return relaySession{h}, nil }))
	srv.Domain, srv.ErrorLog = "relay.test", silentLog{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	h.addr = ln.Addr().String()
	go func() { _ = srv.Serve(ln) }() // until the test ends
	t.Cleanup(func() { _ = srv.Close() })
	return h
}

func (h *relayHost) breaks(fault func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

func (h *relayHost) copies(messageID string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got[messageID]
}

// silentLog drops the log of the relay, which is about connections that a kill ends.
type silentLog struct{}

func (silentLog) Printf(string, ...any) {}
func (silentLog) Println(...any)        {}

type relaySession struct{ host *relayHost }

func (s relaySession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s relaySession) Reset()                               {}
func (s relaySession) Logout() error                        { return nil }

func (s relaySession) Mail(string, *smtp.MailOptions) error {
	s.host.mu.Lock()
	fault := s.host.fault
	s.host.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault()
}

func (s relaySession) Data(r io.Reader) error {
	m, err := netmail.ReadMessage(r)
	if err == nil {
		_, err = io.Copy(io.Discard, m.Body)
	}
	if err != nil {
		return err
	}
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.host.got[m.Header.Get("Message-Id")]++
	return nil
}

// A mailErrand mails an instruction to the plain worker.
type mailErrand struct {
	mark     string
	stranger bool
	tries    int
}

func (e *mailErrand) repeatable() bool { return true }

func (e *mailErrand) messageID() string { return "<" + e.mark + "@example.net>" }

func (e *mailErrand) try(_ context.Context, w *world, s *instance) error {
	e.tries++
	from := "owner@localhost"
	if e.stranger {
		from = "stranger@example.net"
	}
	raw := strings.ReplaceAll(fmt.Sprintf("From: %s\nSubject: %s\nMessage-ID: %s\n\n%s\n", from, e.mark, e.messageID(),
		offlineScript("say "+e.mark)), "\n", "\r\n")
	addr := mailPrinted.FindStringSubmatch(s.stdout.String())[1]
	err := sendMail(addr, "s@example.net", w.plain+"@localhost", raw)
	var answer *textproto.Error
	// 421: the server stops; 4.3.2: it is in maintenance; 4.3.1: the database cannot be used. In all
	// cases the sender tries again.
	if errors.As(err, &answer) && answer.Code != 421 && !strings.HasPrefix(answer.Msg, "4.3.2") &&
		(w.database == "" || !strings.HasPrefix(answer.Msg, "4.3.1")) {
		return err
	}
	return broken(err)
}

// sendMail sends a mail as a server without TLS would, and returns nil only once it is acknowledged.
func sendMail(addr, from, to, raw string) error {
	c, err := netsmtp.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := errors.Join(c.Mail(from), c.Rcpt(to)); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, raw); err != nil {
		return err
	}
	return w.Close()
}

var mailPrinted = regexp.MustCompile(`received on smtp://(\S+)\n`)
