package dashboardtest

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/mail"
	"journeyman/store"
	"journeyman/store/workers"
)

// NewMailSite starts a site that receives mail. It accepts mail of friend.example and holds other
// mail. It sends nothing.
func NewMailSite(t *testing.T) (is *is.I, s *Site, worker workers.Worker,
	receive func(from, raw string) store.Email) {
	t.Helper()
	var box *mail.Server
	is, s = OnSite(t, func(c *dashboard.Config) {
		box = mail.New(mail.Config{Store: c.Store, Runner: c.Runner, Log: c.Log, Domain: c.MailDomain,
			Accept: "@friend.example", Hold: true, Resolver: NoDNS{}})
		c.Inbox, c.ReadMail, c.MailAddr = box, box.Preview, "127.0.0.1:2525"
	})
	worker = s.Worker(s.Owner, workers.NewWorker{Title: "Scribe"})
	return is, s, worker, func(from, raw string) store.Email {
		t.Helper()
		list, err := box.Receive(t.Context(), s.Owner, from, []string{worker.ID + "@mail.example"},
			[]byte(strings.ReplaceAll(raw, "\n", "\r\n")))
		if err != nil || len(list) != 1 {
			t.Fatalf("receive: %v %v", list, err)
		}
		return list[0]
	}
}
