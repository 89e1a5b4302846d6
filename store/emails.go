package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// An EmailStatus is the state of a mail.
type EmailStatus string

// The states of received mail change only when an Admin releases one. The states of sent
// mail are queued -> sent, kept or failed; sent -> bounced.
const (
	EmailAccepted EmailStatus = "accepted" // has started a turn
	EmailIgnored  EmailStatus = "ignored"  // not written by a person, or empty
	EmailHeld     EmailStatus = "held"     // its sender may not mail the worker; an Admin can release it

	EmailQueued  EmailStatus = "queued"
	EmailKept    EmailStatus = "kept" // stays in the outbox, because there is no relay
	EmailSent    EmailStatus = "sent"
	EmailFailed  EmailStatus = "failed"  // refused by the relay, or the relay could not be reached for days
	EmailBounced EmailStatus = "bounced" // sent, and returned to sender
)

// The directions of mail.
const (
	Inbound  = "inbound"
	Outbound = "outbound"
)

// An Email is a mail that was received, or is in the outbox.
type Email struct {
	num         int64
	ID          string
	Direction   string // Inbound or Outbound
	OrgID       string
	WorkerID    string // '' for a mail to the postmaster, and for an alert
	TaskID      string // '' without a turn
	TurnID      string // the turn that it started or answers; '' for none
	Status      EmailStatus
	Reason      string          // why ignored, held, failed, bounced or tried again
	MessageID   string          // Inbound: without angle brackets; Outbound: the part before the @
	MailFrom    string          // Inbound: the envelope's sender; '' for bounces
	From        string          // Inbound: of the From header
	To          string          // Inbound: the worker's address; Outbound: the recipient
	ReplyTo     string          // Inbound: where the answer goes
	Subject     string          // Outbound: '' until it is composed
	Verdicts    json.RawMessage // Inbound: the results of SPF, DKIM and DMARC
	RemoteAddr  string          // Inbound
	Size        int64           // of the source in bytes; Outbound: 0 until it is composed
	Attempts    int64           // Outbound: number of attempts to send it
	CreatedAt   time.Time
	NextAttempt *time.Time // Outbound: nil unless queued
	SentAt      *time.Time // Outbound

	Dropped  int64     // Inbound: older mails that this delivery displaced, because it starts no work
	CopyID   string    // Inbound: the list shows this delivery, a copy of the mail, under this id; '' if it was new
	Answered *Approval // Inbound: the question that this delivery answered; nil otherwise
	Claimed  bool      // Inbound: this delivery started its turn, and a runner has claimed it already

	sourceSHA256 string // '' for a small source
	proven       Proof  // Inbound
	network      string // Inbound: of NewEmail; only a new mail has it
	isCopy       bool   // Inbound: of another mail, so it can start no work
}

const (
	// emailTurn selects the ids of the task and the turn to which a mail belongs.
	emailTurn = `(SELECT k.id FROM turns t JOIN tasks k ON k.num = t.task_num WHERE t.num = e.turn_num),
		(SELECT t.id FROM turns t WHERE t.num = e.turn_num)`
	inboundColumns = `e.num, e.id, 'inbound', e.organization_id, coalesce(e.worker_id, ''),
		` + emailTurn + `,
		e.status, e.reason, e.message_id, e.mail_from, e.from_address, e.recipient, e.reply_to, e.subject, e.verdicts,
		e.remote_addr, e.size, 0, e.created_at, NULL, NULL, e.source_sha256, e.proven, e.content IS NULL`
	outboundColumns = `e.num, e.id, 'outbound', e.organization_id, coalesce(e.worker_id, ''),
		` + emailTurn + `,
		e.status, e.error_message, e.id, '', '', e.recipient, '', coalesce(e.subject, ''), NULL, '', e.size,
		e.attempts, e.created_at, e.next_attempt_at, e.sent_at, e.source_sha256, 0, e.num IS NULL`
)

// columns returns the destinations of inboundColumns and of outboundColumns.
func (e *Email) columns() []any {
	return []any{&e.num, &e.ID, &e.Direction, &e.OrgID, &e.WorkerID, db.AsText(&e.TaskID), db.AsText(&e.TurnID), &e.Status,
		&e.Reason, &e.MessageID, &e.MailFrom, &e.From, &e.To, &e.ReplyTo, &e.Subject, db.AsJSON(&e.Verdicts),
		&e.RemoteAddr, &e.Size, &e.Attempts, db.AsTime(&e.CreatedAt), db.AsTimeOrNil(&e.NextAttempt),
		db.AsTimeOrNil(&e.SentAt),
		db.AsText(&e.sourceSHA256), &e.proven, &e.isCopy}
}

func scanEmail(row db.Scanner) (e Email, err error) {
	err = row.Scan(e.columns()...)
	return e, err
}

// maxInlineSource is how large the source of a mail may be, in bytes, to be stored in its row. A
// file would need a sync of its own.
const maxInlineSource = 64 << 10

// A source is the text of a mail as it is stored: in the row, or in a file that the row
// names.
type source struct {
	size   int64
	sha256 any // NULL for a small one
	bytes  any // NULL for a large one
}

// keepSource writes a large source to a file, before the transaction of its row.
func (s *Effects) keepSource(ctx context.Context, raw []byte) (source, error) {
	src := source{size: int64(len(raw))}
	if len(raw) <= maxInlineSource {
		if raw == nil { // NULL would mean that the source was pruned
			raw = []byte{}
		}
		src.bytes = raw
		return src, nil
	}
	b, err := s.putBlob(ctx, bytes.NewReader(raw), src.size)
	src.sha256 = b.SHA256
	return src, err
}

// EmailSource returns the source of a mail, or nil if it is not composed yet or was
// pruned.
func (s *Effects) EmailSource(ctx context.Context, e Email) ([]byte, error) {
	if e.sourceSHA256 != "" {
		f, err := s.openBlob(ctx, e.sourceSHA256)
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
	return db.One(ctx, s.db, func(row db.Scanner) (b []byte, err error) { err = row.Scan(&b); return b, err }, query,
		e.num)
}

// EmailBeginning returns the first bytes of the source of a mail, at most most. It returns none if the source is
// not composed yet or was pruned.
func (s *Effects) EmailBeginning(ctx context.Context, e Email, most int64) ([]byte, error) {
	if e.sourceSHA256 != "" {
		f, err := s.openBlob(ctx, e.sourceSHA256)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, most))
	}
	raw, err := s.EmailSource(ctx, e)
	return raw[:min(int64(len(raw)), most)], err
}

// TaskEmails returns mails that a task has received from its authors and sent to them: the newest of each
// direction, at most most.
func (s *Effects) TaskEmails(ctx context.Context, task Task, most int) ([]Email, error) {
	list, err := db.All(ctx, s.db, scanEmail, `SELECT `+inboundColumns+`
		FROM turns t CROSS JOIN inbound_emails e ON e.turn_num = t.num
		WHERE t.task_num = ? ORDER BY t.seq DESC LIMIT ?`, task.num, most)
	if err != nil {
		return nil, err
	}
	// A request for an approval goes to members, and is no part of the conversation.
	sent, err := db.All(ctx, s.db, scanEmail, `SELECT `+outboundColumns+`
		FROM turns t CROSS JOIN outbound_emails e ON e.turn_num = t.num
		WHERE t.task_num = ? AND e.kind <> 'approval' ORDER BY t.seq DESC LIMIT ?`, task.num, most)
	return append(list, sent...), err
}

// Email returns a mail of a worker that the caller may see.
func (s *Effects) Email(ctx context.Context, c people.Caller, id string) (Email, error) {
	return visibleEmail(ctx, s.db, c, id)
}

func visibleEmail(ctx context.Context, q db.Querier, c people.Caller, id string) (Email, error) {
	e, err := db.One(ctx, q, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e WHERE id = ?`, id)
	if errors.Is(err, sql.ErrNoRows) {
		// A mail to a member may hold a link that decides for that member. Nobody else sees it,
		// not even an Owner.
		e, err = db.One(ctx, q, scanEmail, `SELECT `+outboundColumns+` FROM outbound_emails e WHERE id = ?
			AND (user_id IS NULL OR user_id = ?)`, id, c.UserID)
	}
	if err != nil {
		return Email{}, db.NoRecord(err, "email")
	}
	if e.WorkerID != "" {
		_, err = workers.VisibleOrDeleted(ctx, q, c, e.WorkerID)
	} else if err = c.Allow(people.ManageMail); err == nil && e.OrgID != c.OrganizationID {
		err = db.Errorf(db.Forbidden, "you have no access to the email")
	}
	if err != nil {
		return Email{}, err
	}
	return e, nil
}

// An EmailQuery asks for a page of mail. Zero fields do not filter.
type EmailQuery struct {
	Direction string // Inbound or Outbound
	Status    EmailStatus
	WorkerID  string
	Cursor    string // from the page before
	Limit     int    // most items
}

// Check adds to f the filters with invalid values.
func (q EmailQuery) Check(f *db.Fields) {
	f.Check(q.Direction == "" || q.Direction == Inbound || q.Direction == Outbound, "direction",
		"must be inbound or outbound")
	known := []EmailStatus{"", EmailAccepted, EmailIgnored, EmailHeld,
		EmailQueued, EmailKept, EmailSent, EmailFailed, EmailBounced}
	f.Check(slices.Contains(known, q.Status), "status",
		"must be accepted, ignored, held, queued, kept, sent, failed or bounced")
}

// Emails lists the mail of the workers that the caller may see, newest first, and the
// cursor of the next page, or "" after the last.
func (s *Effects) Emails(ctx context.Context, c people.Caller, q EmailQuery) ([]Email, string, error) {
	var f db.Fields
	q.Check(&f)
	before, of := db.AboveIDs, db.ScopeOf("emails", q.Direction, q.Status, q.WorkerID)
	of.Read(&f, q.Cursor, &before)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	var list []Email
	stop := "" // mails below this id may be missing in list
	for _, direction := range []string{Inbound, Outbound} {
		if q.Direction != "" && q.Direction != direction {
			continue
		}
		page, stopped, err := s.emailsOf(ctx, c, q, direction, before)
		if err != nil {
			return nil, "", err
		}
		list, stop = append(list, page...), max(stop, stopped)
	}
	slices.SortFunc(list, func(a, b Email) int { return strings.Compare(b.ID, a.ID) })
	// Both directions must be complete down to the page's end, or the next page skips mail.
	list = slices.DeleteFunc(list, func(e Email) bool { return e.ID < stop })
	if limit := db.PageLimit(q.Limit); len(list) > limit {
		list = list[:limit]
		stop = list[limit-1].ID
	}
	if stop == "" {
		return list, "", nil
	}
	return list, of.Cursor(stop), nil
}

// emailsOf returns one mail more than a page of one direction. stopped is the last id that was read
// if the scan ended before the list, and "" otherwise.
func (s *Effects) emailsOf(ctx context.Context, c people.Caller, q EmailQuery, direction,
	before string) (list []Email, stopped string, err error) {
	table, columns, index, own := "inbound_emails", inboundColumns, "inbound_emails_by_organization", ""
	if direction == Outbound {
		table, columns, index = "outbound_emails", outboundColumns, "outbound_emails_by_organization"
		own = ` AND (e.user_id IS NULL OR e.user_id = ?7)` // the rule of visibleEmail
	}
	held := ""
	if q.Status == EmailHeld {
		if direction == Outbound {
			return nil, "", nil
		}
		index, held = "inbound_emails_held", " AND status = 'held'"
	}
	from := ` FROM ` + table + ` INDEXED BY ` + index + ` WHERE organization_id = ?1 AND id < ?2` + held + `
		ORDER BY id DESC `
	limit := db.PageLimit(q.Limit)
	list, err = db.All(ctx, s.db, scanEmail, `SELECT `+columns+`
		FROM (SELECT num scanned`+from+`LIMIT ?3) AS newest CROSS JOIN `+table+` e ON e.num = scanned
		WHERE (?4 = '' OR e.status = ?4) AND (?5 = '' OR e.worker_id = ?5)
			AND (?6 OR EXISTS (SELECT 1 FROM workers w WHERE w.id = e.worker_id
				AND (w.visibility = 'public' OR w.user_id = ?7
					OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?7))))`+own+`
		/* ORDER BY e.id DESC */ LIMIT ?8`,
		c.OrganizationID, before, db.MaxScanned, string(q.Status), q.WorkerID, c.Role.Manages(), c.UserID, limit+1)
	if err != nil || len(list) > limit {
		return list, "", err
	}
	stopped, err = db.One(ctx, s.db, db.ScanString, `SELECT id`+from+`LIMIT 1 OFFSET ?3`,
		c.OrganizationID, before, db.MaxScanned-1)
	return list, stopped, db.NoRow(err, nil)
}

// These queries select the mails that have a source and are older than a given time, oldest first.
// PruneEmails removes the source of every mail that a query returns, so the next query continues
// with the next ones.
const (
	oldInbound = `SELECT num FROM inbound_emails INDEXED BY inbound_emails_by_age
		WHERE created_at < ? AND (source IS NOT NULL OR source_sha256 IS NOT NULL) ORDER BY created_at LIMIT ?`
	oldOutbound = `SELECT num FROM outbound_emails INDEXED BY outbound_emails_by_age
		WHERE created_at < ? AND status <> 'queued' AND (source IS NOT NULL OR source_sha256 IS NOT NULL)
		ORDER BY created_at LIMIT ?`
)

// PruneEmails deletes old mails that started no turn, and notices. Of other mails and of replies, it deletes
// only the source, because a later answer finds its task by these rows. It works on mails older
// than age, at most limit for each statement, and returns the number of changed rows.
func (s *Effects) PruneEmails(ctx context.Context, age time.Duration, limit int) (n int64, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		before := s.db.Now().Add(-age).UnixMilli()
		n = 0
		for _, query := range []string{
			`DELETE FROM inbound_emails WHERE status <> 'accepted' AND num IN (` + oldInbound + `)`,
			`UPDATE inbound_emails SET source = NULL, source_sha256 = NULL
				WHERE status = 'accepted' AND num IN (` + oldInbound + `)`,
			`DELETE FROM outbound_emails WHERE kind = 'notice' AND num IN (` + oldOutbound + `)`,
			`UPDATE outbound_emails SET source = NULL, source_sha256 = NULL WHERE num IN (` + oldOutbound + `)`,
		} {
			pruned, err := tx.Exec(query, before, limit)
			if err != nil {
				return err
			}
			n += pruned
		}
		return nil
	})
	return n, err
}

// NewEmail is a received mail for one worker.
type NewEmail struct {
	Worker     workers.Worker
	Turn       *NewTurn    // the turn that the mail starts; nil if it starts none
	Answer     *MailAnswer // used instead of Turn if a question waits for it; nil without a task
	Status     EmailStatus // without Turn: EmailIgnored or EmailHeld
	Reason     string
	MessageID  string
	Content    string // a hash that is equal for the same mail, whatever way it has taken
	NoID       bool   // MessageID is no id, so equal contents are the same mail for a short time only
	Proven     Proof  // how far the author in From is proven
	MailFrom   string
	From       string
	To         string
	ReplyTo    string
	NoticeTo   string // the author, who gets a notice that there will be no answer; '' for none
	Subject    string
	Verdicts   json.RawMessage
	RemoteAddr string
	Network    string // of the sending server, for limits; '' if mail of everybody comes from there
}

// A Proof says how far the author of a mail is proven.
type Proof int

// The proofs, each stronger than the one before.
const (
	Unproven     Proof = iota // anybody may have written From
	AuthorProven              // From names the author
	MemberProven              // and the author is a member of the organization
)

// A MailAnswer is the text of a received mail, as the answer to a question of its task. Without
// ApprovalID, or if that question no longer waits, it answers the only question that waits for its author.
type MailAnswer struct {
	ApprovalID string // of the question to whose mail it replies; '' for none
	Text       string
	Quoted     string // what the mail quotes and the task does not have; it is left out if Text is a choice
}

// receive counts a received mail by its status.
func (c *Counters) receive(status EmailStatus) {
	c.EmailsReceived.Add(1)
	switch status {
	case EmailAccepted:
		c.EmailsAccepted.Add(1)
	case EmailHeld:
		c.EmailsHeld.Add(1)
	case EmailIgnored:
		c.EmailsIgnored.Add(1)
	}
}

// end counts an attempt to send a mail by the status after it.
func (c *Counters) end(status EmailStatus) {
	switch status {
	case EmailSent:
		c.EmailsSent.Add(1)
	case EmailFailed:
		c.EmailsFailed.Add(1)
	}
}
