package store

import (
	"context"
	"database/sql"
	"errors"
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
	Role       Role // '' where the user has left: the key is revoked
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
		// Its user may have another address by now, and must not be made anew.
		known, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM api_keys WHERE hash = ?)`, hashSecret(secret))
		if err != nil || known == 1 {
			return err
		}
		c, err := s.ensureMembership(tx, n)
		if err != nil {
			return err
		}
		id, made, err := s.insertKey(tx, c.OrganizationID, c.UserID, n.Name, secret)
		if err != nil || !made {
			return err
		}
		return s.audit(tx, Caller{OrganizationID: c.OrganizationID, RemoteAddr: n.RemoteAddr}, "key.create", id,
			map[string]any{"name": n.Name, "user": n.Email, "prefix": secret[:12]})
	})
	return secret, err
}

// insertKey writes a key's row, and says whether it did: not where the secret is
// that of a key already.
func (s *Store) insertKey(tx *Tx, organizationID, userID, name, secret string) (id string, made bool, err error) {
	id = NewID("key", s.now())
	n, err := tx.Exec(`INSERT INTO api_keys (id, organization_id, user_id, name, hash, prefix, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`,
		id, organizationID, userID, name, hashSecret(secret), secret[:12], s.millis())
	return id, n == 1, err
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
// first. An organization that is not there is NotFound.
func (s *Store) Keys(ctx context.Context, organizationName string) ([]Key, error) {
	if organizationName != "" {
		_, err := one(ctx, s, scanString, `SELECT id FROM organizations WHERE name = ?`, organizationName)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, Errorf(NotFound, "no organization is named %q", organizationName)
		}
		if err != nil {
			return nil, err
		}
	}
	return all(ctx, s, scanKey, selectKeys+`WHERE ?1 = '' OR o.name = ?1 ORDER BY k.organization_id, k.id LIMIT 10000`, organizationName)
}

const selectKeys = `SELECT k.id, k.organization_id, k.name, k.prefix, k.user_id, u.email, coalesce(m.role, ''), k.created_at, k.last_used_at, k.expires_at, k.revoked_at
	FROM api_keys k
	JOIN organizations o ON o.id = k.organization_id
	JOIN users u ON u.id = k.user_id
	LEFT JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id `

const selectKey = selectKeys + `WHERE k.id = ?`

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
	err := s.write(ctx, func(tx *Tx) (err error) {
		if k, err = findKey(ctx, tx, which); err == nil {
			k, err = s.revokeKey(ctx, tx, Caller{OrganizationID: k.organizationID, RemoteAddr: remoteAddr}, k)
		}
		return err
	})
	return k, err
}

// RollKey makes a successor of a key and gives it with its secret, which is not
// kept. Which is the old key's id, its prefix or the key itself; it stays valid for
// RollGrace, so that its users can change over.
func (s *Store) RollKey(ctx context.Context, which, remoteAddr string) (k Key, secret string, err error) {
	secret = newSecret("jm_live_")
	err = s.write(ctx, func(tx *Tx) error {
		old, err := findKey(ctx, tx, which)
		if err == nil {
			k, err = s.rollKey(ctx, tx, Caller{OrganizationID: old.organizationID, RemoteAddr: remoteAddr}, old, secret)
		}
		return err
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// findKey gives the key that the command line names.
func findKey(ctx context.Context, tx *Tx, which string) (Key, error) {
	keys, err := all(ctx, tx, scanKey, selectKeys+`WHERE k.id IN (SELECT id FROM api_keys WHERE id = ?1 OR prefix = ?1 OR hash = ?2) LIMIT 2`,
		which, hashSecret(which))
	switch {
	case err != nil:
		return Key{}, err
	case len(keys) == 0:
		return Key{}, Errorf(NotFound, "no API key has that id or prefix")
	case len(keys) == 2:
		return Key{}, Errorf(Conflict, "several API keys have that prefix: use the id")
	}
	return keys[0], nil
}

// revokeKey ends a key on behalf of c.
func (s *Store) revokeKey(ctx context.Context, tx *Tx, c Caller, k Key) (Key, error) {
	n, err := tx.Exec(`UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, s.millis(), k.ID)
	if err != nil || n == 0 {
		return k, err
	}
	if k, err = one(ctx, tx, scanKey, selectKey, k.ID); err != nil {
		return k, err
	}
	return k, s.audit(tx, c, "key.revoke", k.ID, map[string]any{"name": k.Name, "user": k.Email, "prefix": k.Prefix})
}

// RollGrace is how long a key that was rolled stays valid.
const RollGrace = 24 * time.Hour

// rollKey makes the successor of a key on behalf of c: same user, same name.
func (s *Store) rollKey(ctx context.Context, tx *Tx, c Caller, old Key, secret string) (Key, error) {
	if old.RevokedAt != nil {
		return Key{}, Errorf(Conflict, "the API key is revoked: make a new one")
	}
	if old.ExpiresAt != nil {
		return Key{}, Errorf(Conflict, "the API key has been rolled already: roll its successor")
	}
	id, _, err := s.insertKey(tx, old.organizationID, old.UserID, old.Name, secret)
	if err != nil {
		return Key{}, err
	}
	if _, err := tx.Exec(`UPDATE api_keys SET expires_at = ? WHERE id = ?`, s.now().Add(RollGrace).UnixMilli(), old.ID); err != nil {
		return Key{}, err
	}
	err = s.audit(tx, c, "key.roll", old.ID, map[string]any{"name": old.Name, "user": old.Email, "prefix": old.Prefix, "successor": id})
	if err != nil {
		return Key{}, err
	}
	return one(ctx, tx, scanKey, selectKey, id)
}
