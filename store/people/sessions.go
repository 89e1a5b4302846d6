package people

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"journeyman/store/db"
)

// The lifetimes of a session: without use, and in total.
const (
	SessionIdle     = 14 * 24 * time.Hour
	SessionLifetime = 90 * 24 * time.Hour
)

const (
	maxSessions  = 50  // of a user at once; a new session ends the oldest
	maxUserAgent = 300 // bytes that are kept of a browser's User-Agent
)

// A Session is a browser in which a user is signed in.
type Session struct {
	ID         string
	UserAgent  string
	RemoteAddr string // at sign-in
	CreatedAt  time.Time
	LastUsedAt time.Time // to the minute
	ExpiresAt  time.Time // is moved forward by use
}

const sessionColumns = `id, user_agent, remote_addr, created_at, last_used_at, expires_at`

func scanSession(row db.Scanner) (v Session, err error) {
	err = row.Scan(&v.ID, &v.UserAgent, &v.RemoteAddr, db.AsTime(&v.CreatedAt), db.AsTime(&v.LastUsedAt),
		db.AsTime(&v.ExpiresAt))
	return v, err
}

// CreateSession signs the caller in, in the organization that they looked at last. It returns the
// session's token, which is not stored. It returns Forbidden for a user who is in no organization.
func (s *Store) CreateSession(ctx context.Context, c Caller, userAgent string) (token string, err error) {
	token = db.NewToken("jms_")
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if c.OrganizationID, err = lastOrganization(ctx, tx, c.UserID); err != nil {
			return err
		}
		// Only the newest sessions stay: a script that signs in for each of its steps
		// must not fill the table.
		if _, err := tx.Exec(`DELETE FROM sessions WHERE id IN
			(SELECT id FROM sessions WHERE user_id = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`,
			c.UserID, maxSessions-1); err != nil {
			return err
		}
		id, now := db.NewID("ses", s.db.Now()), s.db.Millis()
		if _, err := tx.Exec(`INSERT INTO sessions (id, hash, user_id, organization_id, user_agent, remote_addr,
				created_at, last_used_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, db.HashToken(token), c.UserID, c.OrganizationID, db.Clip(userAgent, maxUserAgent), c.RemoteAddr,
			now, now, now+SessionIdle.Milliseconds()); err != nil {
			return err
		}
		return s.Audit(tx, c, "session.create", id, map[string]any{})
	})
	return token, err
}

// lastOrganization returns the organization of the user's newest session, or that of
// their oldest membership.
func lastOrganization(ctx context.Context, tx db.Tx, userID string) (string, error) {
	org, err := db.One(ctx, tx, db.ScanString, `SELECT m.organization_id FROM sessions v
		JOIN memberships m ON m.organization_id = v.organization_id AND m.user_id = v.user_id
		WHERE v.user_id = ? ORDER BY v.id DESC LIMIT 1`, userID)
	if errors.Is(err, sql.ErrNoRows) {
		org, err = db.One(ctx, tx, db.ScanString, `SELECT organization_id FROM memberships WHERE user_id = ?
			ORDER BY created_at, organization_id LIMIT 1`, userID)
	}
	return org, db.NoRow(err, db.Errorf(db.Forbidden, "this user is in no organization"))
}

const selectSession = `
	SELECT v.id, v.organization_id, o.name, v.user_id, u.email, u.name, m.role, v.created_at, v.last_used_at,
		coalesce(u.theme, ''), coalesce(u.language, ''), u.shortcuts
	FROM sessions v
	JOIN organizations o ON o.id = v.organization_id
	JOIN users u ON u.id = v.user_id
	JOIN memberships m ON m.organization_id = v.organization_id AND m.user_id = v.user_id
	WHERE v.hash = ? AND v.expires_at > ?`

// SessionIdentity returns the identity and the id of the session with that token. It returns the
// same Unauthorized error for unknown and ended sessions, and for users who have left the
// organization.
func (s *Store) SessionIdentity(ctx context.Context, token string) (id Identity, sessionID string, err error) {
	now := s.db.Millis()
	id.Trigger = TriggerUI
	var created, used int64
	_, err = db.One(ctx, s.db, db.Into(&sessionID, &id.OrganizationID, &id.OrganizationName, &id.UserID, &id.Email,
		&id.UserName, &id.Role, &created, &used, &id.Theme, &id.Language, &id.Shortcuts), selectSession,
		db.HashToken(token), now)
	if err != nil {
		return Identity{}, "", db.NoRow(err, db.Errorf(db.Unauthorized, "nobody is signed in here"))
	}
	if id.first, err = s.IsFirst(ctx, s.db, id.OrganizationID); err != nil {
		return Identity{}, "", err
	}
	// Use prolongs a session, but never beyond its whole lifetime.
	expires := min(now+SessionIdle.Milliseconds(), created+SessionLifetime.Milliseconds())
	s.noteUse(sessionID, used, now, func(tx db.Tx, minute int64) error {
		_, err := tx.Exec(`UPDATE sessions SET last_used_at = max(?, created_at), expires_at = ? WHERE id = ?`,
			minute, expires, sessionID)
		return err
	})
	return id, sessionID, nil
}

// Sessions lists the caller's sessions that have not ended, newest first.
func (s *Store) Sessions(ctx context.Context, c Caller) ([]Session, error) {
	return db.All(ctx, s.db, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE user_id = ? AND expires_at > ?
		ORDER BY id DESC`, c.UserID, s.db.Millis())
}

// EndSession signs the caller out of the session with that id. It does nothing if the
// session has ended.
func (s *Store) EndSession(ctx context.Context, c Caller, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(`DELETE FROM sessions WHERE id = ? AND user_id = ?`, id, c.UserID)
		if err != nil || n == 0 {
			return err
		}
		return s.Audit(tx, c, "session.end", id, map[string]any{})
	})
}

// EndOtherSessions signs the caller out of all sessions but the one with that id.
func (s *Store) EndOtherSessions(ctx context.Context, c Caller, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(`DELETE FROM sessions WHERE user_id = ? AND id <> ?`, c.UserID, id)
		if err != nil || n == 0 {
			return err
		}
		return s.Audit(tx, c, "session.end", c.UserID, map[string]any{"sessions": n})
	})
}

// SwitchOrganization changes the organization that a session of the caller shows. It returns
// Forbidden if the caller is not a member there.
func (s *Store) SwitchOrganization(ctx context.Context, c Caller, sessionID, organizationID string) error {
	n, err := s.db.Exec(ctx, `UPDATE sessions SET organization_id = ?1 WHERE id = ?2 AND user_id = ?3
		AND EXISTS (SELECT 1 FROM memberships WHERE organization_id = ?1 AND user_id = ?3)`,
		organizationID, sessionID, c.UserID)
	if err == nil && n == 0 {
		return db.Errorf(db.Forbidden, "you are not in this organization")
	}
	return err
}

// PruneSessions deletes up to limit sessions that have ended, and returns how many.
func (s *Store) PruneSessions(ctx context.Context, limit int) (int64, error) {
	return s.db.Exec(ctx, `DELETE FROM sessions WHERE id IN
		(SELECT id FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, s.db.Millis(), limit)
}
