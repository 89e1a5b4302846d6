package store

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store/db"
	"journeyman/store/people"
)

// This file makes a message to a task the answer to the task's open question. Without that, the message
// would wait behind the question, for up to seven days. A message that came before the question is no
// answer to it: such a question is withdrawn, so that the message can run.

// openQuestion returns the question that a message of the caller answers: the only pending question of
// the task, asked by a turn of the caller. ok is false for a second pending question, and for one to
// somebody else. A call that waits for an approval does not count: no message decides on it.
func openQuestion(ctx context.Context, q db.Querier, task Task, c people.Caller) (a Approval, ok bool, err error) {
	list, err := db.All(ctx, q, scanDescribed, `SELECT `+approvalColumns+`, s.parts,
			u.created_by_user_num = coalesce((SELECT num FROM users WHERE id = ?1), 0)
		FROM approvals a`+joinApproval+joinStep+`
		WHERE a.task_num = ?2 AND a.kind = 'question' AND a.status = 'pending' AND u.created_by_user_num IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM approvals o WHERE o.task_num = ?2 AND o.kind = 'question'
				AND o.status = 'pending' AND o.num <> a.num)
		ORDER BY a.num LIMIT 1`, c.UserID, task.num)
	if err != nil || len(list) == 0 {
		return a, false, err
	}
	return list[0], list[0].MayDecide, nil
}

// withdrawQuestions closes the questions of a turn that is about to wait, if the person who is asked has
// another message in the queue of the task. It returns the approvals of the step as they are then. The
// message came before the questions, so it is no answer to them, but they must not hold it up. The model
// learns that nobody was asked, and the message runs next. Messages that come after the step is stored find
// the questions open instead: see answerByMessage. The row of the task decides the race, because both a
// suspension and a message change it.
func (s *Store) withdrawQuestions(ctx context.Context, tx db.Tx, t Turn, approvals []Approval) ([]Approval, error) {
	question := slices.IndexFunc(approvals, func(a Approval) bool { return isPending(a) && a.Kind == KindQuestion })
	if question < 0 {
		return approvals, nil
	}
	// Like mailedQuestion, it compares the addresses of people who are no members.
	queued, err := db.One(ctx, tx, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM turns q CROSS JOIN turns u ON u.num = ?3
		WHERE q.task_num = ?1 AND q.seq > ?2 AND q.status = 'pending' AND q.abort_requested = 0
			AND q.triggered_by <> 'schedule' AND q.parent_turn_num IS NULL
			AND CASE WHEN u.created_by_user_num IS NOT NULL THEN q.created_by_user_num = u.created_by_user_num
				ELSE q.created_by_user_num IS NULL AND EXISTS (SELECT 1 FROM inbound_emails e
					CROSS JOIN inbound_emails m ON m.turn_num = q.num
						AND m.from_address IN (e.from_address, e.reply_to)
					WHERE e.turn_num = u.num) END)`, t.taskNum, t.Seq, t.Num)
	if err != nil || !queued {
		return approvals, err
	}
	if _, err := tx.Exec(`UPDATE approvals SET status = ?, decided_at = ? WHERE turn_num = ? AND kind = 'question'
		AND status = 'pending'`, ApprovalCancelled, s.db.Millis(), t.Num); err != nil {
		return approvals, err
	}
	s.db.Notify(tx, t.OrganizationID, db.ChangedApprovals)
	return stepApprovals(ctx, tx, t.Num, approvals[question].Step)
}

// answerByMessage makes an instruction to a task the answer to its open question. ok is false if there is
// none: then the instruction is a new turn. The result holds the turn that asked.
func (s *Store) answerByMessage(ctx context.Context, tx db.Tx, n NewTurn, task Task) (a Accepted, ok bool, err error) {
	if !n.mayAnswer || n.AlwaysQueue || task.Unfinished == 0 {
		return a, false, nil
	}
	question, ok, err := openQuestion(ctx, tx, task, n.Caller)
	if err != nil || !ok {
		return a, false, err
	}
	if db.IsLocking(tx) {
		return a, false, db.ErrSerialize // see decide
	}
	if may, err := mayStillAnswer(ctx, tx, n.Caller, task); err != nil || !may {
		return a, false, err
	}
	text, note := question.Question.Match(n.Input), noteOfFiles(n.Attachments)
	if utf8.RuneCountInString(text+note) > MaxAnswer {
		return a, false, db.Fields{{Path: "input", Message: "is the answer to the open question of the task, so it must " +
			"be shorter: an answer has at most 20000 characters, with the names of the files"}}.Err()
	}
	if question, err = s.answer(ctx, tx, n, task, question, text+note, "message"); err != nil {
		return a, false, err
	}
	turn, err := db.One(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, question.turnNum)
	return Accepted{Turn: turn, Answered: &question}, err == nil, err
}

// answer stores the answer of an instruction to a question, with the files of the instruction, and
// returns the question as it is then.
func (s *Store) answer(ctx context.Context, tx db.Tx, n NewTurn, task Task, a Approval, text, via string) (
	Approval, error) {
	// White space and NUL are as DecideApproval wants them.
	text = strings.ReplaceAll(strings.TrimSpace(text), "\x00", "\uFFFD")
	if err := s.decide(ctx, tx, n.Caller, task, a, Decision{Answer: text, Via: via}); err != nil {
		return a, err
	}
	turn, err := db.One(ctx, tx, scanTurn, `SELECT `+turnColumns+` FROM turns WHERE num = ?`, a.turnNum)
	if err == nil {
		err = n.checkAttachments(turn)
	}
	if err != nil {
		return a, err
	}
	for _, f := range n.Attachments {
		if err := s.insertFile(tx, turn, Attached, f, s.db.Millis()); err != nil {
			return a, err
		}
	}
	return findApproval(ctx, tx, n.Caller, task, a.ID)
}

// mailedAnswer returns the text of a mail as the answer to a question, with a note of the files. late means
// that the mail replies to an earlier question: then the numbers in it are not of this question's choices.
// Quotes are left out if the answer is a choice.
// A text that is too long is cut, because a refusal would bounce the mail of a person who cannot see the
// reason.
func mailedAnswer(q Question, m MailAnswer, files []File, late bool) string {
	note, text := noteOfFiles(files), m.Text
	if late {
		note = "\n\n(This mail replies to an earlier question.)" + note
	} else {
		text = q.Match(text)
	}
	if m.Quoted != "" && (late || !slices.Contains(q.Choices, text)) {
		text += "\n\n" + m.Quoted
	}
	// The names of the files are more important than the end of a long text, so truncate the text.
	if room := MaxAnswer - utf8.RuneCountInString(note); utf8.RuneCountInString(text) > room {
		note = "\n(The mail is truncated here.)" + note
		text = db.FirstRunes(text, max(0, room-50))
	}
	return db.FirstRunes(text+note, MaxAnswer)
}

// noteOfFiles returns a sentence for the model that names the files of an answer.
func noteOfFiles(files []File) string {
	if len(files) == 0 {
		return ""
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = Folder{TaskID: f.TaskID}.Local(f.Path)
	}
	return "\n\n(With files, which are in the workspace now: " + strings.Join(paths, ", ") + ")"
}
