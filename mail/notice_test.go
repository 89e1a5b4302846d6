package mail

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestNobodyUnverifiedGetsAnAnswer has mails arrive whose author nothing verifies. Their turns end, fail and
// ask, and the authors get no answer. Each network gets one notice a day, which quotes nothing.
func TestNobodyUnverifiedGetsAnAnswer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var ahead atomic.Int64 // hours
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Hour) }
	p := newPostWith(t, false, store.Options{Now: now}, func(c *Config) {
		c.Accept, c.Resolver, c.Domain, c.Now = Anyone, dns{}, "workers.example", now
	})
	p.worker = p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Waiter",
		Settings: workers.Settings{StrangerTools: workers.ToolRules{{Tool: "ask_user"}}}})
	const words = "ask_user|say|Cheap|pills|marker|Question"
	n := 0
	send := func(peer, from, text string) store.Turn {
		n++
		e, _ := p.delivered(peer, from, letter(text, "From: Cheap Pills <"+from+">", "Reply-To: other@example.net",
			fmt.Sprintf("Message-ID: <marker%d@example.net>", n)))
		is.Equal(e.ReplyTo, "")
		storetest.Eventually(t, "the end of the turn", func() bool { return p.turn(e).Status.Ended() })
		return p.turn(e)
	}
	is.Equal(send("192.0.2.7", "bob@example.net", asking("say Cheap pills")).Status, store.Completed)
	is.Equal(send("192.0.2.7", "carl@example.net", asking("fail 400")).Status, store.Failed)
	asked := send("2001:db8::1", "bob@example.net", askingFor(`{"question": "Cheap?"}`))
	is.True(asked.Status.Ended()) // nobody can answer, so it did not wait
	send("2001:db8::2:3", "bob@example.net", "more")
	send("2001:db8:0:1::1", "bob@example.net", "more")

	notices := p.replies(3, store.EmailKept)
	is.Equal(len(notices), 3) // of 192.0.2.7 and of two networks of IPv6
	for _, e := range notices {
		_, raw := p.source(e)
		is.Equal([]string{e.TaskID, e.TurnID, e.To}, []string{"", "", "bob@example.net"})
		for word := range strings.SplitSeq(words, "|") {
			is.True(!strings.Contains(raw, word)) // it quotes nothing of the mail
		}
		is.True(!strings.Contains(raw, "In-Reply-To") && strings.Contains(raw, "Auto-Submitted: auto-generated"))
		is.True(strings.Contains(raw, p.worker.ID+"@workers.example"))
	}

	// The id of a notice opens no task.
	e, _ := p.delivered("192.0.2.7", "bob@example.net", letter("x", "From: bob@example.net", "In-Reply-To: <"+notices[0].ID+"@workers.example>"))
	is.True(!slices.ContainsFunc(p.emails(store.Inbound), func(other store.Email) bool { return other.ID != e.ID && other.TaskID == e.TaskID }))

	ahead.Store(24)
	send("192.0.2.7", "bob@example.net", "the next day")
	is.Equal(len(p.replies(4, store.EmailKept)), 4)
}
