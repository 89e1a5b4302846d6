package lists_test

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
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

func TestHostileMail(t *testing.T) {
	is, s, _, receive := dashboardtest.NewMailSite(t)
	e := receive("eve@elsewhere.example", dashboardtest.HostileMail)
	is.Equal(e.Status, store.EmailHeld)
	b := s.SignIn("ann@example.com")
	b.Get("/mail/messages/"+e.ID).
		Shows("&lt;/pre&gt;&lt;script&gt;alert(&#34;text&#34;)", "&lt;/li&gt;", "Message-ID: &lt;1@elsewhere.example&gt;")

	p := b.Get("/mail/messages/" + e.ID + "/source")
	is.Equal(p.Header.Get("Content-Type"), "message/rfc822")
	is.Equal(p.Header.Get("Content-Disposition"), `attachment; filename="`+e.ID+`.eml"`)
	is.True(strings.HasPrefix(p.Body, "From: ")) // byte for byte
}

func TestHeldMailIsReleased(t *testing.T) {
	is, s, _, receive := dashboardtest.NewMailSite(t)
	e := receive("bob@elsewhere.example",
		"From: bob@elsewhere.example\nSubject: Rivers\nMessage-ID: <2@x>\n\nSay something.\n")
	s.Join("mo@example.com", people.RoleMember)
	member := s.SignIn("mo@example.com")
	member.Get("/mail/messages/" + e.ID).Lacks("Release to the worker")

	b := s.SignIn("ann@example.com")
	b.Get("/mail/held").Shows("Rivers", "bob@elsewhere.example")
	b.Get("/mail/messages/"+e.ID).Shows("Release to the worker", "Say something.")
	p := b.Post("/mail/messages/" + e.ID + "/release")
	is.Equal(p.Status, http.StatusSeeOther)
	p = b.Get(p.Location())
	p.Shows("The mail is released", "/tasks/tsk_")
	p.Lacks("Release to the worker")
	task := b.Get(regexp.MustCompile(`/tasks/tsk_\w+`).FindString(p.Body))
	is.Equal(strings.Count(task.Body, "bob@elsewhere.example"), 2) // above the instruction, and as the origin of the task
	is.Equal(b.Post("/mail/messages/"+e.ID+"/release").Status, http.StatusConflict)
	b.Get("/mail/held").Shows("No held mail")
}

// TestLargeMail checks that the pages and the list of large mails stay small.
func TestLargeMail(t *testing.T) {
	is, s, _, receive := dashboardtest.NewMailSite(t)
	long := strings.Repeat(`<"`, 480)
	var last store.Email
	for i := range 55 {
		var parts strings.Builder
		for j := range 70 {
			fmt.Fprintf(&parts, "--b\nContent-Disposition: attachment; filename*=utf-8''%s%d\n\nx\n", strings.Repeat("%22", 60),
				j)
		}
		from := fmt.Sprintf("eve%d@elsewhere.example", i)
		last = receive(from, fmt.Sprintf("From: "+from+"\nSubject: %s\nMessage-ID: <%d@x>\nX-Long: %s\nMIME-Version: 1.0\n"+
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n%s\n%s--b--\n", long, i, long, strings.Repeat(long+"\n", 100), parts.String()))
	}
	b := s.SignIn("ann@example.com")
	for path, says := range map[string]string{"/mail": "Older »", "/mail/held": "Older »",
		"/mail/messages/" + last.ID: "The text is truncated"} {
		p := b.Get(path)
		is.Equal(p.Status, http.StatusOK)
		p.SmallerThan(dashboardtest.MaxPage)
		p.Shows(says)
	}
	next := regexp.MustCompile(`href="(/mail\?[^"]+)" rel="next"`).FindStringSubmatch(b.Get("/mail").Body)
	is.Equal(len(next), 2)
	p := b.Get(html.UnescapeString(next[1]))
	is.Equal(strings.Count(p.Body, `href="/mail/messages/`), 5)
	p.Shows("« Newest")
}

func TestMailFilter(t *testing.T) {
	_, s, worker, receive := dashboardtest.NewMailSite(t)
	receive("bob@elsewhere.example", "From: bob@elsewhere.example\nSubject: Secret\nMessage-ID: <3@x>\n\nGo.\n")
	s.Stranger("eve@umbrella.example").Get("/mail").Lacks("Secret")
	b := s.SignIn("ann@example.com")
	b.Get("/mail?workerId=" + worker.ID + "&status=held").Shows("Secret")
	b.Get("/mail?status=%3Cscript%3E").Answers(http.StatusUnprocessableEntity).Lacks("<script>alert")
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
			s := dashboardtest.New(t, func(c *dashboard.Config) {
				c.System = func() admin.System { return admin.System{Relay: tt.relay} }
			})
			storetest.Exec(t, s.Store,
				`INSERT INTO alert_messages (num, id, organization_id, test, items, status, attempts, answer, created_at)
				VALUES (1, 'alm_kept', ?, 0, '[]', 'mailed', 1, '', 1)`, s.Owner.OrganizationID)
			storetest.Exec(t, s.Store,
				`INSERT INTO outbound_emails (id, kind, organization_id, alert_num, recipient, subject, status,
				attempts, error_message, created_at, size)
				VALUES ('msg_kept', 'alert', ?, 1, 'bob@example.org', '', 'kept', 1, '', 1, 0)`, s.Owner.OrganizationID)
			b := s.SignIn("ann@example.com")
			if tt.german {
				b.Post("/account/preferences", "theme", "dark", "language", "de")
			}
			p := b.Get("/mail/messages/msg_kept")
			p.Answers(http.StatusOK).Shows(tt.says)
			p.Lacks(tt.lacks)
			p = b.Get("/mail/outbox")
			is.True(p.Has("the server had no relay") != tt.german)
		})
	}
}

// TestPostmasterMail checks that the page of a mail for the postmaster has no release button,
// because the mail starts no work.
func TestPostmasterMail(t *testing.T) {
	is, s, _, _ := dashboardtest.NewMailSite(t)
	storetest.Exec(t, s.Store,
		`INSERT INTO inbound_emails (id, organization_id, message_id, mail_from, from_address, recipient, reply_to, subject,
		status, reason, size, verdicts, remote_addr, created_at, source) VALUES ('msg_post', ?, 'm', 'x@a.test', 'x@a.test', 'postmaster@mail.example', '', 'Hello', 'held', 'for you', 4, '{}', '', 1, ?)`, s.Owner.OrganizationID, []byte("a"))
	p := s.SignIn("ann@example.com").Get("/mail/messages/msg_post")
	is.Equal(p.Status, http.StatusOK)
	is.True(p.Has("Hello", "for you") && !p.Has("Release to the worker"))
}

// TestMailByHTTP posts a mail to the address that the page shows while no SMTP listener runs.
func TestMailByHTTP(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	worker := s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	shown := regexp.MustCompile(`curl (\S+) --data-binary`).FindStringSubmatch(s.SignIn("ann@example.com").Get("/mail").Body)
	is.True(shown != nil) // the page shows a command
	raw := "From: ann@example.com\nTo: " + worker.ID + "@mail.example\nSubject: A haiku\n\nWrite a haiku about rivers\n"
	r := s.Request(http.MethodPost, strings.TrimPrefix(shown[1], s.URL), raw, "Content-Type", "message/rfc822",
		"Authorization", "Bearer "+s.Key)
	s.Visitor().Send(r).Answers(http.StatusOK)
	// The same mail again is on the page, as a copy.
	s.SignIn("ann@example.com").Get("/mail").Lacks("a copy of the mail")
	r = s.Request(http.MethodPost, strings.TrimPrefix(shown[1], s.URL), raw, "Content-Type", "message/rfc822",
		"Authorization", "Bearer "+s.Key)
	s.Visitor().Send(r).Answers(http.StatusOK)
	s.SignIn("ann@example.com").Get("/mail").Shows("a copy of the mail")
}
