package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// questioned returns a turn that is suspended for a question, and for approvals of the calls in
// more.
func questioned(f *fixture, more ...int64) (store.Claim, store.Approval) {
	f.t.Helper()
	is := is.New(f.t)
	c := running(f)
	st := asking(f, 0, 3, append([]int64{0}, more...)...)
	st.Parts[1].ToolName, st.Parts[1].Input = "ask_user", json.RawMessage(`{"question":"Which?","choices":["Red wine","White wine"]}`)
	st.Approvals[0].Kind = store.KindQuestion
	is.NoErr(f.JournalStep(f.ctx(), c, st))
	list, suspended, err := f.SuspendTurn(f.ctx(), c, 0, f.clock.now().Add(time.Hour))
	is.NoErr(err)
	is.True(suspended)
	return c, list[0]
}

func (f *fixture) answer(c store.Claim, id, answer string) (store.Approval, error) {
	return f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, id, store.Decision{Answer: answer})
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, q := questioned(f, 2)
	is.Equal(q.Kind, store.KindQuestion)
	for _, d := range []store.Decision{{Approved: true}, {}, {Answer: " \n"}, {Answer: strings.Repeat("x", store.MaxAnswer+1)}, {Answer: "a\x00b"}} {
		_, err := f.DecideApproval(f.ctx(), f.owner.Caller, c.TaskID, q.ID, d)
		is.True(db.IsKind(err, db.Invalid)) // an invalid answer
		is.True(strings.HasPrefix(err.Error(), "answer: "))
	}
	a, err := f.answer(c, q.ID, " both\n")
	is.NoErr(err)
	is.Equal([]any{a.Status, a.Answer, a.Question.Text, a.Question.Choices, a.DecidedByUserID},
		[]any{store.ApprovalAnswered, "both", "Which?", []string{"Red wine", "White wine"}, f.owner.UserID})
	is.NoErr(errOf(f.answer(c, q.ID, "both")))                        // the same answer again changes nothing
	is.True(db.IsKind(errOf(f.answer(c, q.ID, "none")), db.Conflict)) // another answer is too late
	is.Equal(f.Queued(), int64(0))                                    // a call still needs approval
	list, _, err := f.Approvals(f.ctx(), f.owner.Caller, store.ApprovalQuery{Limit: 5})
	is.NoErr(err)
	is.Equal(len(list), 1)
	_, err = f.answer(c, list[0].ID, "yes")
	is.Equal(err.Error(), "approved: is required instead of an answer: the call waits for an approval")
	is.NoErr(errOf(f.decide(c, list[0].ID, false, "")))
	f.claimOne("r")
	is.Equal(f.count(`SELECT count(*) FROM audit_log WHERE action = 'question.answer' AND detail NOT LIKE '%both%'`), int64(1))
}

// TestUnansweredQuestion checks that a turn continues without an answer. If it also waits for an
// approval, it ends.
func TestUnansweredQuestion(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]int64{"alone": nil, "beside an approval": {1}} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			f := newFixture(t)
			c, q := questioned(f, more...)
			f.clock.advance(time.Hour)
			ended, resumed, err := f.ExpireSuspended(f.ctx(), 10)
			is.NoErr(err)
			is.Equal([]int{len(ended), resumed}, []int{len(more), 1 - len(more)})
			is.True(db.IsKind(errOf(f.answer(c, q.ID, "late")), db.Conflict)) // it is too late
			if len(more) > 0 {
				is.Equal(f.reread(c.Turn).Failure.Code, "approval_timeout")
				return
			}
			again := f.claimOne("r")
			journal, err := f.Journal(f.ctx(), again.Turn)
			is.NoErr(err)
			is.Equal(journal[0].Approvals[0].Status, store.ApprovalExpired)
			f.checkCounters()
		})
	}
}

// TestWhoAnswers checks who may answer: the author, the creator of the task, and the members who
// may decide on calls. Only a stranger may answer a stranger's question.
func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, q := questioned(f)
	author, other := f.caller("Acme", "author@example.com", people.RoleMember), f.caller("Acme", "other@example.com",
		people.RoleMember)
	may := func(who people.Identity) bool {
		list, _, err := f.Approvals(f.ctx(), who.Caller, store.ApprovalQuery{TaskID: c.TaskID, Limit: 10})
		is.NoErr(err)
		_, err = f.DecideApproval(f.ctx(), who.Caller, c.TaskID, q.ID, store.Decision{Approved: true})
		is.Equal(db.IsKind(err, db.Forbidden), !list[0].MayDecide) // as the list says
		n, err := f.PendingDecisions(f.ctx(), who.Caller)
		is.NoErr(err)
		is.Equal(n == 1, list[0].MayDecide) // so does the count
		return list[0].MayDecide
	}
	set := func(column, table string, user any) {
		t.Helper()
		f.exec(`UPDATE `+table+` SET `+column+` = ?`, user)
	}
	num := func(who people.Identity) int64 { return f.count(`SELECT num FROM users WHERE id = ?`, who.UserID) }
	is.Equal([]bool{may(f.owner), may(author), may(other)}, []bool{true, false, false})
	set("created_by_user_num", "turns", num(author))
	is.Equal([]bool{may(f.owner), may(author), may(other)}, []bool{true, true, false})
	set("created_by_user_num", "tasks", num(other))
	is.Equal([]bool{may(f.owner), may(author), may(other)}, []bool{true, true, true})
	set("own_folder", "turns", 1)
	set("created_by_user_num", "turns", nil)
	is.Equal([]bool{may(f.owner), may(author), may(other)}, []bool{false, false, false})
}

func TestMatchingAnswers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	q := store.Question{Choices: []string{"Red wine", "White wine.", "3"}}
	for text, want := range map[string]string{
		"1": "Red wine", " 2.": "White wine.", "2)": "White wine.", "red  WINE!": "Red wine", "white wine": "White wine.",
		"3": "3", "4": "4", "0": "0", "Rosé": "Rosé", "": "", "-1": "-1",
	} {
		is.Equal(q.Match(text), want)
	}
}

// TestDecisionLinks checks that a link decides once, and only for members who may decide.
func TestDecisionLinks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.AskByMail()
	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	f.caller("Acme", "mo@acme.test", people.RoleMember)
	c, st := suspended(f, 0, 1)
	replies := f.claimReplies(2) // one mail to the creator and one to the admin, for both calls
	is.Equal(len(replies[0].Asks), 2)
	waiting := f.reread(c.Turn)
	token, err := f.DecisionToken(waiting, replies[0].Asks[0], admin.UserID)
	is.NoErr(err)
	for _, bad := range []string{"", ".", "...", token + "x", "x" + token, strings.ToUpper(token), strings.Replace(token, admin.UserID, f.owner.UserID, 1), strings.Repeat("a.", 200)} {
		is.True(db.IsKind(errOf(f.DecisionLink(f.ctx(), bad, "")), db.NotFound)) // the link is forged
	}
	l, err := f.DecisionLink(f.ctx(), token, "192.0.2.7")
	is.NoErr(err)
	is.Equal([]any{l.Caller.UserID, l.Caller.Role, l.Task.ID, l.Approval.ID}, []any{admin.UserID, people.RoleAdmin,
		c.TaskID, st.Approvals[0].ID})
	is.NoErr(errOf(f.DecideApproval(f.ctx(), l.Caller, l.Task.ID, l.Approval.ID, l.Decision(store.Decision{}))))
	is.Equal(f.count(`SELECT count(*) FROM audit_log WHERE user_id = ? AND detail LIKE '%"via":"mail link"%' AND remote_addr = '192.0.2.7'`, admin.UserID), int64(1))
	again, err := f.DecisionLink(f.ctx(), token, "")
	is.NoErr(err)
	is.Equal(again.Approval.Status, store.ApprovalDenied) // now the link only shows the decision
	f.claimReplies(0)

	second, err := f.DecisionToken(waiting, replies[0].Asks[1], admin.UserID)
	is.NoErr(err)
	mails, _, err := f.Effects.Emails(f.ctx(), f.owner.Caller, store.EmailQuery{Direction: store.Outbound, Limit: 10})
	is.NoErr(err)
	is.Equal(len(mails), 1) // members do not see the mails of others
	is.NoErr(errOf(f.People.RemoveMember(f.ctx(), f.owner.Caller, admin.UserID)))
	_, err = f.DecisionLink(f.ctx(), second, "")
	is.True(db.IsKind(err, db.NotFound)) // the user is not a member any more
	_, err = f.DecideApproval(f.ctx(), l.Caller, l.Task.ID, st.Approvals[1].ID, store.Decision{Approved: true})
	is.True(db.IsKind(err, db.Forbidden)) // the same for a link that was read before
	third, err := f.DecisionToken(waiting, replies[0].Asks[1], f.owner.UserID)
	is.NoErr(err)
	f.clock.advance(time.Hour)
	is.True(db.IsKind(errOf(f.DecisionLink(f.ctx(), third, "")), db.NotFound)) // the link has expired
}

// TestMailsWithLinksAreForgotten ends mails with decision links. Their content is deleted,
// independent of its size and the result.
func TestMailsWithLinksAreForgotten(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.AskByMail()
	f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	suspended(f, 0)
	replies := f.claimReplies(2)
	is.NoErr(f.Effects.ComposeReply(f.ctx(), &replies[0], "Approval needed", []byte(strings.Repeat("large ", 20_000))))
	is.NoErr(f.Effects.EndReply(f.ctx(), replies[0], store.EmailSent, ""))
	is.NoErr(f.Effects.ComposeReply(f.ctx(), &replies[1], "Approval needed", []byte("small")))
	is.NoErr(f.Effects.EndReply(f.ctx(), replies[1], store.EmailFailed, "given up"))
	is.Equal(f.count(`SELECT count(*) FROM outbound_emails WHERE source IS NOT NULL OR source_sha256 IS NOT NULL`), int64(0))
}

// TestWaitingTasks filters the list of tasks by the reason for their wait.
func TestWaitingTasks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, q := questioned(f)
	f.accept(f.turn()) // this task does not wait for a person
	list := func(w store.WaitFor) (ids []string) {
		tasks, _, err := f.Tasks(f.ctx(), f.owner.Caller, store.TaskQuery{WaitingFor: w, Limit: 10})
		is.NoErr(err)
		for _, task := range tasks {
			ids = append(ids, task.ID)
		}
		return ids
	}
	is.Equal(list(store.WaitForPerson), []string{c.TaskID})
	is.Equal(list(store.WaitForModel), nil)
	_, _, err := f.Tasks(f.ctx(), f.owner.Caller, store.TaskQuery{WaitingFor: "rain"})
	is.True(db.IsKind(err, db.Invalid)) // there is no such reason
	is.NoErr(errOf(f.answer(c, q.ID, "red")))
	is.Equal(list(store.WaitForPerson), nil)
}
