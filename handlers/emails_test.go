package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/smtp"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// The endpoints for mail are tested on the program: mail is a room beside this one
// and none of its imports.

// mailboxed is a running program with a worker in it.
func mailboxed(t *testing.T, args ...string) (*instance, string) {
	t.Helper()
	s := serve(t, t.TempDir(), append([]string{"--model", "offline"}, args...)...)
	return s, s.newWorker(t)
}

// mailed is an answer that is as openapi.yaml describes it.
type mailed struct{ reply }

// email sends a body as a POST, "-" for none, or without a body a GET.
func (s *instance) email(t testing.TB, path, body string, headers ...string) mailed {
	t.Helper()
	method, r := http.MethodGet, io.Reader(nil)
	if body != "" {
		method = http.MethodPost
	}
	if body != "" && body != "-" {
		headers = append([]string{"Content-Type: message/rfc822"}, headers...)
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	newValidator(t).check(t, req, resp, raw)
	return mailed{reply{status: resp.StatusCode, header: resp.Header, body: raw}}
}

func (m mailed) object(t testing.TB) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(m.body, &v); err != nil || m.status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", m.status, err, m.body)
	}
	return v
}

func (m mailed) items(t testing.TB) (list []map[string]any) {
	t.Helper()
	items, _ := m.object(t)["items"].([]any)
	for _, item := range items {
		list = append(list, item.(map[string]any))
	}
	return list
}

const question = "From: Bob <bob@example.net>\nTo: %W\nSubject: Question\nMessage-ID: <1@example.net>\n\n```offline\nsay Hello Bob.\n```\n"

func TestInboundEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, worker := mailboxed(t)
	address := worker + "@localhost"
	raw := strings.ReplaceAll(question, "%W", address)
	got := s.email(t, "/api/inbound-email", raw, "Idempotency-Key: a")
	is.Equal(got.status, http.StatusOK)
	e := got.items(t)[0]
	is.Equal([]any{e["status"], e["from"], e["to"], e["subject"], e["workerId"]}, []any{"accepted", "bob@example.net", address, "Question", worker})
	again := s.email(t, "/api/inbound-email", raw)
	is.Equal(again.items(t)[0]["turnId"], e["turnId"]) // the same mail
	replayed := s.email(t, "/api/inbound-email", raw, "Idempotency-Key: a")
	is.Equal(replayed.header.Get("Idempotency-Replayed"), "true")
	is.Equal(s.email(t, "/api/inbound-email", raw+"x", "Idempotency-Key: a").status, http.StatusUnprocessableEntity)

	var reply map[string]any
	eventually(t, "the reply", func() bool {
		for _, item := range s.email(t, "/api/emails?direction=outbound&status=kept", "").items(t) {
			reply = item
		}
		return reply != nil
	})
	is.Equal([]any{reply["to"], reply["from"], reply["subject"], reply["taskId"]}, []any{"bob@example.net", address, "Re: Question", e["taskId"]})
	one := s.email(t, "/api/emails/"+reply["id"].(string), "")
	is.True(strings.Contains(one.object(t)["raw"].(string), "In-Reply-To: <1@example.net>\r\n"))
	source := s.email(t, "/api/emails/"+e["id"].(string), "", "Accept: message/rfc822")
	is.Equal(string(source.body), strings.ReplaceAll(raw, "\n", "\r\n")) // byte for byte
	is.Equal(len(s.email(t, "/api/emails?workerId=wrk_none", "").items(t)), 0)
	first := s.email(t, "/api/emails?limit=1", "").object(t)
	second := s.email(t, "/api/emails?limit=1&cursor="+first["nextCursor"].(string), "")
	is.Equal(second.items(t)[0]["id"], e["id"]) // newest first, then the one before
}

func TestEmailRefusals(t *testing.T) {
	t.Parallel()
	s, worker := mailboxed(t, "--mail-max-size", "2000", "--mail-accept", "members")
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
		"release unknown": {"/api/emails/msg_none/release", "-", "", 404},
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

func TestReleaseEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, worker := mailboxed(t, "--mail-hold", "--mail-accept", "@example.com")
	got := s.email(t, "/api/inbound-email", strings.ReplaceAll(question, "%W", worker+"@localhost")).items(t)[0]
	is.Equal(got["status"], "held")
	is.Equal(len(s.email(t, "/api/emails?status=held", "").items(t)), 1)
	path := "/api/emails/" + got["id"].(string) + "/release"
	released := s.email(t, path, "-", "Idempotency-Key: r")
	is.Equal(released.status, http.StatusOK)
	is.Equal(released.object(t)["status"], "accepted")
	is.Equal(s.email(t, path, "-", "Idempotency-Key: r").status, http.StatusOK) // the same request
	is.Equal(s.email(t, path, "-").status, http.StatusConflict)
	is.Equal(len(s.email(t, "/api/emails?status=held", "").items(t)), 0)
}

// sendMail sends a mail, and gives nil only once it is acknowledged.
func sendMail(addr, to, raw string) error {
	c, err := smtp.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := errors.Join(c.Mail("s@example.net"), c.Rcpt(to)); err != nil {
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

// TestPostmasterEmail has a mail to whoever runs the server shown and not released.
func TestPostmasterEmail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, _ := mailboxed(t, "--mail-accept", "members")
	addr := s.await(t, s.stdout, mailPrinted)[1]
	is.NoErr(sendMail(addr, "Postmaster@localhost", "Subject: You send me mail\r\n\r\nStop.\r\n"))
	e := s.email(t, "/api/emails?direction=inbound", "").items(t)[0]
	is.Equal([]any{e["status"], e["reason"], e["workerId"], e["subject"]}, []any{"ignored", "for the postmaster", nil, "You send me mail"})
	path := "/api/emails/" + e["id"].(string)
	is.True(strings.HasSuffix(s.email(t, path, "").object(t)["raw"].(string), "Stop.\r\n"))
	is.Equal(s.email(t, path+"/release", "-").status, http.StatusConflict)
}

var mailPrinted = regexp.MustCompile(`taken in on smtp://(\S+)\n`)

// TestKilledAfterMail kills the program right after it has acknowledged mails: all
// of them must be tasks when it is back.
func TestKilledAfterMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	s := serve(t, dir, "--model", "offline")
	worker := s.newWorker(t)
	const senders = 8
	acknowledged := make(chan string, 10_000)
	addr := s.await(t, s.stdout, mailPrinted)[1]
	for i := range senders {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d.%d@example.net", i, n)
				raw := fmt.Sprintf("From: sender%d.%d@example.net\r\nSubject: %s\r\nMessage-ID: <%s>\r\n\r\nHello\r\n", i, n, id, id)
				if sendMail(addr, worker+"@localhost", raw) != nil {
					acknowledged <- ""
					return
				}
				acknowledged <- id
			}
		}()
	}
	var ids []string
	for len(ids) < 40 {
		id := <-acknowledged
		if id == "" {
			t.Fatal("a mail was refused")
		}
		ids = append(ids, id)
	}
	s.kill()
	for ended := 0; ended < senders; {
		if id := <-acknowledged; id == "" {
			ended++
		} else {
			ids = append(ids, id)
		}
	}
	again := serve(t, dir, "--model", "offline")
	known, cursor := map[string]bool{}, ""
	for {
		page := again.email(t, "/api/emails?direction=inbound&limit=100&cursor="+cursor, "")
		for _, e := range page.items(t) {
			is.Equal(e["status"], "accepted")
			is.True(e["taskId"] != nil)
			known[e["messageId"].(string)] = true
		}
		next, more := page.object(t)["nextCursor"].(string)
		if cursor = next; !more {
			break
		}
	}
	for _, id := range ids {
		if !known[id] {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}
