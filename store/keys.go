package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"
)

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
