package mail

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
)

// page returns a mail with only HTML.
func page(html string, fields ...string) string {
	return letter(html, append(fields, "Content-Type: text/html; charset=utf-8")...)
}

// TestUnconvertiblePage checks that such a mail becomes a task, with the whole mail
// attached.
func TestUnconvertiblePage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) {
		c.HTML = func(context.Context, []string) ([]string, error) {
			return nil, errors.New("it takes more than 4s to read")
		}
	})
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(),
		page("<style>p{}</style><p>Pay the <b>rent</b> &amp; more</p>")), "250"))
	turn := p.turn(p.emails(store.Inbound)[0])
	is.Equal(turn.Input, "Pay the rent & more")
	files, err := p.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 1)
	is.Equal(files[0].Path, "message.eml")
	text, _ := p.Preview(t.Context(), []byte(page("<p>Seen")))
	is.Equal(text, "Seen")
}

// TestNoRoomToConvert checks that the sender is asked to send the mail again.
func TestNoRoomToConvert(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) {
		c.HTML = func(context.Context, []string) ([]string, error) {
			return nil, db.Errorf(db.Busy, "too many documents are being read; try again later")
		}
	})
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(), page("<p>x")), "451 4.3.2"))
	is.Equal(len(p.emails(store.Inbound)), 0)
}

// TestPanicAffectsOneMail processes a mail and a reply that make the server panic.
func TestPanicAffectsOneMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var log storetest.Log
	p := newPost(t, false, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.HTML = func(context.Context, []string) ([]string, error) { panic("words of the mail") }
		c.Markdown = func(context.Context, []byte) ([]byte, error) { panic("words of the reply") }
	})
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(), page("<p>x")), "451 4.3.0"))
	_, err := p.Receive(t.Context(), p.owner, "", []string{p.address()}, []byte(page("<p>x")))
	is.True(err != nil)
	text, _ := p.Preview(t.Context(), []byte(page("<p>x")))
	is.Equal(text, "")
	is.True(strings.HasPrefix(p.send("ann@example.com", p.address(),
		letter(asking("say "+strings.Repeat(">", 1000)))), "250")) // the server works on, and the reply is expensive
	storetest.Eventually(t, "the reply's panic", func() bool { return strings.Contains(log.String(), "reply: panic at") })
	storetest.Eventually(t, "its next try", func() bool {
		list := p.emails(store.Outbound)
		return len(list) == 1 && list[0].Status == store.EmailQueued &&
			strings.Contains(list[0].Reason, "could not be composed")
	})
	is.True(!strings.Contains(log.String(), "words of the"))
	is.Equal(strings.Count(log.String(), "receive a mail: panic at journeyman/mail"), 1) // the log names the place
}

// TestAnswersThatCostMuch checks that answers are rendered in a confined process, or sent as
// Markdown.
func TestAnswersThatCostMuch(t *testing.T) {
	t.Parallel()
	r := strings.Repeat
	confined := New(Config{Log: slog.New(slog.DiscardHandler), Markdown: func(ctx context.Context, markdown []byte) ([]byte, error) {
		return testPool.Run(ctx, "markdown", markdown)
	}})
	failing := New(Config{Log: slog.New(slog.DiscardHandler), Markdown: func(context.Context, []byte) ([]byte, error) {
		return nil, errors.New("busy")
	}})
	for name, tt := range map[string]struct {
		server         *Server
		answer, begins string
	}{
		"small":         {failing, "**Yes** <b onclick=x>\n", "<p><strong>Yes</strong> </p>"},
		"a long report": {confined, r("**Yes**\n\n", 20_000), "<p><strong>Yes</strong></p>"},
		"a table that swells": {confined, r("a|", 5000) + "\n" + r("-|", 5000) + "\n" + r("a\n", 6000),
			"<pre>a|a|"},
		"emphasis without end":     {confined, r("*a_ ", 200_000), "<pre>*a_ *a_ "},
		"quotes":                   {confined, r(">", 200_000) + "<", "<pre>&gt;&gt;"},
		"a report without process": {failing, r("<i>Yes</i> & ", 20_000), "<pre>&lt;i&gt;Yes&lt;/i&gt; &amp; "},
	} {
		if name == "quotes" && storetest.Rounds(1, 0) == 0 {
			continue // the process uses all its CPU time, four seconds
		}
		if name == "emphasis without end" && !storetest.Slowly() {
			continue // the table fails in the process, too
		}
		t.Run(name, func(t *testing.T) {
			_, body, _ := strings.Cut(tt.server.page(t.Context(), tt.answer), "<body>\n")
			is.New(t).True(strings.HasPrefix(body, tt.begins)) // the part that could be rendered
		})
	}
}
