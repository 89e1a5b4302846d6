package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// audit appends to the audit log in the transaction that makes the change. detail
// holds no secrets.
func (s *Store) audit(tx *Tx, c Caller, action, subject string, detail map[string]any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	_, err = tx.Exec(`INSERT INTO audit_log (organization_id, user_id, api_key_id, action, subject, detail, remote_addr, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.OrganizationID, nullable(c.UserID), nullable(c.KeyID), action, subject, string(text), c.RemoteAddr, s.millis())
	return err
}

// auditUser is audit for what concerns a user everywhere: the log of each of their
// organizations has it.
func (s *Store) auditUser(ctx context.Context, tx *Tx, c Caller, userID, action string, detail map[string]any) error {
	organizations, err := all(ctx, tx, scanString, `SELECT organization_id FROM memberships WHERE user_id = ?`, userID)
	for _, id := range organizations {
		c.OrganizationID = id
		if err == nil {
			err = s.audit(tx, c, action, userID, detail)
		}
	}
	return err
}

// An AuditEntry says who changed what.
type AuditEntry struct {
	UserID     string // '' for the command line
	Email      string // of the user
	KeyID      string // the key used, '' without one
	KeyName    string
	Action     string         // such as "key.create"
	Subject    string         // id of what was changed
	Detail     map[string]any // what else there is to know
	RemoteAddr string         // '' for the command line
	CreatedAt  time.Time

	num int64
}

// Actions are those that the audit log has, in the order of the alphabet.
func Actions() []string {
	return []string{"approval.approve", "approval.deny", "email.release", "email.retry", "invitation.accept", "invitation.create", "invitation.revoke",
		"key.create", "key.revoke", "key.roll", "member.add", "member.remove", "member.role", "organization.cap", "organization.name",
		"password.change", "password.link", "password.reset", "password.set", "session.create", "session.end", "user.name",
		"webhook.remove", "webhook.renew", "webhook.set", "worker.approvals", "worker.delete", "worker.member.add", "worker.member.remove", "worker.visibility"}
}

// An AuditQuery asks for a page of the audit log. Zero fields do not filter.
type AuditQuery struct {
	Action string
	Email  string    // of who did it
	After  time.Time // inclusive
	Before time.Time // exclusive
	Cursor string    // from the page before
	Limit  int       // most entries
}

// AuditLog lists what was changed in the caller's organization, newest first, and
// the cursor of the next page, ” after the last. A Member is Forbidden.
func (s *Store) AuditLog(ctx context.Context, c Caller, q AuditQuery) ([]AuditEntry, string, error) {
	if err := c.Allow(SeeAudit); err != nil {
		return nil, "", err
	}
	var f Fields
	checkCursor(&f, q.Cursor)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	userID := ""
	if q.Email != "" {
		var err error
		userID, err = one(ctx, s, scanString, `SELECT id FROM users WHERE email = ?`, q.Email)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, "", nil // who never was did nothing
		}
		if err != nil {
			return nil, "", err
		}
	}
	index, filter := q.listed(userID)
	before := q.position()
	after := int64(math.MinInt64)
	if !q.After.IsZero() {
		after = q.After.UnixMilli()
	}
	limit := pageLimit(q.Limit)
	rows, err := all(ctx, s, scanAuditEntry, `SELECT a.num, coalesce(a.user_id, ''), coalesce(u.email, ''), coalesce(a.api_key_id, ''), coalesce(k.name, ''),
			a.action, a.subject, a.detail, a.remote_addr, a.created_at
		FROM audit_log a INDEXED BY `+index+` LEFT JOIN users u ON u.id = a.user_id LEFT JOIN api_keys k ON k.id = a.api_key_id
		WHERE a.organization_id = ?1 AND `+filter+` AND a.created_at >= ?4 AND (a.created_at, a.num) < (?5, ?6)
		ORDER BY a.created_at DESC, a.num DESC LIMIT ?7`,
		c.OrganizationID, userID, q.Action, after, before[0], before[1], limit+1)
	if err != nil || len(rows) <= limit {
		return rows, "", err
	}
	last := rows[limit-1]
	return rows[:limit], formatCursor([]int64{last.CreatedAt.UnixMilli(), last.num}), nil
}

// position is the time and num before which the page begins.
func (q AuditQuery) position() []int64 {
	before := []int64{math.MaxInt64, 0}
	if !q.Before.IsZero() {
		before[0] = q.Before.UnixMilli()
	}
	after, err := parseCursor(q.Cursor)
	if err != nil || after == nil || after[0] >= before[0] {
		return before
	}
	return after
}

// listed is the index that the filters choose, and the range of it that they leave;
// ?2 is the user, ?3 the action. No entry beside it is read.
func (q AuditQuery) listed(userID string) (index, filter string) {
	switch {
	case userID != "" && q.Action != "":
		return "audit_log_by_user_action", "a.user_id = ?2 AND a.action = ?3"
	case userID != "":
		return "audit_log_by_user", "a.user_id = ?2 AND ?3 = ''"
	case q.Action != "":
		return "audit_log_by_action", "?2 = '' AND a.action = ?3"
	}
	return "audit_log_listed", "?2 = '' AND ?3 = ''"
}

func scanAuditEntry(row scanner) (e AuditEntry, err error) {
	var created int64
	var detail string
	if err := row.Scan(&e.num, &e.UserID, &e.Email, &e.KeyID, &e.KeyName, &e.Action, &e.Subject, &detail, &e.RemoteAddr, &created); err != nil {
		return e, err
	}
	e.CreatedAt = fromMillis(created)
	return e, json.Unmarshal([]byte(detail), &e.Detail)
}
