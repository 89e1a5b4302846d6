package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/admin"
	"journeyman/mail"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// newMailSite starts a site that receives mail. It accepts mail of friend.example and holds other
// mail. It sends nothing.
func newMailSite(t *testing.T) (is *is.I, s *site, worker workers.Worker, receive func(from, raw string) store.Email) {
	t.Helper()
	var box *mail.Server
	is, s = onSite(t, func(c *dashboard.Config) {
		box = mail.New(mail.Config{Store: c.Store, Runner: c.Runner, Log: c.Log, Domain: c.MailDomain, Accept: "@friend.example", Hold: true, Resolver: noDNS{}})
		c.Inbox, c.ReadMail, c.MailAddr = box, box.Preview, "127.0.0.1:2525"
	})
	worker = s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	return is, s, worker, func(from, raw string) store.Email {
		t.Helper()
		list, err := box.Receive(t.Context(), s.owner, from, []string{worker.ID + "@mail.example"}, []byte(strings.ReplaceAll(raw, "\n", "\r\n")))
		if err != nil || len(list) != 1 {
			t.Fatalf("receive: %v %v", list, err)
		}
		return list[0]
	}
}

const hostileMail = `From: "<script>alert(1)</script>" <eve@elsewhere.example>
Subject: <img src=x onerror=alert(1)> "quoted'
Message-ID: <1@elsewhere.example>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

</pre><script>alert("text")</script> javascript:alert(1)
--b
Content-Type: text/html; name="</li><script>alert(2)</script>.html"
Content-Disposition: attachment; filename="</li><script>alert(2)</script>.html"

<script>alert(3)</script>
--b--
`

func TestHostileMail(t *testing.T) {
	is, s, _, receive := newMailSite(t)
	e := receive("eve@elsewhere.example", hostileMail)
	is.Equal(e.Status, store.EmailHeld)
	b := s.signIn("ann@example.com")
	b.get("/mail/messages/"+e.ID).
		shows("&lt;/pre&gt;&lt;script&gt;alert(&#34;text&#34;)", "&lt;/li&gt;", "Message-ID: &lt;1@elsewhere.example&gt;")

	p := b.get("/mail/messages/" + e.ID + "/source")
	is.Equal(p.header.Get("Content-Type"), "message/rfc822")
	is.Equal(p.header.Get("Content-Disposition"), `attachment; filename="`+e.ID+`.eml"`)
	is.True(strings.HasPrefix(p.body, "From: ")) // byte for byte
}

func TestHeldMailIsReleased(t *testing.T) {
	is, s, _, receive := newMailSite(t)
	e := receive("bob@elsewhere.example", "From: bob@elsewhere.example\nSubject: Rivers\nMessage-ID: <2@x>\n\nSay something.\n")
	s.join("mo@example.com", people.RoleMember)
	member := s.signIn("mo@example.com")
	member.get("/mail/messages/" + e.ID).lacks("Release to the worker")

	b := s.signIn("ann@example.com")
	b.get("/mail/held").shows("Rivers", "bob@elsewhere.example")
	b.get("/mail/messages/"+e.ID).shows("Release to the worker", "Say something.")
	p := b.post("/mail/messages/" + e.ID + "/release")
	is.Equal(p.status, http.StatusSeeOther)
	p = b.get(p.location())
	p.shows("The mail is released", "/tasks/tsk_")
	p.lacks("Release to the worker")
	task := b.get(regexp.MustCompile(`/tasks/tsk_\w+`).FindString(p.body))
	is.Equal(strings.Count(task.body, "bob@elsewhere.example"), 2) // above the instruction, and as the origin of the task
	is.Equal(b.post("/mail/messages/"+e.ID+"/release").status, http.StatusConflict)
	b.get("/mail/held").shows("No held mail")
}

// TestLargeMail checks that the pages and the list of large mails stay small.
func TestLargeMail(t *testing.T) {
	is, s, _, receive := newMailSite(t)
	long := strings.Repeat(`<"`, 480)
	var last store.Email
	for i := range 55 {
		var parts strings.Builder
		for j := range 70 {
			fmt.Fprintf(&parts, "--b\nContent-Disposition: attachment; filename*=utf-8''%s%d\n\nx\n", strings.Repeat("%22", 60), j)
		}
		from := fmt.Sprintf("eve%d@elsewhere.example", i)
		last = receive(from, fmt.Sprintf("From: "+from+"\nSubject: %s\nMessage-ID: <%d@x>\nX-Long: %s\nMIME-Version: 1.0\n"+
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n%s\n%s--b--\n", long, i, long, strings.Repeat(long+"\n", 100), parts.String()))
	}
	b := s.signIn("ann@example.com")
	for path, says := range map[string]string{"/mail": "Older »", "/mail/held": "Older »", "/mail/messages/" + last.ID: "The text is truncated"} {
		p := b.get(path)
		is.Equal(p.status, http.StatusOK)
		p.smallerThan(maxPage)
		p.shows(says)
	}
	next := regexp.MustCompile(`href="(/mail\?[^"]+)" rel="next"`).FindStringSubmatch(b.get("/mail").body)
	is.Equal(len(next), 2)
	p := b.get(html.UnescapeString(next[1]))
	is.Equal(strings.Count(p.body, `href="/mail/messages/`), 5)
	p.shows("« Newest")
}

func TestMailFilter(t *testing.T) {
	_, s, worker, receive := newMailSite(t)
	receive("bob@elsewhere.example", "From: bob@elsewhere.example\nSubject: Secret\nMessage-ID: <3@x>\n\nGo.\n")
	s.stranger("eve@umbrella.example").get("/mail").lacks("Secret")
	b := s.signIn("ann@example.com")
	b.get("/mail?workerId=" + worker.ID + "&status=held").shows("Secret")
	b.get("/mail?status=%3Cscript%3E").answers(http.StatusUnprocessableEntity).lacks("<script>alert")
}

func TestBrowserMail(t *testing.T) {
	is, s, worker, receive := newMailSite(t)
	w := newWindow(s).borrow(s.signIn("ann@example.com"))
	w.open("/mail")
	w.sees("There is no mail yet", "swaks --server 127.0.0.1:2525", worker.ID+"@mail.example")
	w.look("mail-empty")
	w.click("Held")
	w.arrives("/mail/held")
	w.look("mail-held-empty")

	receive("eve@elsewhere.example", hostileMail)
	w.open("/mail/held")
	w.look("mail-held")
	w.click("<img src=x")
	w.sees(`</pre><script>alert("text")</script>`)
	w.click("Header")
	w.look("mail-message")
	w.click("Release to the worker")
	w.sees("The mail is released")
	w.click("Open the task")
	w.until("the task", "location.pathname.startsWith('/tasks/')")
	w.until("its end", "document.querySelector('#main').innerText.includes('Done')")

	w.open("/mail/outbox")
	w.sees("eve@elsewhere.example", "Queued")
	w.look("mail-outbox")
	w.click("(not written yet)")
	w.click("Send now")
	w.sees("The reply will be sent as soon as possible.")
	w.look("mail-reply")
	is.Equal(w.asked(), "")
}

// stranger returns a browser of an Owner of another organization.
func (s *site) stranger(email string) *browser {
	s.t.Helper()
	storetest.Caller(s.t, s.store, "Umbrella", email, people.RoleOwner)
	s.ok(s.store.People.SetPassword(s.t.Context(), email, password))
	return s.signIn(email)
}

// TestKeptReply checks that the page of a kept reply says why the server did not send it.
func TestKeptReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		relay, german bool
		says, lacks   string
	}{
		"no relay": {says: "The server has no relay, so this reply stays in the outbox.", lacks: "Send now"},
		"German":   {german: true, says: "Der Server hat kein Relay", lacks: "Jetzt senden"},
		"a new relay": {relay: true, says: "The server had no relay when this reply was due. It has one now",
			lacks: "--smtp-relay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := newSite(t, func(c *dashboard.Config) {
				c.System = func() admin.System { return admin.System{Relay: tt.relay} }
			})
			storetest.Exec(t, s.store, `INSERT INTO alert_messages (num, id, organization_id, test, items, status, attempts, answer, created_at)
				VALUES (1, 'alm_kept', ?, 0, '[]', 'mailed', 1, '', 1)`, s.owner.OrganizationID)
			storetest.Exec(t, s.store, `INSERT INTO outbound_emails (id, kind, organization_id, alert_num, recipient, subject, status,
				attempts, error_message, created_at, size)
				VALUES ('msg_kept', 'alert', ?, 1, 'bob@example.org', '', 'kept', 1, '', 1, 0)`, s.owner.OrganizationID)
			b := s.signIn("ann@example.com")
			if tt.german {
				b.post("/account/preferences", "theme", "dark", "language", "de")
			}
			p := b.get("/mail/messages/msg_kept")
			p.answers(http.StatusOK).shows(tt.says)
			p.lacks(tt.lacks)
			p = b.get("/mail/outbox")
			is.True(p.has("the server had no relay") != tt.german)
		})
	}
}

// TestPostmasterMail checks that the page of a mail for the postmaster has no release button,
// because the mail starts no work.
func TestPostmasterMail(t *testing.T) {
	is, s, _, _ := newMailSite(t)
	storetest.Exec(t, s.store, `INSERT INTO inbound_emails (id, organization_id, message_id, mail_from, from_address, recipient, reply_to, subject,
		status, reason, size, verdicts, remote_addr, created_at, source) VALUES ('msg_post', ?, 'm', 'x@a.test', 'x@a.test', 'postmaster@mail.example', '', 'Hello', 'held', 'for you', 4, '{}', '', 1, ?)`, s.owner.OrganizationID, []byte("a"))
	p := s.signIn("ann@example.com").get("/mail/messages/msg_post")
	is.Equal(p.status, http.StatusOK)
	is.True(p.has("Hello", "for you") && !p.has("Release to the worker"))
}

// TestMailByHTTP posts a mail to the address that the page shows while no SMTP listener runs.
func TestMailByHTTP(t *testing.T) {
	is, s := onSite(t)
	worker := s.worker(s.owner, workers.NewWorker{Title: "Scribe"})
	shown := regexp.MustCompile(`curl (\S+) --data-binary`).FindStringSubmatch(s.signIn("ann@example.com").get("/mail").body)
	is.True(shown != nil) // the page shows a command
	raw := "From: ann@example.com\nTo: " + worker.ID + "@mail.example\nSubject: A haiku\n\nWrite a haiku about rivers\n"
	r := s.request(http.MethodPost, strings.TrimPrefix(shown[1], s.url), raw, "Content-Type", "message/rfc822", "Authorization", "Bearer "+s.key)
	s.visitor().send(r).answers(http.StatusOK)
	// The same mail again is on the page, as a copy.
	s.signIn("ann@example.com").get("/mail").lacks("a copy of the mail")
	r = s.request(http.MethodPost, strings.TrimPrefix(shown[1], s.url), raw, "Content-Type", "message/rfc822", "Authorization", "Bearer "+s.key)
	s.visitor().send(r).answers(http.StatusOK)
	s.signIn("ann@example.com").get("/mail").shows("a copy of the mail")
}
