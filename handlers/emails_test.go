package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/smtp"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/mail"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// noDNS fails every lookup, so that tests use no name servers.
var noDNS = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("a test has no DNS")
}}

// mailboxed returns a site that receives mail, and one of its workers.
func mailboxed(t *testing.T, cfg mail.Config) (*site, string) {
	t.Helper()
	cfg.Domain, cfg.Resolver = "localhost", noDNS
	s := newServer(t, func(set *settings) { set.mail = &cfg })
	return s, s.newWorker(t, fields{"title": "Clerk"})
}

// release is the body of a request that releases a mail: it has none.
const release = "-"

// email posts a mail or, with an empty one, gets the path.
func (s *site) email(t testing.TB, path, raw string, headers ...string) response {
	t.Helper()
	if raw == "" {
		return s.do(t, http.MethodGet, path, "", headers...)
	}
	if raw == release {
		return s.do(t, http.MethodPost, path, "", headers...)
	}
	return s.do(t, http.MethodPost, path, raw, append([]string{"Content-Type: message/rfc822"}, headers...)...)
}

const question = "From: Bob <bob@example.net>\nTo: %W\nSubject: Question\nMessage-ID: <1@example.net>\n\n```offline\nsay Hello Bob.\n```\n"

// mails returns the mails of a list, or none if the request failed.
func (r response) mails() (list []map[string]any) {
	items, _ := r.at("items").([]any)
	for _, item := range items {
		list = append(list, item.(map[string]any))
	}
	return list
}

func TestInboundEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, worker := mailboxed(t, mail.Config{})
	address := worker + "@localhost"
	raw := strings.ReplaceAll(question, "%W", address)
	got := s.email(t, "/api/inbound-email", raw, "Idempotency-Key: a")
	is.Equal(got.status, http.StatusOK)
	e := got.mails()[0]
	is.Equal([]any{e["status"], e["from"], e["to"], e["subject"], e["workerId"]}, []any{"accepted", "bob@example.net", address, "Question", worker})
	again := s.email(t, "/api/inbound-email", raw)
	is.Equal(again.mails()[0]["turnId"], e["turnId"]) // the same mail
	replayed := s.email(t, "/api/inbound-email", raw, "Idempotency-Key: a")
	is.Equal(replayed.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.email(t, "/api/inbound-email", raw+"x", "Idempotency-Key: a").status, http.StatusUnprocessableEntity)

	var reply map[string]any
	storetest.Eventually(t, "the reply", func() bool {
		for _, item := range s.email(t, "/api/emails?direction=outbound&status=kept", "").mails() {
			reply = item
		}
		return reply != nil
	})
	is.Equal([]any{reply["to"], reply["from"], reply["subject"], reply["taskId"]}, []any{"bob@example.net", address, "Re: Question", e["taskId"]})
	one := s.email(t, "/api/emails/"+reply["id"].(string), "")
	is.True(strings.Contains(one.text("raw"), "In-Reply-To: <1@example.net>\r\n"))
	source := s.email(t, "/api/emails/"+e["id"].(string), "", "Accept: message/rfc822")
	is.Equal(string(source.body), strings.ReplaceAll(raw, "\n", "\r\n")) // byte for byte
	is.Equal(len(s.email(t, "/api/emails?workerId=wrk_none", "").mails()), 0)
	first := s.email(t, "/api/emails?direction=inbound&limit=1", "")
	is.Equal(first.mails()[0]["reason"], "a copy of the mail "+e["id"].(string))
	second := s.email(t, "/api/emails?direction=inbound&limit=1&cursor="+first.text("nextCursor"), "")
	is.Equal(second.mails()[0]["id"], e["id"]) // newest first, then the one before
}

func TestEmailRefusals(t *testing.T) {
	t.Parallel()
	s, worker := mailboxed(t, mail.Config{MaxSize: 2000, Accept: mail.Members})
	raw := strings.ReplaceAll(question, "%W", worker+"@localhost")
	for name, tt := range map[string]struct {
		path, body string
		header     string
		status     int
	}{
		"no worker named": {"/api/inbound-email", strings.ReplaceAll(question, "%W", "x@example.org"), "", 404},
		"unknown worker":  {"/api/inbound-email?to=wrk_none@localhost", raw, "", 404},
		"another domain":  {"/api/inbound-email?to=" + worker + "@example.org", raw, "", 403},
		"not a member":    {"/api/inbound-email", raw, "", 403},
		"too large":       {"/api/inbound-email", raw + strings.Repeat("x", 3000), "", 413},
		"json":            {"/api/inbound-email", "{}", "Content-Type: application/json", 415},
		"wrong status":    {"/api/emails?status=lost", "", "", 400},
		"wrong direction": {"/api/emails?direction=up", "", "", 400},
		"wrong cursor":    {"/api/emails?cursor=x", "", "", 400},
		"wrong limit":     {"/api/emails?limit=0", "", "", 400},
		"unknown mail":    {"/api/emails/msg_none", "", "", 404},
		"release unknown": {"/api/emails/msg_none/release", release, "", 404},
		"no key":          {"/api/emails", "", "Authorization: Bearer wrong", 401},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			var headers []string
			if tt.header != "" {
				headers = []string{tt.header}
			}
			is.Equal(s.email(t, tt.path, tt.body, headers...).status, tt.status)
		})
	}
}

// TestWhoPostsEmail posts mails of several authors with the keys of several users.
func TestWhoPostsEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, worker := mailboxed(t, mail.Config{Loops: store.MailLimits{PerSender: 2}})
	n := 0
	key := func(address string, role people.Role) *site {
		_, key := storetest.Caller(t, s.store, "Acme", address, role)
		return s.as(key)
	}
	post := func(by *site, author string) response {
		n++
		return by.email(t, "/api/inbound-email?to="+worker+"@localhost", fmt.Sprintf("From: %s\nMessage-ID: <%d@x>\n\nHello\n", author, n))
	}
	carol, admin := key("carol@example.com", people.RoleMember), key("admin@example.com", people.RoleAdmin)
	is.Equal(post(carol, "carol@example.com").status, http.StatusOK)
	refused := post(carol, "ann@example.com")
	is.Equal(refused.status, http.StatusForbidden)
	is.True(strings.Contains(string(refused.body), "From must be carol@example.com"))
	for _, author := range []string{"ann@example.com", "carol@example.com", "bob@example.net"} {
		e := post(admin, author).mails()[0]
		is.Equal([]any{e["status"], e["from"], e["verdicts"].(map[string]any)["key"]}, []any{"accepted", author, true})
	}
	is.Equal(post(s, "bob@example.net").status, http.StatusOK)
	limited := post(s, "bob@example.net") // the third within the hour
	is.Equal(limited.status, http.StatusTooManyRequests)
	seconds, err := strconv.Atoi(limited.header.Get("Retry-After"))
	is.NoErr(err)
	ordertest.Above(is, seconds, 3500)                                     // the answer does not say when to try again
	ordertest.AtMost(is, seconds, 3600)                                    // the answer does not say when to try again
	is.Equal(len(s.email(t, "/api/emails?status=ignored", "").mails()), 0) // no mail is dropped
}

func TestReleaseEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, worker := mailboxed(t, mail.Config{Hold: true, Accept: "@example.com"})
	got := s.email(t, "/api/inbound-email", strings.ReplaceAll(question, "%W", worker+"@localhost")).mails()[0]
	is.Equal(got["status"], "held")
	is.Equal(len(s.email(t, "/api/emails?status=held", "").mails()), 1)
	path := "/api/emails/" + got["id"].(string) + "/release"
	released := s.email(t, path, release, "Idempotency-Key: r")
	is.Equal(released.status, http.StatusOK)
	is.Equal(released.at("status"), "accepted")
	is.Equal(s.email(t, path, release, "Idempotency-Key: r").status, http.StatusOK) // the same request
	is.Equal(s.email(t, path, release).status, http.StatusConflict)
	is.Equal(len(s.email(t, "/api/emails?status=held", "").mails()), 0)
}

// TestPostmasterEmail checks that a mail to the postmaster is shown and cannot be released.
func TestPostmasterEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := mailboxed(t, mail.Config{Accept: mail.Members})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	served := make(chan error, 1)
	go func() { served <- s.mail.Serve(ln) }()
	t.Cleanup(func() { is.NoErr(s.mail.Shutdown(context.Background())); is.NoErr(<-served) })
	is.NoErr(smtp.SendMail(ln.Addr().String(), nil, "s@example.net", []string{"Postmaster@localhost"}, []byte("Subject: You send me mail\r\n\r\nStop.\r\n")))
	e := s.email(t, "/api/emails?direction=inbound", "").mails()[0]
	is.Equal([]any{e["status"], e["reason"], e["workerId"], e["subject"]}, []any{"ignored", "for the postmaster", nil, "You send me mail"})
	path := "/api/emails/" + e["id"].(string)
	is.True(strings.HasSuffix(s.email(t, path, "").text("raw"), "Stop.\r\n"))
	is.Equal(s.email(t, path+"/release", release).status, http.StatusConflict)
}
