package mail

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/emersion/go-message/mail"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/visible"
	"journeyman/store/workers"
)

// askingFor returns an instruction that asks a question and repeats the answer.
func askingFor(question string) string {
	return "```offline\ntool ask_user " + question + "\nsay It is {{last}}\n```"
}

// questionOf waits for the nth mail of the outbox and returns its Message-ID and text.
func (p *post) questionOf(n int) (id, text string) {
	p.t.Helper()
	list := p.replies(n, store.EmailKept, store.EmailSent)
	r, _ := p.source(list[n-1])
	texts, _ := parts(p.t, r)
	return list[n-1].ID + "@" + domain, texts["text/plain"]
}

func TestQuestionByMail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from  string
		tools workers.ToolRules // of non-members
	}{
		"a member":   {from: "ann@example.com"},
		"a stranger": {from: "bob@example.net", tools: workers.ToolRules{{Tool: "ask_user"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newPost(t, false, nil)
			p.worker = p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Waiter",
				Settings: workers.Settings{StrangerTools: tt.tools}})
			send := func(from, id, text string, fields ...string) {
				t.Helper()
				fields = append(fields, "From: "+from, "Message-ID: <"+id+"@example.net>")
				is.Equal(p.send(from, p.address(), letter(text, fields...)), "250 2.0.0 OK: queued")
			}
			send(tt.from, "first", askingFor(`{"question": "Soup or <b>salad</b>?", "choices": ["Soup", "Salad"]}`))
			question, text := p.questionOf(1)
			is.True(strings.Contains(text, "Soup or <b>salad</b>?\n\n1. Soup\n2. Salad\n")) // the choices have numbers
			first := p.emails(store.Inbound)[0]

			// A reply of another person is no answer.
			send("eve@example.org", "eve", "Soup!", "In-Reply-To: <"+question+">")
			is.Equal(p.turn(first).Status, store.Running)

			const choice = "2.\n\nOn Mon, Nov 23, 2026 at 9:30 AM Waiter <w@localhost> wrote:\n> Soup or salad?"
			send(tt.from, "second", choice, "In-Reply-To: <"+question+">", "References: <first@example.net> <"+question+">")
			storetest.Eventually(t, "the end", func() bool { return p.turn(first).Status.Ended() })
			is.Equal(p.turn(first).OutputText, `It is {"answer":"Salad"}`)
			send(tt.from, "second", choice, "In-Reply-To: <"+question+">") // the same mail again
			mails := p.emails(store.Inbound)
			is.Equal(statuses(mails), "accepted accepted accepted ignored")
			is.Equal(mails[2].TurnID, first.TurnID) // the answer belongs to the turn that asked
			// The answer of the turn follows the newest mail, once.
			storetest.Eventually(t, "the reply", func() bool {
				for _, e := range p.emails(store.Outbound) {
					if _, raw := p.source(e); e.TurnID == first.TurnID && strings.Contains(raw, "In-Reply-To: <second@example.net>") {
						return true
					}
				}
				return false
			})
			n := 0
			for _, e := range p.emails(store.Outbound) {
				if e.TurnID == first.TurnID {
					n++
				}
			}
			is.Equal(n, 2) // the question and the answer

			// Without a question, a reply is an instruction.
			send(tt.from, "third", "say thanks", "In-Reply-To: <"+question+">")
			mails = p.emails(store.Inbound)
			last := mails[len(mails)-1]
			is.True(last.TurnID != first.TurnID && last.TaskID == first.TaskID) // a turn of its own in the same task
		})
	}
}

// TestReplyToAnEarlierQuestion sends a second reply to the mail of a question that is answered. It is the
// answer to the question that waits now, but its number is not one of this question's choices.
func TestReplyToAnEarlierQuestion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	send := func(id, text string, fields ...string) {
		t.Helper()
		fields = append(fields, "Message-ID: <"+id+"@example.com>")
		is.Equal(p.send("ann@example.com", p.address(), letter(text, fields...)), "250 2.0.0 OK: queued")
	}
	send("1", "```offline\ntool ask_user {\"question\": \"Which meal?\", \"choices\": [\"Soup\", \"Salad\"]}\n"+
		"tool ask_user {\"question\": \"Which drink?\", \"choices\": [\"Tea\", \"Water\"]}\nsay It is {{last}}\n```")
	meal, _ := p.questionOf(1)
	first := p.emails(store.Inbound)[0]
	send("2", "1", "In-Reply-To: <"+meal+">")
	_, text := p.questionOf(2)
	is.True(strings.Contains(text, "Which drink?"))
	send("3", "2", "In-Reply-To: <"+meal+">")
	storetest.Eventually(t, "the end", func() bool { return p.turn(first).Status.Ended() })
	is.Equal(p.turn(first).OutputText, `It is {"answer":"2\n\n(This mail replies to an earlier question.)"}`)
	is.Equal(p.emails(store.Inbound)[2].TurnID, first.TurnID) // it is no instruction
}

// TestStrangersAreNotAsked checks that a turn cannot ask if the rules forbid it, or if nobody would
// read the question.
func TestStrangersAreNotAsked(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	curious := p.newWorker(p.owner.Caller,
		workers.NewWorker{Settings: workers.Settings{StrangerTools: workers.ToolRules{{Tool: "ask_user"}}}})
	for i, to := range []workers.Worker{p.worker, curious} {
		from := []string{"bob@example.net", "no-reply@example.net"}[i]
		is.Equal(p.send(from, WorkerAddress(to.ID, domain), letter(askingFor(`{"question": "Who?"}`), "From: "+from, fmt.Sprintf("Message-ID: <%d@example.net>", i))), "250 2.0.0 OK: queued")
		e := p.emails(store.Inbound)[i]
		storetest.Eventually(t, "the end", func() bool { return p.turn(e).Status.Ended() })
		is.True(strings.Contains(p.turn(e).OutputText, `there is no tool`)) // the tool is not offered
	}
}

// TestAnswerWithFiles checks that the files of an answer reach the workspace.
func TestAnswerWithFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	ask := "```offline\ntool ask_user {\"question\": \"Which file?\"}\ntool read_file {\"path\": \"list.txt\"}\nsay It is {{last}}\n```"
	is.Equal(p.send("ann@example.com", p.address(), letter(ask, "Message-ID: <1@example.com>")), "250 2.0.0 OK: queued")
	question, _ := p.questionOf(1)
	is.Equal(p.send("ann@example.com", p.address(), letter("--b\nContent-Type: text/plain\n\nThis one.\n--b\nContent-Type: text/plain\n"+
		"Content-Disposition: attachment; filename=list.txt\n\nsugar\n--b--", "Message-ID: <2@example.com>", "In-Reply-To: <"+question+">",
		"MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b")), "250 2.0.0 OK: queued")
	e := p.emails(store.Inbound)[0]
	storetest.Eventually(t, "the end", func() bool { return p.turn(e).Status.Ended() })
	is.True(strings.Contains(p.turn(e).OutputText, "sugar")) // the call after the answer reads the file
	list, _, err := p.store.Approvals(t.Context(), p.owner.Caller, store.ApprovalQuery{TaskID: e.TaskID, Limit: 5})
	is.NoErr(err)
	is.Equal(list[0].Answer, "This one.\n\n(With files, which are in the workspace now: list.txt)")
	files, err := p.store.FilesByTurn(t.Context(), p.turn(e))
	is.NoErr(err)
	attached := store.TurnFiles(files, p.turn(e).Num, store.Attached)
	is.Equal(len(attached), 1) // it is an attachment of the turn that asked
	is.Equal(attached[0].Path, "list.txt")
}

// TestAnswerToAQuestionOfTheAPI sends a mail to a task whose question was asked in a turn of the API. The
// mail is the answer if the question is for its author, and otherwise a new instruction.
func TestAnswerToAQuestionOfTheAPI(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	colleague, _ := storetest.Caller(t, p.store, "Acme", "mo@example.com", people.RoleAdmin)
	for i, asker := range []people.Identity{p.owner, colleague} {
		n := store.NewTurn{Caller: asker.Caller, WorkerID: p.worker.ID, Input: askingFor(`{"question": "Who?"}`), Budget: store.BudgetStandard}
		n.Caller.Trigger = people.TriggerAPI
		a, err := p.store.CreateTurn(t.Context(), n)
		is.NoErr(err)
		storetest.Eventually(t, "the question", func() bool {
			task, err := p.store.TaskOfTurn(t.Context(), a.Turn)
			return err == nil && task.Wait != nil
		})
		to := strings.Replace(p.address(), "@", "+"+a.Turn.TaskID+"@", 1)
		is.Equal(p.send("ann@example.com", to, letter("Ann", fmt.Sprintf("Message-ID: <%d@example.com>", i))), "250 2.0.0 OK: queued")
		mails := p.emails(store.Inbound)
		is.Equal(mails[len(mails)-1].TaskID, a.Turn.TaskID)
		is.Equal(mails[len(mails)-1].TurnID == a.Turn.ID, i == 0)
	}
}

var decisionLink = regexp.MustCompile(`http://jm\.test/decide/(\S+)`)

func TestApprovalByMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newHub(t, false)
	p := newPost(t, false, func(c *Config) { c.Relay = h.relay })
	w := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Careful",
		Settings: workers.Settings{ApprovalTools: []string{"write_file"}}})
	c := p.owner.Caller
	c.Trigger = people.TriggerAPI
	evil := `<img src=x> [click](https://evil.example) ` + "\u202e \ufe0f \u200d \U000e0041 \u00ad \u2028"
	_, err := p.store.CreateTurn(t.Context(), store.NewTurn{Caller: c, WorkerID: w.ID, Budget: store.BudgetLow, TaskID: "careful",
		Input: "```offline\ntool write_file {\"path\": \"a.txt\", \"content\": \"" + evil + "\"}\nsay It is {{last}}\n```"})
	is.NoErr(err)
	p.runner.Wake()
	storetest.Eventually(t, "the mail", func() bool { return h.count() == 1 })
	h.mu.Lock()
	raw, to := h.got[0], h.to[0]
	h.mu.Unlock()
	is.Equal(to, "ann@example.com")
	is.True(strings.Contains(raw, "Auto-Submitted: auto-generated"))
	reader, err := mail.CreateReader(strings.NewReader(raw))
	is.NoErr(err)
	subject, err := reader.Header.Subject()
	is.NoErr(err)
	is.True(strings.HasPrefix(subject, "Approval needed: ")) // the subject shows the purpose
	texts, _ := parts(t, reader)
	is.True(!strings.Contains(texts["text/html"], "<img") && !strings.Contains(texts["text/html"], `href="https://evil`)) // the text is escaped
	for _, text := range texts {
		is.True(!strings.ContainsFunc(strings.ReplaceAll(text, "\r\n", "\n"), func(r rune) bool { return r != '\n' && visible.Hidden(r) }))
		for _, escape := range []string{`\u202e`, `\ufe0f`, `\u200d`, `\u{e0041}`, `\u00ad`, `\u2028`} {
			is.True(strings.Contains(text, escape)) // a hidden character of the decision is shown
		}
	}
	token := decisionLink.FindStringSubmatch(texts["text/plain"])[1]
	is.True(strings.Contains(texts["text/html"], token)) // both forms have the link

	// The body of a sent mail is deleted, and only its recipient can see that it existed.
	mails := p.replies(1, store.EmailSent)
	source, err := p.store.Effects.EmailSource(t.Context(), mails[0])
	is.NoErr(err)
	is.Equal(len(source), 0)

	l, err := p.store.DecisionLink(t.Context(), token, "192.0.2.1")
	is.NoErr(err)
	is.Equal([]any{l.Caller.UserID, l.Task.ID, l.Approval.ToolName}, []any{p.owner.UserID, "careful", "write_file"})
	_, err = p.runner.DecideApproval(t.Context(), l.Caller, l.Task.ID, l.Approval.ID, l.Decision(store.Decision{Approved: true}))
	is.NoErr(err)
	l, err = p.store.DecisionLink(t.Context(), token, "192.0.2.1")
	is.NoErr(err)
	is.Equal(l.Approval.Status, store.ApprovalApproved) // the page can show this
	_, err = p.store.DecisionLink(t.Context(), token[:len(token)-2]+"AA", "192.0.2.1")
	is.True(db.IsNotFound(err)) // a forged link
}
