package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// This file queues a webhook delivery and mails when a turn is suspended to wait for a person. The
// rows are written in the transaction that suspends the turn, so none is lost.

// maxDeciders bounds how many people get a mail about a turn that waits for an approval.
const maxDeciders = 10

// AskByMail makes the store queue mails to the people who decide on tool calls. Call it if
// there is a relay: without one, the mails would reach nobody.
func (s *Store) AskByMail() { s.asksByMail.Store(true) }

// announceWait queues a delivery and mails about the approvals that a turn waits for.
func (s *Store) announceWait(ctx context.Context, tx db.Tx, c Claim, approvals []Approval) error {
	pending := slices.DeleteFunc(slices.Clone(approvals), func(a Approval) bool { return !isPending(a) })
	if err := s.queueWaiting(ctx, tx, c.Turn); err != nil {
		return err
	}
	err := s.Effects.raiseAlert(ctx, tx, alertEvent{TopicWaiting, EventTaskWaiting, c.OrganizationID, c.WorkerID,
		c.taskNum})
	if err != nil {
		return err
	}
	calls := false // a mail about calls was queued
	for _, a := range pending {
		var err error
		switch {
		case a.Kind == KindQuestion:
			err = s.mailQuestion(ctx, tx, c.Turn, a)
		case !calls: // one mail lists all calls of the step
			calls = true
			err = s.mailDeciders(ctx, tx, c.Turn, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// queueWaiting queues the webhook delivery of a turn that begins to wait for a person. The
// row keeps the sums of the task as they are now, so each retry sends the same body.
func (s *Store) queueWaiting(ctx context.Context, tx db.Tx, t Turn) error {
	var task taskState
	_, err := db.One(ctx, tx, db.Into(&task.status, &task.turns, &task.cost, &task.duration),
		`SELECT status, turn_count, cost, duration_ms FROM tasks WHERE num = ?`, t.taskNum)
	if err != nil {
		return err
	}
	return s.Effects.queueDeliveryOf(tx, t, TaskWaiting, task)
}

// mailQuestion queues the mail that asks a question. It goes to the author of the mail that
// started the turn, or to the creator of its schedule. Turns of the API and the dashboard get
// no mail: their clients show the question.
func (s *Store) mailQuestion(ctx context.Context, tx db.Tx, t Turn, a Approval) error {
	if t.TriggeredBy == people.TriggerSchedule {
		return s.mailPeople(ctx, tx, t, a, `SELECT p.id, p.email
			FROM memberships m CROSS JOIN users p ON p.id = m.user_id
			WHERE m.organization_id = ? AND m.user_id = ?`, t.OrganizationID, t.CreatedByUserID)
	}
	if t.TriggeredBy != people.TriggerEmail {
		return nil
	}
	// The newest mail of the turn has the thread that its author reads. NOT EXISTS asks
	// each question once, even if the turn is suspended again.
	now := s.db.Millis()
	s.db.Notify(tx, t.OrganizationID, db.ChangedOutbox)
	_, err := tx.Exec(`INSERT INTO outbound_emails (id, kind, organization_id, worker_id, turn_num, inbound_num,
			approval_num, recipient, subject, status, attempts, next_attempt_at, error_message, created_at, size)
		SELECT ?1, 'question', organization_id, worker_id, turn_num, num, ?2, reply_to, NULL, 'queued', 0, ?3, '', ?3, 0
		FROM inbound_emails WHERE turn_num = ?4 AND reply_to <> ''
			AND NOT EXISTS (SELECT 1 FROM outbound_emails WHERE approval_num = ?2)
		ORDER BY num DESC LIMIT 1`, db.NewID("msg", s.db.Now()), a.num, now, t.Num)
	return err
}

// mailDeciders queues a mail to the people who decide on the calls of a turn: the creator of
// the worker, Owners and Admins.
func (s *Store) mailDeciders(ctx context.Context, tx db.Tx, t Turn, a Approval) error {
	return s.mailPeople(ctx, tx, t, a, `SELECT p.id, p.email FROM memberships m CROSS JOIN users p ON p.id = m.user_id
		WHERE m.organization_id = ? AND (m.role IN ('owner', 'admin')
			OR p.id = (SELECT user_id FROM workers WHERE id = ?))`, t.OrganizationID, t.WorkerID)
}

// mailPeople queues a mail about an approval to at most maxDeciders users that a query finds.
// A user who has a mail about the approval gets no second one.
func (s *Store) mailPeople(ctx context.Context, tx db.Tx, t Turn, a Approval, query string, args ...any) error {
	if !s.asksByMail.Load() {
		return nil
	}
	type person struct{ id, email string }
	scan := func(row db.Scanner) (p person, err error) { err = row.Scan(&p.id, &p.email); return p, err }
	// The limit bounds the mails that one call of a tool can cause.
	people, err := db.All(ctx, tx, scan, query+` /* ORDER BY p.id */ LIMIT ?`, append(args, maxDeciders)...)
	if err != nil {
		return err
	}
	now := s.db.Millis()
	s.db.Notify(tx, t.OrganizationID, db.ChangedOutbox)
	for _, p := range people {
		// A new data folder has an owner with such an address. No relay can reach it.
		if strings.HasSuffix(p.email, "@localhost") {
			continue
		}
		_, err := tx.Exec(`INSERT INTO outbound_emails (id, kind, organization_id, worker_id, turn_num, approval_num,
				user_id, recipient, subject, status, attempts, next_attempt_at, error_message, created_at, size)
			SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, 'queued', 0, ?9, '', ?9, 0
			WHERE NOT EXISTS (SELECT 1 FROM outbound_emails WHERE approval_num = ?6 AND user_id = ?7)`,
			db.NewID("msg", s.db.Now()), a.Kind, t.OrganizationID, t.WorkerID, t.Num, a.num, p.id, p.email, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// asked returns the approvals that a mail asks about, as they are now: the question, or the
// calls of its step that still wait. It returns none if all of them are decided, or if the
// recipient may no longer decide. userID is "" for the author of a mail.
func asked(ctx context.Context, q db.Querier, approvalNum int64, userID string) ([]Approval, error) {
	list, err := db.All(ctx, q, scanDescribed, `SELECT `+approvalColumns+`, s.parts,
			?1 = '' OR `+mayDecide(`EXISTS (SELECT 1 FROM memberships o WHERE o.organization_id = w.organization_id
				AND o.user_id = ?1 AND o.role IN ('owner', 'admin'))`, "?1")+`
		FROM approvals b CROSS JOIN approvals a ON a.turn_num = b.turn_num AND a.step_seq = b.step_seq`+
		joinApproval+joinStep+joinWorker+`
		WHERE b.num = ?2 AND a.kind = b.kind AND (b.kind = 'approval' OR a.num = b.num) AND a.status = 'pending'
			AND (?1 = '' OR EXISTS (SELECT 1 FROM memberships o WHERE o.organization_id = w.organization_id
				AND o.user_id = ?1))
		ORDER BY a.call_seq`, userID, approvalNum)
	return slices.DeleteFunc(list, func(a Approval) bool { return !a.MayDecide }), err
}

// MailedQuestion returns the id of the question whose mail is among messageIDs, "" if there is none. A
// question that still waits comes before others. The id only selects a question: the store checks the task
// and the author when it stores the mail.
func (s *Store) MailedQuestion(ctx context.Context, messageIDs []string) (id string, err error) {
	for _, messageID := range messageIDs {
		local, _, _ := strings.Cut(messageID, "@")
		if local = strings.ToLower(local); !db.IsServerID("msg", local) {
			continue
		}
		var question string
		var waits bool
		_, err := db.One(ctx, s.db, db.Into(&question, &waits), `SELECT a.id, a.status = 'pending'
			FROM outbound_emails m CROSS JOIN approvals a ON a.num = m.approval_num
			WHERE m.id = ? AND m.kind = 'question'`, local)
		if db.NoRow(err, nil) != nil {
			return "", err
		}
		if waits {
			return question, nil
		}
		id = cmp.Or(id, question)
	}
	return id, nil
}

// mailedQuestion returns the only question of a task, if its author may answer it by mail.
// Unless num is 0, it returns the question with that num. A member's question is for
// that member. A stranger's question is for the address that the mail came from.
func mailedQuestion(ctx context.Context, q db.Querier, task Task, c people.Caller, from string,
	num int64) (Approval, bool, error) {
	a, err := db.One(ctx, q, scanDescribed, `SELECT `+approvalColumns+`, s.parts, 0
		FROM approvals a`+joinApproval+joinStep+`
		WHERE a.task_num = ?1 AND a.kind = 'question' AND a.status = 'pending'
			AND (a.num = ?2 OR ?2 = 0 AND NOT EXISTS (SELECT 1 FROM approvals o
				WHERE o.task_num = ?1 AND o.kind = 'question' AND o.status = 'pending' AND o.num <> a.num))
			AND CASE WHEN u.created_by_user_num IS NOT NULL THEN u.created_by_user_num = (SELECT num FROM users WHERE id = ?3)
				ELSE EXISTS (SELECT 1 FROM inbound_emails e WHERE e.turn_num = u.num
					AND (e.from_address = ?4 OR e.reply_to = ?4)) END
		ORDER BY a.num LIMIT 1`, task.num, num, c.UserID, from)
	return a, err == nil, db.NoRow(err, nil)
}

// answerByMail stores the answer of a mail. ok is false if no question waits for its author, or if several
// do and the mail replies to none of them: then the mail becomes an instruction.
func (s *Store) answerByMail(ctx context.Context, tx db.Tx, n NewEmail) (a Approval, ok bool, err error) {
	task, err := db.One(ctx, tx, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE id = ?
		AND organization_num = `+db.OrganizationNum,
		n.Turn.TaskID, n.Worker.OrganizationID)
	if err != nil || task.Unfinished == 0 {
		return a, false, db.NoRow(err, nil)
	}
	c := n.Turn.Caller
	if may, err := mayStillAnswer(ctx, tx, c, task); err != nil || !may {
		return a, false, err
	}
	a, late, ok, err := questionOf(ctx, tx, task, c, n.From, n.Answer.ApprovalID)
	if err != nil || !ok {
		return a, false, err
	}
	// The mail is stored with the state after the decision.
	text := mailedAnswer(a.Question, *n.Answer, n.Turn.Attachments, late)
	a, err = s.answer(ctx, tx, *n.Turn, task, a, text, "mail")
	return a, err == nil, err
}

// questionOf returns the question that a mail answers. id is that of the question to whose mail it replies, "" for
// none. late is true if that question was answered before, maybe elsewhere: then the mail answers the only
// question that waits.
func questionOf(ctx context.Context, q db.Querier, task Task, c people.Caller, from, id string) (
	a Approval, late, ok bool, err error) {
	var num int64
	if id != "" {
		num, err = db.One(ctx, q, db.ScanInt, `SELECT num FROM approvals WHERE id = ?`, id)
		if db.NoRow(err, nil) != nil {
			return a, false, false, err
		}
	}
	a, ok, err = mailedQuestion(ctx, q, task, c, from, num)
	if num == 0 || err != nil || ok {
		return a, false, ok, err
	}
	a, ok, err = mailedQuestion(ctx, q, task, c, from, 0)
	return a, true, ok, err
}

// AnswersQuestion reports whether a mail of the author in a task would answer a question now. The mails to
// which it replies are messageIDs.
func (s *Store) AnswersQuestion(ctx context.Context, task Task, c people.Caller, from string, messageIDs []string) (
	bool, error) {
	id, err := s.MailedQuestion(ctx, messageIDs)
	if err != nil {
		return false, err
	}
	_, _, ok, err := questionOf(ctx, s.db, task, c, from, id)
	return ok, err
}

// mayStillAnswer reports whether the author of a mail or a message may answer in this transaction. A
// member may have left the organization, or a private worker, since the mail or the request was read.
func mayStillAnswer(ctx context.Context, tx db.Tx, c people.Caller, task Task) (bool, error) {
	if c.Stranger() {
		return true, nil // mailedQuestion compares the address
	}
	if err := people.RoleNow(ctx, tx, &c); err != nil || c.Role == "" {
		return false, err
	}
	_, err := workers.VisibleOrDeleted(ctx, tx, c, task.WorkerID)
	if db.IsKind(err, db.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// waitEnd returns the time at which the wait for an approval expires. If the turn is not suspended,
// it returns the creation of the approval, so that a link expires at once.
func (t Turn) waitEnd(a Approval) time.Time {
	if t.Wait != nil {
		return t.Wait.Until
	}
	return a.CreatedAt
}
