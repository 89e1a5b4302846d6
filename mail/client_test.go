package mail

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestSlowPagesDelayNobodyElse sends many pages of one stranger, each of which keeps a document reader
// busy. Mails of another organization's strangers, of a member and documents of the same organization
// are read meanwhile.
func TestSlowPagesDelayNobodyElse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	pool := sandbox.NewFilterPool()
	documents := tool.NewDocuments(pool)
	ctx, end := context.WithCancel(t.Context())
	p := newPost(t, true, func(c *Config) {
		c.HTML = func(given context.Context, pages []string) ([]string, error) {
			if !strings.Contains(pages[0], "endless") {
				return documents.MailHTML(given, pages)
			}
			given, cancel := context.WithCancel(given)
			defer context.AfterFunc(ctx, cancel)()
			_, err := pool.Run(given, "endless", nil)
			return nil, err
		}
	})
	answers := make(chan string, 16)
	for i := range cap(answers) {
		c := p.dial().greet()
		c.begin("eve@strangers.example", p.address())
		raw := strings.ReplaceAll(page("<p>endless", "From: eve@strangers.example", fmt.Sprintf("Message-ID: <%d@x>", i)), "\r\n", "\n")
		go func() { answers <- c.say("%s\r\n.", strings.ReplaceAll(raw, "\n", "\r\n")) }()
	}
	storetest.Eventually(t, "the pages to wait", func() bool {
		running, waiting := pool.Load()
		select {
		case answer := <-answers:
			t.Fatal("a page was not read: ", answer)
		default:
		}
		return running == 1 && waiting == int64(cap(answers))-1
	})

	sam, _ := storetest.Caller(t, p.store, "Globex", "sam@globex.example", people.RoleOwner)
	theirs := p.newWorker(sam.Caller, workers.NewWorker{Title: "Clerk", Instructions: "Help."})
	is.Equal(p.send("carl@elsewhere.example", WorkerAddress(theirs.ID, domain), page("<p>small", "From: carl@elsewhere.example")), "250 2.0.0 OK: queued")
	// The member's mail comes from the same network, in the same organization.
	member := sandbox.ForClient(t.Context(), sandbox.Client{Organization: p.owner.OrganizationID, Sender: p.owner.UserID, Mail: true})
	texts, err := documents.MailHTML(member, []string{"<p>mine"})
	is.NoErr(err)
	is.Equal(texts, []string{"mine"})
	upload := sandbox.ForClient(t.Context(), sandbox.Client{Organization: p.owner.OrganizationID, Sender: "tsk_1", Stranger: true})
	texts, err = documents.MailHTML(upload, []string{"<p>file"})
	is.NoErr(err)
	is.Equal(texts, []string{"file"})
	is.Equal(len(answers), 0) // no page has ended
	end()
	for range cap(answers) {
		<-answers
	}
}
