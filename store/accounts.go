package store

import (
	"context"
	"database/sql"
	"errors"
	"net/mail"
	"strings"
	"time"
)

// A Role is what a user may do in an organization.
type Role string

// The roles. An Owner or Admin sees every worker of the organization and manages
// its keys; a Member sees public workers and those they made or are invited to.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleOwner || r == RoleAdmin || r == RoleMember }

// manages reports whether the role sees every worker.
func (r Role) manages() bool { return r.May(SeeEveryWorker) }

// A Trigger says how a task came about.
type Trigger string

// The triggers of the interface.
const (
	TriggerAPI      Trigger = "api"
	TriggerEmail    Trigger = "email"
	TriggerSchedule Trigger = "schedule"
	TriggerUI       Trigger = "ui"
)

// A Caller is who asks: a user in an organization, through a key or a page. Every
// question of access is answered from it.
type Caller struct {
	OrganizationID string
	UserID         string
	Role           Role
	KeyID          string // '' without a key
	Trigger        Trigger
	RemoteAddr     string // for the audit log
}

// An Identity is a Caller with the names a person knows it by.
type Identity struct {
	Caller
	OrganizationName string
	Email            string
	UserName         string
	KeyName          string
	KeyPrefix        string
}

const selectIdentity = `
	SELECT k.id, k.name, k.prefix, k.organization_id, o.name, k.user_id, u.email, u.name, m.role,
	       coalesce(k.last_used_at, 0)
	FROM api_keys k
	JOIN organizations o ON o.id = k.organization_id
	JOIN users u ON u.id = k.user_id
	JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id
	WHERE k.hash = ? AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)`

// Authenticate gives whose API key secret is. Unknown, revoked and expired keys
// are an Unauthorized error alike.
func (s *Store) Authenticate(ctx context.Context, secret string) (Identity, error) {
	now := s.millis()
	id := Identity{Caller: Caller{Trigger: TriggerAPI}}
	var used int64
	_, err := one(ctx, s, func(row scanner) (struct{}, error) {
		return struct{}{}, row.Scan(&id.KeyID, &id.KeyName, &id.KeyPrefix, &id.OrganizationID, &id.OrganizationName,
			&id.UserID, &id.Email, &id.UserName, &id.Role, &used)
	}, selectIdentity, hashSecret(secret), now)
	if errors.Is(err, sql.ErrNoRows) {
		return Identity{}, Errorf(Unauthorized, "the API key is unknown or has been revoked")
	}
	if err != nil {
		return Identity{}, err
	}
	s.noteUse(id.KeyID, used, now)
	return id, nil
}

// noteUse writes down at most once a minute that a key is in use. It does not
// wait: losing one note in a crash is no loss.
func (s *Store) noteUse(keyID string, used, now int64) {
	const minute = 60_000
	if now-used < minute {
		return
	}
	if last, ok := s.lastUse.Swap(keyID, now/minute); ok && last.(int64) == now/minute {
		return
	}
	s.writer.offer(func(tx *Tx) error {
		_, err := tx.Exec(`UPDATE api_keys SET last_used_at = ? WHERE id = ?`, now/minute*minute, keyID)
		return err
	})
}

// DefaultOrganization is the name of the organization made on first start.
const DefaultOrganization = "Default"

// validEmail reports whether text is an address and nothing besides.
func validEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && len(text) <= 320
}

// ensureMembership finds or makes the organization, the user and the membership.
func (s *Store) ensureMembership(tx *Tx, n NewKey) (c Caller, err error) {
	ctx, fresh := context.Background(), false
	if c.OrganizationID, fresh, err = s.ensureOrganization(tx, n.OrganizationName); err != nil {
		return c, err
	}
	if n.Email == "" {
		c.UserID, err = one(ctx, tx, scanString, `SELECT user_id FROM memberships WHERE organization_id = ? AND role = 'owner'
			ORDER BY created_at, user_id LIMIT 1`, c.OrganizationID)
		if errors.Is(err, sql.ErrNoRows) {
			return c, Errorf(Invalid, "the organization has no owner yet: name a user")
		}
		return c, err
	}
	if c.UserID, err = s.ensureUser(tx, n.Email); err != nil {
		return c, err
	}
	role := n.Role
	if role == "" && fresh {
		role = RoleOwner // a new organization needs one
	}
	return c, s.ensureRole(ctx, tx, Caller{OrganizationID: c.OrganizationID, RemoteAddr: n.RemoteAddr}, c.UserID, n.Email, role)
}

// ensureRole makes a user a member with a role; without one, a member keeps theirs.
func (s *Store) ensureRole(ctx context.Context, tx *Tx, by Caller, userID, email string, role Role) error {
	old, err := s.role(ctx, tx, by.OrganizationID, userID)
	switch {
	case err != nil || old != "" && (role == "" || role == old):
		return err
	case old != "":
		if err := s.putRole(tx, by.OrganizationID, userID, role); err != nil {
			return err
		}
		return s.audit(tx, by, "member.role", userID, map[string]any{"user": email, "from": old, "to": role})
	}
	if role == "" {
		role = RoleMember
	}
	if err := endLinks(tx, userID); err != nil { // they were made by who may, in the organizations until now
		return err
	}
	if _, err := tx.Exec(`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (?, ?, ?, ?)`,
		by.OrganizationID, userID, role, s.millis()); err != nil {
		return err
	}
	return s.audit(tx, by, "member.add", userID, map[string]any{"user": email, "role": role})
}

func (s *Store) ensureOrganization(tx *Tx, name string) (id string, fresh bool, err error) {
	ctx := context.Background()
	if name == "" {
		id, err = one(ctx, tx, scanString, `SELECT id FROM organizations ORDER BY created_at, rowid LIMIT 1`)
		name = DefaultOrganization
	} else {
		id, err = one(ctx, tx, scanString, `SELECT id FROM organizations WHERE name = ?`, name)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return id, false, err
	}
	id = NewID("org", s.now())
	_, err = tx.Exec(`INSERT INTO organizations (id, name, created_at) VALUES (?, ?, ?)`, id, name, s.millis())
	return id, true, err
}

func (s *Store) ensureUser(tx *Tx, email string) (string, error) {
	id, err := one(context.Background(), tx, scanString, `SELECT id FROM users WHERE email = ?`, email)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	id = NewID("usr", s.now())
	name, _, _ := strings.Cut(email, "@")
	_, err = tx.Exec(`INSERT INTO users (id, email, name, created_at) VALUES (?, ?, ?, ?)`, id, email, name, s.millis())
	return id, err
}

// Owner gives an owner of the first organization as a caller without a key, and
// makes both where they do not exist: for work on the data folder itself.
func (s *Store) Owner(ctx context.Context, email string) (c Caller, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		c, err = s.ensureMembership(tx, NewKey{Email: email, Role: RoleOwner})
		return err
	})
	c.Role, c.Trigger = RoleOwner, TriggerAPI
	return c, err
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func fromNull(ms sql.NullInt64) *time.Time {
	if !ms.Valid {
		return nil
	}
	t := fromMillis(ms.Int64)
	return &t
}

// nullable is nil for the zero value, to be stored as NULL.
func nullable[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
