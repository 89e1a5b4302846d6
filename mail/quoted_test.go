package mail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// A talk sends mails to the worker of a post.
type talk struct {
	*post
	n int
}

// says sends a mail, and returns the instruction that it starts.
func (c *talk) says(text string, fields ...string) store.Turn {
	c.t.Helper()
	is := is.New(c.t)
	c.n++
	fields = append(fields, fmt.Sprintf("Message-ID: <m%d@example.com>", c.n))
	is.Equal(c.send("ann@example.com", c.address(), letter(text, fields...)), "250 2.0.0 OK: queued")
	list := c.emails(store.Inbound)
	return c.turn(list[len(list)-1])
}

// answer waits for the answer to a turn, and returns its id and its text.
func (c *talk) answer(turn store.Turn) (id, text string) {
	c.t.Helper()
	var e store.Email
	storetest.Eventually(c.t, "the answer", func() bool {
		for _, e = range c.emails(store.Outbound) {
			if e.TurnID == turn.ID && e.Status == store.EmailKept {
				return true
			}
		}
		return false
	})
	r, _ := c.source(e)
	texts, _ := parts(c.t, r)
	return e.ID + "@" + domain, texts["text/plain"]
}

// quote returns lines with quote marks.
func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}

const bobsMail = "From: Bob <bob@example.org>\nSent: Friday, November 20, 2026 8:00 AM\nTo: Ann <ann@example.com>\n" +
	"Subject: Budget\n\nWe need 4,000 Euro.\n"

// TestQuotedHistory quotes mails in a thread that the service does not know, and in one that it knows.
func TestQuotedHistory(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := &talk{post: newPost(t, false, nil)}
	const first = "Please summarise this thread.\n\n```offline\nsay The budget is 4,000 Euro.\nsay\nsay 1. Ask Carl.\n```"
	re := "Subject: Re: Budget"
	turn := c.says(first+"\n\n"+bobsMail, re, "In-Reply-To: <unknown@example.org>")
	is.Equal(turn.Input, first+"\n\n(The author quoted older mail:)\n"+strings.ReplaceAll(quote(bobsMail), "> \n", ">\n"))

	id, answer := c.answer(turn)
	is.True(strings.Contains(answer, "Ask Carl"))
	in := "In-Reply-To: <" + id + ">"
	at := "On Sat, Nov 21, 2026 at 9:30 AM Scribe <" + c.address() + "> wrote:\n"
	header := "From: Scribe <" + c.address() + ">\nSent: Saturday, November 21, 2026 9:30 AM\nTo: Ann <ann@example.com>\nSubject: Re: Budget\n\n"
	for name, text := range map[string]string{
		"in the way of Gmail":   "Thanks.\n\n" + at + "\n" + quote(answer) + "\n",
		"in the way of Outlook": "Thanks.\n\n________________________________\n" + header + answer,
		"of the whole thread":   "Thanks.\n\n" + header + answer + "\n\n" + strings.ReplaceAll(header, "Scribe <"+c.address()+">", "Ann <ann@example.com>") + first + "\n\n" + bobsMail,
		"below the answer":      at + quote(answer) + "\n\nThanks.\n",
	} {
		if next := c.says(text, re, in); next.Input != "Thanks." || next.TaskID != turn.TaskID {
			t.Errorf("%s: %q", name, next.Input)
		}
	}

	// A mail without own words and without a subject starts a turn, too.
	empty := c.says(at+"\n"+quote(answer), "Subject: ", in)
	is.True(strings.HasPrefix(empty.Input, "(The author quoted older mail:)\n> On Sat, Nov 21, 2026 at 9:30 AM Scribe"))
	is.Equal(empty.TaskID, turn.TaskID)

	// Carl has answered in between. The task has never seen that mail, or this forward.
	carls := "From: Carl <carl@example.org>\nSent: Saturday, November 21, 2026 10:30 AM\nTo: Ann <ann@example.com>\nSubject: Re: Budget\n\nNo, 3,000.\n"
	next := c.says("Is he right?\n\n"+carls+"\n"+header+answer, re, "In-Reply-To: <carl@example.org>\nReferences: <"+id+"> <carl@example.org>")
	is.Equal(next.Input, "Is he right?\n\n(The author quoted older mail:)\n"+strings.ReplaceAll(quote(carls), "> \n", ">\n"))
	is.Equal(next.TaskID, turn.TaskID)
	forward := "Is it real?\n\n---------- Forwarded message ---------\nFrom: Shop <shop@example.org>\n\nPay 100 Euro."
	is.Equal(c.says(forward, re, in).Input, forward)
	// What the task was told in this way is known as well.
	is.Equal(c.says("And now?\n\n"+carls+"\n"+header+answer, re, in).Input, "And now?")
}

// TestLongHistory quotes more than an instruction has room for. The instruction names the file that has it, even if
// the workspace has such files.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := &talk{post: newPost(t, true, nil)}
	var names []string
	for i := range 2 {
		history := bobsMail
		for line := range 600 {
			history += fmt.Sprintf("Line %d of mail %d.\n", line, i)
		}
		turn := c.says("Please summarise this.\n\n"+history, "Subject: Re: Budget")
		own, note, _ := strings.Cut(turn.Input, "\n\n(The author quoted older mail. It is in the file ")
		is.Equal(own, "Please summarise this.")
		name := strings.TrimSuffix(note, ".)")
		raw, err := os.ReadFile(filepath.Join(store.FolderPath(c.store.Dir(), turn.Folder()), name))
		is.NoErr(err)
		is.Equal(string(raw), history)
		names = append(names, name)
	}
	is.True(names[0] != names[1])

	// A forward of any length stays, whatever its subject is.
	forward := "Real?\n\n---------- Forwarded message ---------\nFrom: Shop <shop@example.org>\n\n" + strings.Repeat("Pay 100 Euro.\n", 1000)
	is.Equal(c.says(forward, "Subject: Re: Invoice").Input, strings.TrimSpace(forward))
}

// TestSubjectAsInstruction sends mails without a text of their author.
func TestSubjectAsInstruction(t *testing.T) {
	t.Parallel()
	c := &talk{post: newPost(t, true, nil)}
	for _, tt := range []struct{ raw, want string }{
		{withFile("Sent from my iPhone", "meter.jpg", "x", "Subject: What does it say?"), "What does it say?"},
		{withFile("Wysłane z iPhone'a", "meter.jpg", "x", "Subject: Ile?"), "Ile?"},
		{withFile("Imetumwa kutoka kwa iPhone yangu", "meter.jpg", "x", "Subject: Ngapi?"), "Ngapi?\n\nImetumwa kutoka kwa iPhone yangu"},
		{withFile("Sent from my iPhone", "meter.jpg", "x", "Subject: "), "See the attached files: meter (4).jpg"},
		{letter("> Shall I?", "Subject: Re: Yes"), "Re: Yes\n\n(The author quoted older mail:)\n> > Shall I?"},
		{letter("> Shall I?", "Subject: "), "(The author quoted older mail:)\n> > Shall I?"},
		{letter("-- \nAnn", "Subject: "), "--\nAnn"},
	} {
		is := is.New(t)
		is.Equal(c.send("ann@example.com", c.address(), tt.raw), "250 2.0.0 OK: queued")
		list := c.emails(store.Inbound)
		is.Equal(c.turn(list[len(list)-1]).Input, tt.want)
	}
}

// TestQuotedPages replies in HTML, as programs do, to an answer with a table, a list, a link and code. The programs
// have changed none of its words.
func TestQuotedPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := &talk{post: newPost(t, false, nil)}
	turn := c.says("```offline\nsay # Result\nsay\nsay The **answer** is *here*: [a page](https://example.com/x?a=1&b=2) & `code <b>`.\nsay\n" +
		"say | a | b |\nsay |---|---|\nsay | 1 | 2 |\nsay\nsay 1. One\nsay 2. Two\nsay    - Three\nsay\nsay > Quoted\nsay\nsay 好的，谢谢 👍\n```")
	id, _ := c.answer(turn)
	var page string
	for _, e := range c.emails(store.Outbound) {
		r, _ := c.source(e)
		texts, _ := parts(t, r)
		page = texts["text/html"]
	}
	const header = "<b>Von:</b> Scribe &lt;w@x&gt;<br><b>Gesendet:</b> Samstag, 21. November 2026 09:30<br><b>An:</b> Ann &lt;ann@example.com&gt;<br><b>Betreff:</b> Question"
	for name, tt := range map[string]string{
		"outlook": "<div>Thanks.</div><hr><div id=divRplyFwdMsg>" + header + "</div><div>" + page + "</div>",
		"gmail": "<div>Thanks.</div><br><div class=gmail_quote><div class=gmail_attr>On Sat, Nov 21, 2026 at 9:30 AM Scribe &lt;w@x&gt; wrote:<br></div>" +
			"<blockquote class=gmail_quote>" + page + "</blockquote></div>",
		"apple":       "<div>Thanks.<br><div><br><blockquote type=cite><div>On 21 Nov 2026, at 09:30, Scribe &lt;w@x&gt; wrote:</div><br>" + page + "</blockquote></div></div>",
		"thunderbird": "<div class=moz-cite-prefix>On 11/21/26 09:30, Scribe wrote:<br></div><blockquote type=cite>" + page + "</blockquote><p>Thanks.</p>",
	} {
		next := c.says(tt, "Subject: Re: Question", "In-Reply-To: <"+id+">", "Content-Type: text/html; charset=utf-8")
		if next.Input != "Thanks." || next.TaskID != turn.TaskID {
			t.Errorf("%s: %q", name, next.Input)
		}
	}
	is.True(strings.Contains(page, "<table>"))
}
