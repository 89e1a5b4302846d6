package store

import (
	"context"
	"database/sql"
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"
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

// manages reports whether the role may create, roll and revoke keys and see every
// worker.
func (r Role) manages() bool { return r == RoleOwner || r == RoleAdmin }

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

// A Key is an API key as it may be shown: without its secret.
type Key struct {
	ID         string
	Name       string
	Prefix     string // first 12 characters of the secret
	UserID     string
	Email      string
	Role       Role
	CreatedAt  time.Time
	LastUsedAt *time.Time // to the minute
	ExpiresAt  *time.Time
	RevokedAt  *time.Time

	organizationID string
}

// NewKey says whose key to make. User and organization are made where they do
// not exist.
type NewKey struct {
	Name             string // for people, and in the audit log
	Email            string // whose key; '' for the first owner
	Role             Role   // of the user in the organization; '' leaves it, or chooses for a new one
	OrganizationName string // '' for the first organization
	Secret           string // '' to generate one
	RemoteAddr       string
}

// DefaultOrganization is the name of the organization made on first start.
const DefaultOrganization = "Default"

// maxName is the most characters of a key's and an organization's name.
const maxName = 200

// CreateKey makes an API key and gives its secret, which is not kept. A given
// secret that exists already is left as it is.
func (s *Store) CreateKey(ctx context.Context, n NewKey) (secret string, err error) {
	if err := n.check(); err != nil {
		return "", err
	}
	secret = n.Secret
	if secret == "" {
		secret = newSecret("jm_live_")
	}
	err = s.write(ctx, func(tx *Tx) error {
		c, err := s.ensureMembership(tx, n)
		if err != nil {
			return err
		}
		id := NewID("key", s.now())
		made, err := tx.Exec(`INSERT INTO api_keys (id, organization_id, user_id, name, hash, prefix, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
			id, c.OrganizationID, c.UserID, n.Name, hashSecret(secret), secret[:12], s.millis())
		if err != nil || made == 0 {
			return err
		}
		return s.audit(tx, Caller{OrganizationID: c.OrganizationID, RemoteAddr: n.RemoteAddr}, "key.create", id,
			map[string]any{"name": n.Name, "user": n.Email, "prefix": secret[:12]})
	})
	return secret, err
}

func (n NewKey) check() error {
	var f Fields
	f.Check(n.Name != "" && utf8.RuneCountInString(n.Name) <= maxName, "name", "must have 1 to %d characters", maxName)
	f.Check(utf8.RuneCountInString(n.OrganizationName) <= maxName, "organization", "must have at most %d characters", maxName)
	f.Check(n.Role == "" || n.Role.Valid(), "role", "must be owner, admin or member")
	f.Check(n.Secret == "" || len(n.Secret) >= 16 && len(n.Secret) <= 1000 && isToken(n.Secret), "secret",
		"must have 16 to 1000 characters, all of them printable ASCII and none a space")
	f.Check(n.Email == "" || validEmail(n.Email), "user", "must be an email address")
	return f.Err()
}

// isToken reports whether an Authorization header can carry text.
func isToken(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

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
	switch {
	case role == "":
		_, err = tx.Exec(`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (?, ?, 'member', ?)
			ON CONFLICT DO NOTHING`, c.OrganizationID, c.UserID, s.millis())
	default:
		_, err = tx.Exec(`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET role = excluded.role`, c.OrganizationID, c.UserID, role, s.millis())
	}
	return c, err
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

// HasKeys reports whether any API key was ever made: false on first start.
func (s *Store) HasKeys(ctx context.Context) (bool, error) {
	n, err := one(ctx, s, scanInt, `SELECT EXISTS (SELECT 1 FROM api_keys)`)
	return n == 1, err
}

// Keys lists all API keys of the named organization (none for every one), oldest
// first.
func (s *Store) Keys(ctx context.Context, organizationName string) ([]Key, error) {
	return all(ctx, s, scanKey, selectKeys+`WHERE ?1 = '' OR o.name = ?1 ORDER BY k.organization_id, k.id LIMIT 10000`, organizationName)
}

const selectKeys = `SELECT k.id, k.organization_id, k.name, k.prefix, k.user_id, u.email, m.role, k.created_at, k.last_used_at, k.expires_at, k.revoked_at
	FROM api_keys k
	JOIN organizations o ON o.id = k.organization_id
	JOIN users u ON u.id = k.user_id
	JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id `

func scanKey(row scanner) (k Key, err error) {
	var created int64
	var used, expires, revoked sql.NullInt64
	err = row.Scan(&k.ID, &k.organizationID, &k.Name, &k.Prefix, &k.UserID, &k.Email, &k.Role, &created, &used, &expires, &revoked)
	k.CreatedAt, k.LastUsedAt, k.ExpiresAt, k.RevokedAt = fromMillis(created), fromNull(used), fromNull(expires), fromNull(revoked)
	return k, err
}

// RevokeKey ends a key at once. Which is its id, its prefix or the key itself.
// Revoking a revoked key changes nothing.
func (s *Store) RevokeKey(ctx context.Context, which, remoteAddr string) (Key, error) {
	var k Key
	err := s.write(ctx, func(tx *Tx) error {
		ids, err := all(ctx, tx, scanString, `SELECT id FROM api_keys WHERE id = ? OR prefix = ? OR hash = ? LIMIT 2`,
			which, which, hashSecret(which))
		if err != nil {
			return err
		}
		switch len(ids) {
		case 0:
			return Errorf(NotFound, "no API key has that id or prefix")
		case 2:
			return Errorf(Conflict, "several API keys have that prefix: use the id")
		}
		k, err = s.revoke(ctx, tx, ids[0], remoteAddr)
		return err
	})
	return k, err
}

func (s *Store) revoke(ctx context.Context, tx *Tx, id, remoteAddr string) (Key, error) {
	n, err := tx.Exec(`UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, s.millis(), id)
	if err != nil {
		return Key{}, err
	}
	k, err := one(ctx, tx, scanKey, selectKeys+`WHERE k.id = ?`, id)
	if err != nil || n == 0 {
		return k, err
	}
	return k, s.audit(tx, Caller{OrganizationID: k.organizationID, RemoteAddr: remoteAddr}, "key.revoke", id, map[string]any{"name": k.Name})
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
