package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Mailbox returns the worker to which a mail is addressed, without a check of access. Only the
// fields of workers.Runnable are set. It returns NotFound for a deleted worker.
func (s *Store) Mailbox(ctx context.Context, workerID string) (workers.Worker, error) {
	w, err := db.One(ctx, s.db, workers.ScanRunnable, workers.SelectRunnable, workerID)
	if err == nil && w.DeletedAt != nil {
		err = sql.ErrNoRows
	}
	return w, db.NoRecord(err, "worker")
}

// MailCaller returns the user with that email address as a Caller in an organization, and
// reports whether they are a member. Any other address is a stranger, who sees public
// workers.
func (s *Store) MailCaller(ctx context.Context, organizationID, address string) (c people.Caller, member bool,
	err error) {
	c = people.Caller{OrganizationID: organizationID, Trigger: people.TriggerEmail}
	if address == "" {
		return c, false, nil
	}
	_, err = db.One(ctx, s.db, db.Into(&c.UserID, &c.Role),
		`SELECT u.id, m.role FROM users u JOIN memberships m ON m.user_id = u.id
		WHERE u.email = ? AND m.organization_id = ?`, address, organizationID)
	return c, err == nil, db.NoRow(err, nil)
}

// MailTask returns the task that the address worker+task names. secret reports whether the id
// cannot be guessed. The case of the letters does not matter, because mail servers may change it.
func (s *Store) MailTask(ctx context.Context, w workers.Worker, taskID string) (t Task, secret bool, err error) {
	const query = `SELECT ` + taskColumns + ` FROM tasks WHERE id = ? AND organization_num = ` + db.OrganizationNum +
		` AND worker_num = ?`
	t, err = db.One(ctx, s.db, scanTask, query, taskID, w.OrganizationID, w.Num)
	if lower := strings.ToLower(taskID); errors.Is(err, sql.ErrNoRows) && lower != taskID {
		t, err = db.One(ctx, s.db, scanTask, query, lower, w.OrganizationID, w.Num)
	}
	return t, db.IsServerID("tsk", t.ID), db.NoRecord(err, "task")
}

// MailThread returns the first task of a worker to which one of the message ids belongs and that takes
// the mail. The known ids are those of replies, by their part before the @, and those of mails that
// started a turn. takes gets each such task. secret reports whether the id is that of a reply, which only
// the recipients know. If there is no such task, MailThread returns the zero Task.
//
// Anybody may write the id of another person's mail into their own. So the id of a mail counts only if
// proven is at least as strong as atLeast: otherwise a stranger could draw a member's thread into the
// stranger's task.
func (s *Store) MailThread(ctx context.Context, w workers.Worker, messageIDs []string, atLeast Proof,
	takes func(t Task, secret bool) (bool, error)) (Task, error) {
	for _, id := range messageIDs {
		nums, secret, err := s.tasksOfID(ctx, w, id, atLeast)
		if err != nil {
			return Task{}, err
		}
		for _, num := range nums {
			t, err := db.One(ctx, s.db, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num = ? AND worker_num = ?`,
				num, w.Num)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return Task{}, err
			}
			if ok, err := takes(t, secret); err != nil || ok {
				return t, err
			}
		}
	}
	return Task{}, nil
}

// maxSameID is how many mails with one Message-ID MailThread considers.
const maxSameID = 20

// tasksOfID returns the nums of the tasks to which a message id may belong. secret reports whether it is
// the id of a reply.
func (s *Store) tasksOfID(ctx context.Context, w workers.Worker, id string, atLeast Proof) (
	nums []int64, secret bool, err error) {
	local, _, _ := strings.Cut(id, "@")
	if local = strings.ToLower(local); db.IsServerID("msg", local) {
		nums, err = db.All(ctx, s.db, db.ScanInt, `SELECT t.task_num
			FROM outbound_emails e CROSS JOIN turns t ON t.num = e.turn_num WHERE e.id = ?`, local)
		if err != nil || len(nums) > 0 {
			return nums, true, err
		}
	}
	nums, err = db.All(ctx, s.db, db.ScanInt, `SELECT t.task_num
		FROM inbound_emails e INDEXED BY inbound_emails_by_message_id CROSS JOIN turns t ON t.num = e.turn_num
		WHERE e.worker_id = ? AND e.message_id = ? AND e.turn_num IS NOT NULL AND e.proven >= ?
		ORDER BY e.proven DESC, e.num DESC LIMIT ?`, w.ID, id, atLeast, maxSameID)
	return nums, false, err
}

// InThread reports whether an address has sent a mail of the task, or gets its answers.
func (s *Store) InThread(ctx context.Context, task Task, address string) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool, `SELECT EXISTS (SELECT 1
		FROM turns t CROSS JOIN inbound_emails e ON e.turn_num = t.num
		WHERE t.task_num = ?1 AND (e.from_address = ?2 OR e.reply_to = ?2))`, task.num, address)
}

// HasWritten reports whether a mail of the task is proven to be from an address.
func (s *Store) HasWritten(ctx context.Context, task Task, address string) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool, `SELECT EXISTS (SELECT 1
		FROM turns t CROSS JOIN inbound_emails e ON e.turn_num = t.num
		WHERE t.task_num = ? AND e.from_address = ? AND e.proven > 0)`, task.num, address)
}

// Answerable reports whether anybody can answer a question of a turn. Members answer on the
// turn's page. A stranger answers by mail, so the turn needs an address that takes mail.
func (s *Store) Answerable(ctx context.Context, t Turn) (bool, error) {
	if !t.Stranger() {
		return true, nil
	}
	return db.One(ctx, s.db, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM inbound_emails
		WHERE turn_num = ? AND reply_to <> '')`, t.Num)
}

// Sender returns the From address of the mail that started a turn, or "" if no mail did. Anybody
// can write any address there. Later mails of the turn have answered its questions.
func (s *Store) Sender(ctx context.Context, t Turn) (string, error) {
	if t.TriggeredBy != people.TriggerEmail {
		return "", nil
	}
	return db.One(ctx, s.db, db.ScanString, `SELECT COALESCE((SELECT from_address FROM inbound_emails
		WHERE turn_num = ? ORDER BY num LIMIT 1), '')`, t.Num)
}

// ReceiveEmails stores a mail for each of its workers, with the turns that it starts, in one
// transaction. A worker that has the mail already gets no new turn. made reports which mails are
// new. As in CreateTurn, a runner with a free slot has claimed such a turn already: see UseSlots.
func (s *Store) ReceiveEmails(ctx context.Context, emails []NewEmail, raw []byte,
	limits MailLimits) (list []Email, made []bool, err error) {
	if err := s.Gate.RoomIn(ctx); err != nil {
		return nil, nil, err
	}
	for i, n := range emails {
		disk := s.DiskOf(n.Worker.OrganizationID)
		if err := disk.reserve(int64(len(raw))); err != nil {
			return nil, nil, err
		}
		defer func() { disk.settle(int64(len(raw)), err == nil && i < len(made) && made[i]) }()
	}
	// A large source is synced before the write, so that the writer never waits for it.
	src, err := s.Effects.keepSource(ctx, raw)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range emails {
		if n.Turn != nil {
			n.Turn.workspace, n.Turn.atOnce = s.look(ctx, *n.Turn), true
		}
	}
	err = s.db.Write(ctx, func(tx db.Tx) (err error) {
		list, made, err = s.receiveEach(ctx, tx, emails, src, limits)
		return err
	})
	return list, made, err
}

// receiveEach stores a mail for each of its workers, and counts the new mails after the commit.
func (s *Store) receiveEach(ctx context.Context, tx db.Tx, emails []NewEmail, src source,
	limits MailLimits) (list []Email, made []bool, err error) {
	for _, n := range emails {
		e, fresh, err := s.receiveEmail(ctx, tx, n, src, limits)
		if err != nil {
			return nil, nil, err
		}
		if fresh {
			tx.OnCommit(func() { s.counters.receive(e.Status) })
		}
		list, made = append(list, e), append(made, fresh)
	}
	return list, made, nil
}

// receiveEmail stores a mail for one worker. If the worker has the same mail already, receiveEmail
// returns that mail, and stores only that a copy came.
func (s *Store) receiveEmail(ctx context.Context, tx db.Tx, n NewEmail, src source,
	limits MailLimits) (Email, bool, error) {
	known, found, err := sameMail(ctx, tx, n)
	if err != nil {
		return Email{}, false, err
	}
	if found && s.isCopyOf(n, known) {
		c, err := s.receiveCopy(tx, n, known)
		known.CopyID, known.Dropped = c.ID, c.Dropped
		return known, false, err
	}
	if found {
		if err := makeWay(tx, n, known); err != nil {
			return Email{}, false, err
		}
	}
	e := s.newInbound(n, src)
	var turnNum int64 // 0 becomes NULL
	answers := false
	// An answer is handled before the limits against loops, because a person may always answer a
	// question.
	if n.Answer != nil {
		a, ok, err := s.answerByMail(ctx, tx, n)
		if err != nil {
			return Email{}, false, err
		}
		if answers = ok; ok {
			turnNum, e.TurnID, e.TaskID, e.Status, e.Answered = a.turnNum, a.TurnID, a.TaskID, EmailAccepted, &a
		}
	}
	if n.Turn != nil && !answers {
		if err := s.checkMailLimits(ctx, tx, n, limits); err != nil {
			return Email{}, false, err
		}
		a, err := s.acceptTurn(ctx, tx, *n.Turn)
		if err != nil {
			return Email{}, false, err
		}
		t := a.Turn
		turnNum, e.TurnID, e.TaskID, e.Status = t.Num, t.ID, t.TaskID, EmailAccepted
		e.Claimed = t.Status == Running
	}
	s.db.Notify(tx, e.OrgID, db.ChangedOutbox)
	if n.NoticeTo != "" {
		if err := s.Effects.queueNotice(ctx, tx, e, n.NoticeTo); err != nil {
			return Email{}, false, err
		}
	}
	if e.num, err = insertInbound(tx, e, cmp.Or(n.Content, e.ID), turnNum, src); err == nil && turnNum == 0 {
		e.Dropped, err = dropOldMail(tx, e)
	}
	return e, err == nil, err
}

func (s *Store) newInbound(n NewEmail, src source) Email {
	return Email{ID: db.NewID("msg", s.db.Now()), Direction: Inbound, OrgID: n.Worker.OrganizationID,
		WorkerID: n.Worker.ID,
		proven:   n.Proven, network: n.Network,
		Status: n.Status, Reason: n.Reason, MessageID: n.MessageID, MailFrom: n.MailFrom, From: n.From, To: n.To,
		ReplyTo: n.ReplyTo, Subject: n.Subject, Verdicts: n.Verdicts, RemoteAddr: n.RemoteAddr, Size: src.size,
		CreatedAt: db.FromMillis(s.db.Millis())}
}

// insertInbound stores a mail. content is that of NewEmail, "" for a copy. turnNum is 0 if the mail starts
// no turn.
func insertInbound(tx db.Tx, e Email, content string, turnNum int64, src source) (num int64, err error) {
	return tx.Insert(`INSERT INTO inbound_emails (id, organization_id, worker_id, message_id, content, proven, status,
			reason, turn_num, mail_from, from_address, recipient, reply_to, subject, verdicts, remote_addr, network,
			size, created_at, source_sha256, source)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.OrgID, db.Nullable(e.WorkerID), e.MessageID, db.Nullable(content), e.proven, e.Status,
		e.Reason, db.Nullable(turnNum), e.MailFrom, e.From, e.To, e.ReplyTo, e.Subject, string(e.Verdicts),
		e.RemoteAddr, db.Nullable(e.network), e.Size, e.CreatedAt.UnixMilli(), src.sha256, src.bytes)
}

// MailLimits stop mail loops: two programs that answer each other would start a turn with each
// answer. For a mail above a limit, the store returns Limited, and the sender's server tries again
// later.
type MailLimits struct {
	PerThread int // turns by mail of one task in an hour; 0: no limit
	PerSender int // turns by mail of one sender at one worker in an hour; 0: no limit
}

// checkMailLimits returns a Limited error for a mail above a limit. Verified mail of members is
// counted separately, so that forged mail cannot use up a member's limit.
func (s *Store) checkMailLimits(ctx context.Context, tx db.Tx, n NewEmail, limits MailLimits) error {
	if n.Turn.TaskID != "" {
		err := s.checkHourlyLimit(ctx, tx, limits.PerThread, "in this thread", `
			SELECT created_at FROM turns WHERE triggered_by = 'email'
				AND task_num = (SELECT num FROM tasks WHERE id = ? AND organization_num = `+db.OrganizationNum+`)
			ORDER BY seq DESC LIMIT 1 OFFSET ?`, n.Turn.TaskID, n.Worker.OrganizationID)
		if err != nil {
			return err
		}
	}
	since := s.db.Now().Add(-time.Hour).UnixMilli()
	return s.checkHourlyLimit(ctx, tx, limits.PerSender, "of this sender", `
		SELECT e.created_at FROM inbound_emails e CROSS JOIN turns t ON t.num = e.turn_num
		WHERE e.worker_id = ? AND e.from_address = ? AND e.status = 'accepted' AND e.created_at > ?
			AND (t.created_by_user_num IS NULL) = ?
		ORDER BY e.created_at DESC LIMIT 1 OFFSET ?`, n.Worker.ID, n.From, since, n.Turn.Caller.UserID == "")
}

// checkHourlyLimit returns a Limited error if limit mails were received within the last hour. query
// selects the time of the mail that came limit mails ago. A limit of 0 or less means none.
func (s *Store) checkHourlyLimit(ctx context.Context, tx db.Tx, limit int, whose, query string, args ...any) error {
	if limit <= 0 {
		return nil
	}
	var at time.Time
	if _, err := db.One(ctx, tx, db.Into(db.AsTime(&at)), query, append(args, limit-1)...); err != nil {
		return db.NoRow(err, nil)
	}
	wait := at.Add(time.Hour).Sub(s.db.Now())
	if wait <= 0 {
		return nil
	}
	e := db.Errorf(db.Limited, "too many mails %s: at most %d within an hour start work, so try again later", whose, limit)
	e.RetryAfter = wait
	return e
}

// ReceivePostmasterEmail stores a mail for the person who runs the server. Members of the
// first organization who manage mail see it. The fields Worker, Turn, Status and Reason
// of n are ignored.
func (s *Store) ReceivePostmasterEmail(ctx context.Context, n NewEmail, raw []byte) (e Email, err error) {
	if err := s.Gate.RoomIn(ctx); err != nil {
		return Email{}, err
	}
	src, err := s.Effects.keepSource(ctx, raw)
	if err != nil {
		return Email{}, err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		n.Worker, n.Status, n.Reason = workers.Worker{}, EmailIgnored, "for the postmaster"
		n.Worker.OrganizationID, err = db.One(ctx, tx, db.ScanString, people.FirstOrganization)
		if err != nil {
			return fmt.Errorf("find the first organization: %w", err)
		}
		e = s.newInbound(n, src)
		s.db.Notify(tx, e.OrgID, db.ChangedOutbox)
		if e.num, err = insertInbound(tx, e, e.ID, 0, src); err != nil {
			return err
		}
		e.Dropped, err = dropOldMail(tx, e)
		return err
	})
	return e, err
}

// ReleaseEmail starts the turn of a mail that was held or ignored. It returns Forbidden for a
// Member.
func (s *Store) ReleaseEmail(ctx context.Context, c people.Caller, id string, turn NewTurn) (e Email, err error) {
	turn.workspace = s.look(ctx, turn)
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := people.RoleNow(ctx, tx, &c); err != nil {
			return err
		}
		if e, err = releasable(ctx, tx, c, id); err != nil {
			return err
		}
		// The limits against loops do not apply, because a person has released this mail.
		a, err := s.acceptTurn(ctx, tx, turn)
		if db.IsKind(err, db.Forbidden) { // the author, not the caller, may not see the worker
			return db.Errorf(db.Conflict, "the worker is private, and the mail's author is not invited to it: "+
				"invite them, or let everybody see the worker")
		}
		if err != nil {
			return err
		}
		t := a.Turn
		// The task is one of the member who wrote the mail, so the mail's id finds it for members. The release
		// proves nobody: anybody may have written the mail of a stranger, and may write its id.
		if turn.Caller.UserID != "" {
			e.proven = MemberProven
		}
		_, err = tx.Exec(`UPDATE inbound_emails SET status = 'accepted', reason = '', turn_num = ?, proven = ?
			WHERE num = ?`, t.Num, e.proven, e.num)
		if err != nil {
			return err
		}
		s.db.Notify(tx, e.OrgID, db.ChangedOutbox)
		e.Status, e.Reason, e.TurnID, e.TaskID = EmailAccepted, "", t.ID, t.TaskID
		return s.People.Audit(tx, c, "email.release", e.ID, map[string]any{"from": e.From, "worker": e.WorkerID})
	})
	return e, err
}

// Releasable returns a mail that the caller may release.
func (s *Store) Releasable(ctx context.Context, c people.Caller, id string) (Email, error) {
	return releasable(ctx, s.db, c, id)
}

func releasable(ctx context.Context, q db.Querier, c people.Caller, id string) (Email, error) {
	e, err := visibleEmail(ctx, q, c, id)
	switch {
	case err != nil:
		return e, err
	case !c.Role.May(people.ManageMail):
		return e, db.Errorf(db.Forbidden, "only an Owner or Admin may release mail")
	case e.WorkerID == "":
		return e, db.Errorf(db.Conflict, "the mail is for the postmaster and starts no work")
	case e.isCopy:
		return e, db.Errorf(db.Conflict, "the mail is a copy and starts no work: %s", e.Reason)
	case e.Direction != Inbound || e.Status == EmailAccepted:
		return e, db.Errorf(db.Conflict, "the mail is not held: its status is %s", e.Status)
	}
	return e, nil
}
