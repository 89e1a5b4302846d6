package mail

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestAlertMail sends an alert through a relay. The title of a task cannot add headers or change
// the page, and a bounce marks the alert without raising another.
func TestAlertMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var skew atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	h := newHub(t, false)
	p := newPostWith(t, false, store.Options{Now: clock}, func(c *Config) { c.Relay, c.Now = h.relay, clock })
	_, err := p.store.Effects.AddAlertChannel(t.Context(), p.owner.Caller, store.NewAlertChannel{Email: "ann@example.com",
		Topics: store.AlertTopics(), Frequency: store.AlertNow})
	is.NoErr(err)
	_, err = p.store.CreateTurn(t.Context(), store.NewTurn{Caller: p.owner.Caller, WorkerID: p.worker.ID, Budget: store.BudgetLow,
		Title: "<b>Pay</b>\r\nBcc: eve@evil.example", Input: "```offline\nfail broken It broke\n```"})
	is.NoErr(err)
	p.runner.Wake()
	storetest.Eventually(t, "the alert", func() bool {
		_, ok, err := p.store.Effects.AlertsDue(t.Context())
		return err == nil && ok
	})
	skew.Store(int64(time.Minute))
	n, err := p.store.Effects.MakeAlertMessages(t.Context(), 5)
	is.NoErr(err)
	is.Equal(n, 1)
	storetest.Eventually(t, "the mail", func() bool { return h.count() == 1 })
	raw := h.got[0]
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	is.Equal(h.from[0], "postmaster@"+domain)
	is.Equal(h.to[0], "ann@example.com")
	is.True(strings.Contains(head, "Auto-Submitted: auto-generated")) // no program answers it
	is.True(strings.Contains(head, "X-Auto-Response-Suppress: All"))  // also no program that ignores Auto-Submitted
	is.True(strings.Contains(head, "X-Ms-Reactions: disallow"))       // Outlook sends no reactions to it
	is.True(!strings.Contains(head, "\nBcc:"))                        // the title stays in the subject
	is.True(strings.Contains(body, "&lt;b&gt;Pay"))                   // the title is text in the page
	is.True(!strings.Contains(body, "It broke"))                      // the text of the failure is not sent
	is.True(strings.Contains(body, "?organization=3D"))               // the link names the organization
	var e store.Email
	storetest.Eventually(t, "the row", func() bool {
		e = p.emails(store.Outbound)[0]
		return e.Status == store.EmailSent
	})
	is.Equal(e.WorkerID, "")
	report := letter("--b\nContent-Type: message/delivery-status\n\nFinal-Recipient: rfc822; x\nAction: failed\nStatus: 5.1.1\n"+
		"Diagnostic-Code: smtp; 550 5.1.1 no such user\n\n--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <"+e.ID+"@"+domain+">\n--b--",
		"From: MAILER-DAEMON@example.net", "MIME-Version: 1.0", `Content-Type: multipart/report; report-type=delivery-status; boundary=b`)
	is.Equal(p.send("", "postmaster@"+domain, report), "250 2.0.0 OK: queued")
	list, err := p.store.Effects.AlertChannels(t.Context(), p.owner.Caller)
	is.NoErr(err)
	is.Equal(list[0].Last.Status, "bounced")
	is.Equal(list[0].Last.Answer, "550 5.1.1 no such user")
	is.Equal(list[0].Pending, int64(0)) // a lost alert raises no alert
}
