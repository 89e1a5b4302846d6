package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// An EmailStatus says what became of a mail.
type EmailStatus string

// The states of mail that came in, which change only when an Admin releases one,
// and of mail that goes out: queued -> sent, kept or failed; sent -> bounced.
const (
	EmailAccepted EmailStatus = "accepted" // it made a turn
	EmailIgnored  EmailStatus = "ignored"  // no person wrote it, or it says nothing
	EmailHeld     EmailStatus = "held"     // its sender may not mail the worker: an Admin decides

	EmailQueued  EmailStatus = "queued"
	EmailKept    EmailStatus = "kept" // there is no relay: it stays in the outbox
	EmailSent    EmailStatus = "sent"
	EmailFailed  EmailStatus = "failed"  // the relay refused it, or could not be reached for days
	EmailBounced EmailStatus = "bounced" // sent, and came back
)

// The directions of mail.
const (
	Inbound  = "inbound"
	Outbound = "outbound"
)

// An Email is a mail that came in or goes out.
type Email struct {
	num         int64
	ID          string
	Direction   string // Inbound or Outbound
	OrgID       string
	WorkerID    string // '' for the postmaster
	TaskID      string // '' without a turn
	TurnID      string // it made, or that it answers; '' for none
	Status      EmailStatus
	Reason      string          // why ignored, held, failed, bounced or tried again
	MessageID   string          // Inbound: without angle brackets; Outbound: the part before the @
	MailFrom    string          // Inbound: the envelope's sender; '' for bounces
	From        string          // Inbound: of the From header
	To          string          // Inbound: the worker's address; Outbound: the recipient
	ReplyTo     string          // Inbound: where the answer goes
	Subject     string          // Outbound: '' until it is composed
	Verdicts    json.RawMessage // Inbound: what SPF, DKIM and DMARC say
	RemoteAddr  string          // Inbound
	Size        int64           // of the source in bytes; Outbound: 0 until it is composed
	Attempts    int64           // Outbound: to send it
	CreatedAt   time.Time
	NextAttempt *time.Time // Outbound: nil unless queued
	SentAt      *time.Time // Outbound

	sourceSHA256 string // '' for a small source
}

const (
	inboundColumns = `e.num, e.id, 'inbound', e.organization_id, coalesce(e.worker_id, ''),
		(SELECT k.id FROM turns t JOIN tasks k ON k.num = t.task_num WHERE t.num = e.turn_num), (SELECT t.id FROM turns t WHERE t.num = e.turn_num),
		e.status, e.reason, e.message_id, e.mail_from, e.from_address, e.recipient, e.reply_to, e.subject, e.verdicts, e.remote_addr, e.size,
		0, e.created_at, NULL, NULL, e.source_sha256`
	outboundColumns = `e.num, e.id, 'outbound', e.organization_id, e.worker_id,
		(SELECT k.id FROM turns t JOIN tasks k ON k.num = t.task_num WHERE t.num = e.turn_num), (SELECT t.id FROM turns t WHERE t.num = e.turn_num),
		e.status, e.error_message, e.id, '', '', e.recipient, '', e.subject, NULL, '', e.size,
		e.attempts, e.created_at, e.next_attempt_at, e.sent_at, e.source_sha256`
)

func scanEmail(row scanner) (e Email, err error) {
	var task, turn, verdicts, sha sql.NullString
	var created int64
	var next, sent sql.NullInt64
	err = row.Scan(&e.num, &e.ID, &e.Direction, &e.OrgID, &e.WorkerID, &task, &turn, &e.Status, &e.Reason, &e.MessageID, &e.MailFrom, &e.From,
		&e.To, &e.ReplyTo, &e.Subject, &verdicts, &e.RemoteAddr, &e.Size, &e.Attempts, &created, &next, &sent, &sha)
	e.TaskID, e.TurnID, e.sourceSHA256 = task.String, turn.String, sha.String
	if verdicts.Valid {
		e.Verdicts = json.RawMessage(verdicts.String)
	}
	e.CreatedAt, e.NextAttempt, e.SentAt = fromMillis(created), fromNull(next), fromNull(sent)
	return e, err
}

// maxInlineSource is how large a mail's source may be, in bytes, to be kept in its
// row: writing it then costs no sync of its own.
const maxInlineSource = 64 << 10

// A source is a mail's source on its way into a row.
type source struct {
	size   int64
	sha256 any // NULL for a small one
	bytes  any // NULL for a large one
}

// keepSource keeps a large source as a file, before the transaction of its row.
func (s *Store) keepSource(raw []byte) (source, error) {
	src := source{size: int64(len(raw))}
	if len(raw) <= maxInlineSource {
		if raw == nil {
			raw = []byte{}
		}
		src.bytes = raw
		return src, nil
	}
	b, err := s.PutBlob(bytes.NewReader(raw), src.size)
	src.sha256 = b.SHA256
	return src, err
}

// EmailSource gives the source of a mail, nil where it is not composed yet or
// forgotten.
func (s *Store) EmailSource(ctx context.Context, e Email) ([]byte, error) {
	if e.sourceSHA256 != "" {
		f, err := s.OpenBlob(e.sourceSHA256)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	}
	query := `SELECT source FROM inbound_emails WHERE num = ?`
	if e.Direction == Outbound {
		query = `SELECT source FROM outbound_emails WHERE num = ?`
	}
	return one(ctx, s, func(row scanner) (b []byte, err error) { err = row.Scan(&b); return b, err }, query, e.num)
}

// Mailbox gives the worker of that id for the delivery of mail, whoever sends it:
// who may see it, and no more of it than that. A deleted one is not found.
func (s *Store) Mailbox(ctx context.Context, workerID string) (Worker, error) {
	w, err := one(ctx, s, scanRunnable, selectRunnable, workerID)
	if err == nil && w.DeletedAt != nil {
		err = sql.ErrNoRows
	}
	return w, notFound(err, "worker")
}

// MailCaller gives the user with that address as a caller in an organization, and
// whether there is one. Without one it is a stranger, who sees public workers.
func (s *Store) MailCaller(ctx context.Context, organizationID, address string) (c Caller, member bool, err error) {
	c = Caller{OrganizationID: organizationID, Trigger: TriggerEmail}
	if address == "" {
		return c, false, nil
	}
	_, err = one(ctx, s, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&c.UserID, &c.Role) },
		`SELECT u.id, m.role FROM users u JOIN memberships m ON m.user_id = u.id WHERE u.email = ? AND m.organization_id = ?`, address, organizationID)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}
	return c, err == nil, err
}

// MailTask gives the task of a worker that the address worker+task names, and
// whether its id is one that nobody can guess. Mail servers may have changed the
// case of letters.
func (s *Store) MailTask(ctx context.Context, w Worker, taskID string) (t Task, secret bool, err error) {
	const query = `SELECT ` + taskColumns + ` FROM tasks WHERE id = ? AND organization_id = ? AND worker_id = ?`
	t, err = one(ctx, s, scanTask, query, taskID, w.OrganizationID, w.ID)
	if lower := strings.ToLower(taskID); errors.Is(err, sql.ErrNoRows) && lower != taskID {
		t, err = one(ctx, s, scanTask, query, lower, w.OrganizationID, w.ID)
	}
	return t, isServerID("tsk", t.ID), notFound(err, "task")
}

// MailThread gives the task of a worker that the first of the ids belongs to which
// are known: those of replies, by their part before the @, and of mail that made
// turns. secret says that it is a reply's, which only its readers know.
func (s *Store) MailThread(ctx context.Context, workerID string, messageIDs []string) (t Task, secret bool, err error) {
	for _, id := range messageIDs {
		local, _, _ := strings.Cut(id, "@")
		if local = strings.ToLower(local); isServerID("msg", local) {
			t, err = one(ctx, s, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE worker_id = ? AND num =
				(SELECT t.task_num FROM outbound_emails e JOIN turns t ON t.num = e.turn_num WHERE e.id = ?)`, workerID, local)
			if !errors.Is(err, sql.ErrNoRows) {
				return t, true, err
			}
		}
		t, err = one(ctx, s, scanTask, `SELECT `+taskColumns+` FROM tasks WHERE num =
			(SELECT t.task_num FROM inbound_emails e JOIN turns t ON t.num = e.turn_num WHERE e.worker_id = ? AND e.message_id = ?)`, workerID, id)
		if !errors.Is(err, sql.ErrNoRows) {
			return t, false, err
		}
	}
	return Task{}, false, nil
}

// InThread reports whether an address has part in the mails of a task.
func (s *Store) InThread(ctx context.Context, taskNum int64, address string) (bool, error) {
	n, err := one(ctx, s, scanInt, `SELECT EXISTS (SELECT 1 FROM turns t CROSS JOIN inbound_emails e ON e.turn_num = t.num
		WHERE t.task_num = ?1 AND (e.from_address = ?2 OR e.reply_to = ?2))`, taskNum, address)
	return n == 1, err
}

// EmailKnown reports whether a worker has had a mail of that id.
func (s *Store) EmailKnown(ctx context.Context, workerID, messageID string) (bool, error) {
	n, err := one(ctx, s, scanInt, `SELECT EXISTS (SELECT 1 FROM inbound_emails WHERE worker_id = ? AND message_id = ?)`, workerID, messageID)
	return n == 1, err
}

// NewEmail is a mail for one worker to be taken in.
type NewEmail struct {
	Worker     Worker
	Turn       *NewTurn    // the work it starts; nil to keep it as it is
	Status     EmailStatus // without Turn: EmailIgnored or EmailHeld
	Reason     string
	MessageID  string
	MailFrom   string
	From       string
	To         string
	ReplyTo    string
	Subject    string
	Verdicts   json.RawMessage
	RemoteAddr string
}

// MailLimits guard against loops: between programs that answer each other, each
// answer is mail that starts work. Beyond them a mail is kept as ignored.
type MailLimits struct {
	PerThread int // turns by mail of one task in an hour; 0: no limit
	PerSender int // turns by mail of one sender to one worker in an hour; 0: no limit
}

// ReceiveEmails takes a mail in for each of its workers, with the turns it starts:
// all or none, and durable once it returns. What a worker has had already is given
// as it is, and its new turn is not made: made tells which were.
func (s *Store) ReceiveEmails(ctx context.Context, emails []NewEmail, raw []byte, limits MailLimits) (list []Email, made []bool, err error) {
	src, err := s.keepSource(raw)
	if err != nil {
		return nil, nil, err
	}
	err = s.write(ctx, func(tx *Tx) error {
		list, made = list[:0], made[:0]
		for _, n := range emails {
			e, fresh, err := s.receiveEmail(ctx, tx, n, src, limits)
			if err != nil {
				return err
			}
			list, made = append(list, e), append(made, fresh)
			if fresh {
				tx.ifCommitted(func() { s.counters.EmailsReceived.Add(1) })
			}
		}
		return nil
	})
	return list, made, err
}

func (s *Store) receiveEmail(ctx context.Context, tx *Tx, n NewEmail, src source, limits MailLimits) (Email, bool, error) {
	e, err := one(ctx, tx, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e WHERE worker_id = ? AND message_id = ?`, n.Worker.ID, n.MessageID)
	if !errors.Is(err, sql.ErrNoRows) {
		return e, false, err
	}
	if err := s.guardLoops(ctx, tx, &n, limits); err != nil {
		return Email{}, false, err
	}
	e = s.newInbound(n, src)
	var turnNum int64
	if n.Turn != nil {
		t, err := s.acceptTurn(ctx, tx, *n.Turn)
		if err != nil {
			return Email{}, false, err
		}
		turnNum, e.TurnID, e.TaskID, e.Status = t.Num, t.ID, t.TaskID, EmailAccepted
	}
	e.num, err = insertInbound(tx, e, turnNum, src)
	return e, err == nil, err
}

func (s *Store) newInbound(n NewEmail, src source) Email {
	return Email{ID: NewID("msg", s.now()), Direction: Inbound, OrgID: n.Worker.OrganizationID, WorkerID: n.Worker.ID, Status: n.Status,
		Reason: n.Reason, MessageID: n.MessageID, MailFrom: n.MailFrom, From: n.From, To: n.To, ReplyTo: n.ReplyTo, Subject: n.Subject,
		Verdicts: n.Verdicts, RemoteAddr: n.RemoteAddr, Size: src.size, CreatedAt: fromMillis(s.millis())}
}

func insertInbound(tx *Tx, e Email, turnNum int64, src source) (num int64, err error) {
	return tx.Insert(`INSERT INTO inbound_emails (id, organization_id, worker_id, message_id, status, reason, turn_num, mail_from,
			from_address, recipient, reply_to, subject, verdicts, remote_addr, size, created_at, source_sha256, source)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.OrgID, nullable(e.WorkerID), e.MessageID, e.Status, e.Reason, nullable(turnNum), e.MailFrom,
		e.From, e.To, e.ReplyTo, e.Subject, string(e.Verdicts), e.RemoteAddr, e.Size, e.CreatedAt.UnixMilli(), src.sha256, src.bytes)
}

// guardLoops takes the turn out of a mail that comes too soon after too many.
func (s *Store) guardLoops(ctx context.Context, tx *Tx, n *NewEmail, limits MailLimits) error {
	if n.Turn == nil {
		return nil
	}
	since := s.now().Add(-time.Hour).UnixMilli()
	if limits.PerThread > 0 && n.Turn.TaskID != "" {
		count, err := one(ctx, tx, scanInt, `SELECT count(*) FROM turns WHERE triggered_by = 'email' AND created_at > ? AND task_num =
			(SELECT num FROM tasks WHERE id = ? AND organization_id = ?)`, since, n.Turn.TaskID, n.Worker.OrganizationID)
		if err != nil {
			return err
		}
		if count >= int64(limits.PerThread) {
			n.Turn, n.Status, n.Reason = nil, EmailIgnored, fmt.Sprintf("too many mails in this thread: %d within an hour", count)
			return nil
		}
	}
	if limits.PerSender > 0 {
		count, err := one(ctx, tx, scanInt, `SELECT count(*) FROM (SELECT 1 FROM inbound_emails WHERE worker_id = ? AND from_address = ?
			AND status = 'accepted' AND created_at > ? LIMIT ?)`, n.Worker.ID, n.From, since, limits.PerSender)
		if err != nil {
			return err
		}
		if count >= int64(limits.PerSender) {
			n.Turn, n.Status, n.Reason = nil, EmailIgnored, fmt.Sprintf("too many mails of this sender: %d within an hour", count)
		}
	}
	return nil
}

// ReleaseEmail has a mail start work that was held or ignored; only an Owner or
// Admin may.
func (s *Store) ReleaseEmail(ctx context.Context, c Caller, id string, turn NewTurn) (e Email, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if e, err = s.releasable(ctx, tx, c, id); err != nil {
			return err
		}
		t, err := s.acceptTurn(ctx, tx, turn)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE inbound_emails SET status = 'accepted', reason = '', turn_num = ? WHERE num = ?`, t.Num, e.num)
		if err != nil {
			return err
		}
		e.Status, e.Reason, e.TurnID, e.TaskID = EmailAccepted, "", t.ID, t.TaskID
		return s.audit(tx, c, "email.release", e.ID, map[string]any{"from": e.From, "worker": e.WorkerID})
	})
	return e, err
}

// Releasable gives a mail that the caller may release.
func (s *Store) Releasable(ctx context.Context, c Caller, id string) (Email, error) {
	return s.releasable(ctx, s, c, id)
}

func (s *Store) releasable(ctx context.Context, q querier, c Caller, id string) (Email, error) {
	e, err := s.visibleEmail(ctx, q, c, id)
	switch {
	case err != nil:
		return e, err
	case !c.Role.manages():
		return e, Errorf(Forbidden, "only an Owner or Admin may release mail")
	case e.WorkerID == "":
		return e, Errorf(Conflict, "the mail is for the postmaster and starts no work")
	case e.Direction != Inbound || e.Status == EmailAccepted:
		return e, Errorf(Conflict, "the mail is not held: its status is %s", e.Status)
	}
	return e, nil
}

// Email gives a mail of a worker that the caller may see.
func (s *Store) Email(ctx context.Context, c Caller, id string) (Email, error) {
	return s.visibleEmail(ctx, s, c, id)
}

func (s *Store) visibleEmail(ctx context.Context, q querier, c Caller, id string) (Email, error) {
	e, err := one(ctx, q, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e WHERE id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		e, err = one(ctx, q, scanEmail, `SELECT `+outboundColumns+` FROM outbound_emails e WHERE id = ?`, id)
	}
	if err != nil {
		return Email{}, notFound(err, "email")
	}
	if e.WorkerID != "" {
		_, err = s.seenWorker(ctx, q, c, e.WorkerID)
	} else if err = c.Allow(ManageMail); err == nil && e.OrgID != c.OrganizationID {
		err = Errorf(Forbidden, "this key has no access to the email")
	}
	if err != nil {
		return Email{}, err
	}
	return e, nil
}
