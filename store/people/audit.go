package people

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"journeyman/store/db"
)

// Audit adds an entry to the audit log, in the transaction that makes the change. detail
// holds no secrets.
func (s *Store) Audit(tx db.Tx, c Caller, action, subject string, detail map[string]any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	_, err = tx.Exec(`INSERT INTO audit_log (organization_id, user_id, api_key_id, action, subject, detail,
			remote_addr, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, c.OrganizationID, db.Nullable(c.UserID), db.Nullable(c.KeyID), action, subject,
		string(text), c.RemoteAddr, s.db.Millis())
	return err
}

// auditUser is Audit for a change of the user in all organizations. Each organization of the user
// gets the entry.
func (s *Store) auditUser(ctx context.Context, tx db.Tx, c Caller, userID, action string, detail map[string]any) error {
	organizations, err := db.All(ctx, tx, db.ScanString, `SELECT organization_id FROM memberships WHERE user_id = ?`,
		userID)
	for _, id := range organizations {
		c.OrganizationID = id
		if err == nil {
			err = s.Audit(tx, c, action, userID, detail)
		}
	}
	return err
}

// An AuditEntry records one change and the user who made it.
type AuditEntry struct {
	UserID     string // '' for the command line
	Email      string // of the user
	KeyID      string // of the request, '' without a key
	KeyName    string
	Action     string         // for example "key.create"
	Subject    string         // id of what was changed
	Detail     map[string]any // further fields, which depend on the action
	RemoteAddr string         // '' for the command line
	CreatedAt  time.Time

	num int64
}

// Actions returns the actions that the audit log records, in alphabetical order.
func Actions() []string {
	return []string{"alerts.add", "alerts.pause", "alerts.remove", "alerts.resume", "alerts.test",
		"approval.approve", "approval.deny", "backup.request", "email.release", "email.retry",
		"invitation.accept", "invitation.create", "invitation.revoke", "key.create", "key.revoke", "key.roll",
		"mcp.signIn", "mcp.signOut", "member.add", "member.remove", "member.role", "oauth.grant", "oauth.revoke",
		"organization.cap", "organization.models", "organization.name", "password.change", "password.link",
		"password.reset", "password.set",
		"provider.create", "provider.delete", "provider.update", "question.answer",
		"secret.create", "secret.delete", "secret.update", "session.create", "session.end",
		"user.name", "webhook.remove", "webhook.renew", "webhook.set", "worker.approvals", "worker.delete",
		"worker.keepTasks", "worker.member.add", "worker.member.remove", "worker.strangerTools", "worker.tools",
		"worker.visibility"}
}

// An AuditQuery asks for a page of the audit log. Zero fields do not filter.
type AuditQuery struct {
	Action string
	Email  string    // of the user who made the change
	After  time.Time // inclusive
	Before time.Time // exclusive
	Cursor string    // from the page before
	Limit  int       // most entries
}

// AuditLog lists the changes in the caller's organization, newest first, and the cursor of the next
// page, or "" after the last. It returns Forbidden for a Member.
func (s *Store) AuditLog(ctx context.Context, c Caller, q AuditQuery) ([]AuditEntry, string, error) {
	if err := c.Allow(SeeAudit); err != nil {
		return nil, "", err
	}
	var f db.Fields
	at, num := q.scope().ReadTime(&f, q.Cursor, q.Before)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	userID := ""
	if q.Email != "" {
		var err error
		userID, err = db.One(ctx, s.db, db.ScanString, `SELECT id FROM users WHERE email = ?`, q.Email)
		if err != nil {
			return nil, "", db.NoRow(err, nil) // an unknown user changed nothing
		}
	}
	index, filter := q.listed(userID) // each combination of filters has an index of its own
	after := int64(math.MinInt64)
	if !q.After.IsZero() {
		after = q.After.UnixMilli()
	}
	limit := db.PageLimit(q.Limit)
	rows, err := db.All(ctx, s.db, scanAuditEntry, `SELECT a.num, coalesce(a.user_id, ''), coalesce(u.email, ''),
			coalesce(a.api_key_id, ''), coalesce(k.name, ''), a.action, a.subject, a.detail, a.remote_addr, a.created_at
		FROM audit_log a INDEXED BY `+index+`
			LEFT JOIN users u ON u.id = a.user_id LEFT JOIN api_keys k ON k.id = a.api_key_id
		WHERE a.organization_id = ?1 AND `+filter+` AND a.created_at >= ?4 AND (a.created_at, a.num) < (?5, ?6)
		ORDER BY a.created_at DESC, a.num DESC LIMIT ?7`,
		c.OrganizationID, userID, q.Action, after, at, num, limit+1)
	page, next := db.Cut(rows, limit, q.scope(), func(e AuditEntry) []any { return []any{e.CreatedAt.UnixMilli(), e.num} })
	return page, next, err
}

func (q AuditQuery) scope() db.Scope {
	return db.ScopeOf("audit", q.Action, q.Email, q.After.UnixMilli(), q.Before.UnixMilli())
}

// listed returns the index that fits the filters, and the condition that limits the query to a
// range of this index. ?2 is the user, ?3 the action.
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

func scanAuditEntry(row db.Scanner) (e AuditEntry, err error) {
	var detail []byte
	err = row.Scan(&e.num, &e.UserID, &e.Email, &e.KeyID, &e.KeyName, &e.Action, &e.Subject, &detail, &e.RemoteAddr,
		db.AsTime(&e.CreatedAt))
	if err == nil {
		err = json.Unmarshal(detail, &e.Detail)
	}
	return e, err
}
