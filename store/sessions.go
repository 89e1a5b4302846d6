package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// How long a session lives without use, and at most.
const (
	SessionIdle     = 14 * 24 * time.Hour
	SessionLifetime = 90 * 24 * time.Hour
)

// maxSessions is how many sessions a user has at once; a new one ends the oldest.
const maxSessions = 50

// maxUserAgent is how many bytes of a browser's name for itself are kept.
const maxUserAgent = 300

// A Session is a browser that a user is signed in with.
type Session struct {
	ID         string
	UserAgent  string
	RemoteAddr string // at sign-in
	CreatedAt  time.Time
	LastUsedAt time.Time // to the minute
	ExpiresAt  time.Time // moves on with use
}

const sessionColumns = `id, user_agent, remote_addr, created_at, last_used_at, expires_at`

func scanSession(row scanner) (v Session, err error) {
	var created, used, expires int64
	err = row.Scan(&v.ID, &v.UserAgent, &v.RemoteAddr, &created, &used, &expires)
	v.CreatedAt, v.LastUsedAt, v.ExpiresAt = fromMillis(created), fromMillis(used), fromMillis(expires)
	return v, err
}

// CreateSession signs a user in, in the organization they looked at last, and gives
// the session's token, which is not kept. It is Forbidden for a user that is in no
// organization any more.
func (s *Store) CreateSession(ctx context.Context, userID, userAgent, remoteAddr string) (token string, err error) {
	token = newSecret("jms_")
	err = s.write(ctx, func(tx *Tx) error {
		org, err := s.homeOf(ctx, tx, userID)
		if err != nil {
			return err
		}
		id, now := NewID("ses", s.now()), s.millis()
		// Those beyond the newest few are forgotten: a script that signs in for each
		// of its steps must not fill the table.
		if _, err := tx.Exec(`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE user_id = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`,
			userID, maxSessions-1); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO sessions (id, hash, user_id, organization_id, user_agent, remote_addr, created_at, last_used_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, hashSecret(token), userID, org, clip(userAgent, maxUserAgent), remoteAddr,
			now, now, now+SessionIdle.Milliseconds()); err != nil {
			return err
		}
		return s.audit(tx, Caller{OrganizationID: org, UserID: userID, RemoteAddr: remoteAddr}, "session.create", id, map[string]any{})
	})
	return token, err
}

// homeOf is the organization a user's new session looks at: the one of the newest
// session, else the oldest membership.
func (s *Store) homeOf(ctx context.Context, tx *Tx, userID string) (string, error) {
	org, err := one(ctx, tx, scanString, `SELECT m.organization_id FROM sessions v
		JOIN memberships m ON m.organization_id = v.organization_id AND m.user_id = v.user_id
		WHERE v.user_id = ? ORDER BY v.id DESC LIMIT 1`, userID)
	if errors.Is(err, sql.ErrNoRows) {
		org, err = one(ctx, tx, scanString, `SELECT organization_id FROM memberships WHERE user_id = ? ORDER BY created_at, organization_id LIMIT 1`, userID)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return "", Errorf(Forbidden, "this user is in no organization")
	}
	return org, err
}

const selectSession = `
	SELECT v.id, v.organization_id, o.name, v.user_id, u.email, u.name, m.role, v.created_at, v.last_used_at
	FROM sessions v
	JOIN organizations o ON o.id = v.organization_id
	JOIN users u ON u.id = v.user_id
	JOIN memberships m ON m.organization_id = v.organization_id AND m.user_id = v.user_id
	WHERE v.hash = ? AND v.expires_at > ?`

// SessionIdentity gives whose session a token is, and the session's id. Unknown and
// ended sessions, and those of users no longer in the organization, are an
// Unauthorized error alike.
func (s *Store) SessionIdentity(ctx context.Context, token string) (id Identity, sessionID string, err error) {
	now := s.millis()
	id.Trigger = TriggerUI
	var created, used int64
	_, err = one(ctx, s, func(row scanner) (struct{}, error) {
		return struct{}{}, row.Scan(&sessionID, &id.OrganizationID, &id.OrganizationName, &id.UserID, &id.Email, &id.UserName, &id.Role, &created, &used)
	}, selectSession, hashSecret(token), now)
	if errors.Is(err, sql.ErrNoRows) {
		return Identity{}, "", Errorf(Unauthorized, "nobody is signed in here")
	}
	if err != nil {
		return Identity{}, "", err
	}
	s.noteSession(sessionID, created, used, now)
	return id, sessionID, nil
}

// noteSession writes down at most once a minute that a session is in use, which
// puts its end off. It does not wait: losing one note in a crash is no loss.
func (s *Store) noteSession(id string, created, used, now int64) {
	const minute = 60_000
	if now-used < minute {
		return
	}
	if last, ok := s.lastUse.Swap(id, now/minute); ok && last.(int64) == now/minute {
		return
	}
	expires := min(now+SessionIdle.Milliseconds(), created+SessionLifetime.Milliseconds())
	s.writer.offer(func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE sessions SET last_used_at = ?, expires_at = ? WHERE id = ?`, now/minute*minute, expires, id)
		return err
	})
}

// Sessions lists the sessions of a user that have not ended, newest first.
func (s *Store) Sessions(ctx context.Context, userID string) ([]Session, error) {
	return all(ctx, s, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE user_id = ? AND expires_at > ? ORDER BY id DESC`, userID, s.millis())
}

// EndSession signs a browser of the caller out. One that has ended already is none
// of its concern.
func (s *Store) EndSession(ctx context.Context, c Caller, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`DELETE FROM sessions WHERE id = ? AND user_id = ?`, id, c.UserID)
		if err != nil || n == 0 {
			return err
		}
		return s.audit(tx, c, "session.end", id, map[string]any{})
	})
}

// EndOtherSessions signs the caller out everywhere but in the session named.
func (s *Store) EndOtherSessions(ctx context.Context, c Caller, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`DELETE FROM sessions WHERE user_id = ? AND id <> ?`, c.UserID, id)
		if err != nil || n == 0 {
			return err
		}
		return s.audit(tx, c, "session.end", c.UserID, map[string]any{"sessions": n})
	})
}

// PruneSessions deletes up to limit sessions that have ended.
func (s *Store) PruneSessions(ctx context.Context, limit int) (n int64, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		n, err = tx.Exec(`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, s.millis(), limit)
		return err
	})
	return n, err
}

// An Organization is one that a user is in.
type Organization struct {
	ID   string
	Name string
	Role Role // of the user
}

// Organizations lists those a user is in, the oldest membership first.
func (s *Store) Organizations(ctx context.Context, userID string) ([]Organization, error) {
	return s.organizationsOf(ctx, s, userID)
}

func (s *Store) organizationsOf(ctx context.Context, q querier, userID string) ([]Organization, error) {
	return all(ctx, q, func(row scanner) (o Organization, err error) {
		return o, row.Scan(&o.ID, &o.Name, &o.Role)
	}, `SELECT o.id, o.name, m.role FROM memberships m JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = ? ORDER BY m.created_at, m.organization_id`, userID)
}

// SwitchOrganization has a session of the caller look at another of their
// organizations. It is Forbidden for one they are not in.
func (s *Store) SwitchOrganization(ctx context.Context, c Caller, sessionID, organizationID string) error {
	return s.write(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`UPDATE sessions SET organization_id = ?1 WHERE id = ?2 AND user_id = ?3
			AND EXISTS (SELECT 1 FROM memberships WHERE organization_id = ?1 AND user_id = ?3)`, organizationID, sessionID, c.UserID)
		if err == nil && n == 0 {
			return Errorf(Forbidden, "you are not in this organization")
		}
		return err
	})
}

// clip is the start of text, at most n bytes of valid UTF-8.
func clip(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}
