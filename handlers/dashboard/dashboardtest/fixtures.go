package dashboardtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// StreamOf returns the address of the live part of a page.
func StreamOf(p Page) string {
	return strings.ReplaceAll(regexp.MustCompile(`data-stream="([^"]+)"`).FindStringSubmatch(p.Body)[1], "&amp;", "&")
}

// HostileMail is a mail whose parts try to become code or to look like others.
const HostileMail = `From: "<script>alert(1)</script>" <eve@elsewhere.example>
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

// Href returns the address of the link with that text; "" without one.
func Href(p Page, text string) string {
	m := regexp.MustCompile(`<a [^>]*href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text) + `</a>`).FindStringSubmatch(p.Body)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

// Claimed creates a turn of a new worker of Acme, and claims it as the runner "r".
func Claimed(t testing.TB, st *store.Store, n store.NewTurn) store.Claim {
	t.Helper()
	is, ctx := is.New(t), t.Context()
	who, _ := storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	w, _, err := st.Workers.CreateWorker(ctx, who.Caller, workers.NewWorker{Title: "Busy"}, db.IdempotencyKey{})
	is.NoErr(err)
	n.Caller, n.WorkerID, n.Budget = who.Caller, w.ID, store.BudgetLow
	_, err = st.CreateTurn(ctx, n)
	is.NoErr(err)
	is.NoErr(st.StartRunner(ctx, "r", time.Minute))
	claims, err := st.ClaimTurns(ctx, "r", 1, 1)
	is.NoErr(err)
	return claims[0]
}

// Pixel is a picture.
const Pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// RawMail returns the source of a mail to a worker.
func RawMail(from, workerID string) string {
	return fmt.Sprintf("From: <%s>\r\nTo: <%s@mail.example>\r\nSubject: Hello\r\nMessage-ID: <%s@example.net>\r\n\r\nHello\r\n",
		from, workerID, db.NewID("msg", time.Now()))
}
