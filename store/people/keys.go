package people

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"journeyman/store/db"
)

// A Key is an API key without its secret.
type Key struct {
	ID         string
	Name       string
	Prefix     string // first 12 characters of the secret
	UserID     string
	Email      string
	Role       Role // '' if the user has left the organization: the key is revoked
	CreatedAt  time.Time
	LastUsedAt *time.Time // to the minute
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
	GrantID    string // the grant of OAuth whose access token it is; '' if a person created the key

	organizationID string
}

const (
	selectKeys = `SELECT k.id, k.organization_id, k.name, k.prefix, k.user_id, u.email, coalesce(m.role, ''),
			k.created_at, k.last_used_at, k.expires_at, k.revoked_at, coalesce(k.oauth_grant_id, '')
		FROM api_keys k
		JOIN organizations o ON o.id = k.organization_id
		JOIN users u ON u.id = k.user_id
		LEFT JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id `
	selectKey = selectKeys + `WHERE k.id = ?`
)

func scanKey(row db.Scanner) (k Key, err error) {
	err = row.Scan(&k.ID, &k.organizationID, &k.Name, &k.Prefix, &k.UserID, &k.Email, &k.Role, db.AsTime(&k.CreatedAt),
		db.AsTimeOrNil(&k.LastUsedAt), db.AsTimeOrNil(&k.ExpiresAt), db.AsTimeOrNil(&k.RevokedAt), &k.GrantID)
	return k, err
}

// audited returns the fields of a key that the audit log records.
func (k Key) audited() map[string]any {
	return map[string]any{"name": k.Name, "user": k.Email, "prefix": k.Prefix}
}

const selectIdentity = `
	SELECT k.id, k.name, k.prefix, k.organization_id, o.name, k.user_id, u.email, u.name, m.role,
	       coalesce(k.last_used_at, 0), k.expires_at, k.oauth_grant_id IS NOT NULL
	FROM api_keys k
	JOIN organizations o ON o.id = k.organization_id
	JOIN users u ON u.id = k.user_id
	JOIN memberships m ON m.organization_id = k.organization_id AND m.user_id = k.user_id
	WHERE k.hash = ? AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)`

// Authenticate returns the identity for which an API key acts. It returns Unauthorized for
// unknown, revoked and expired keys, and for access tokens of OAuth. A person who consents
// lets a program run workers, but does not open the rest of the API to it.
func (s *Store) Authenticate(ctx context.Context, secret string) (Identity, error) {
	return s.authenticate(ctx, secret, false)
}

// AuthenticateMCP is Authenticate for the MCP endpoint. It also accepts access tokens of
// OAuth.
func (s *Store) AuthenticateMCP(ctx context.Context, secret string) (Identity, error) {
	return s.authenticate(ctx, secret, true)
}

func (s *Store) authenticate(ctx context.Context, secret string, mcp bool) (Identity, error) {
	now, hash := s.db.Millis(), db.HashToken(secret)
	id, ok := s.known.identities.get(hash, s.known.moment(), now)
	if !ok || id.expires != nil && *id.expires <= now {
		var err error
		if id, err = s.readIdentity(ctx, hash, now, mcp); err != nil {
			return Identity{}, err
		}
	}
	// The time of use is stored at most once a minute, because otherwise each request would need a
	// write.
	s.noteUse(id.KeyID, id.used, now, func(tx db.Tx, minute int64) error {
		_, err := tx.Exec(`UPDATE api_keys SET last_used_at = max(?, created_at) WHERE id = ?`, minute, id.KeyID)
		return err
	})
	return id.Identity, nil
}

// readIdentity reads the identity of a key that is valid now, and remembers it unless the key is an
// access token.
func (s *Store) readIdentity(ctx context.Context, hash []byte, now int64, mcp bool) (id knownIdentity, err error) {
	moment := s.known.moment()
	id.Trigger = TriggerAPI
	var token bool
	_, err = db.One(ctx, s.db, db.Into(&id.KeyID, &id.KeyName, &id.KeyPrefix, &id.OrganizationID, &id.OrganizationName,
		&id.UserID, &id.Email, &id.UserName, &id.Role, &id.used, &id.expires, &token), selectIdentity, hash, now)
	switch {
	case err != nil:
		return id, db.NoRow(err, db.Errorf(db.Unauthorized, "the API key is unknown or has been revoked"))
	case token && !mcp:
		// The token is genuine, so the error may say what it is for.
		return id, db.Errorf(db.Unauthorized, "the access token is for the MCP endpoint alone: use an API key here")
	}
	if id.first, err = s.IsFirst(ctx, s.db, id.OrganizationID); err != nil {
		return id, err
	}
	if !token {
		s.known.identities.put(hash, id, moment, now)
	}
	return id, nil
}

// noteUse calls note in a later write, at most once a minute, to store the minute in which a key or
// session is in use; its first minute begins when it was created. used is the stored time of the last
// use. No request waits for this write, so a crash may lose it.
func (s *Store) noteUse(id string, used, now int64, note func(tx db.Tx, minute int64) error) {
	const minute = 60_000
	if s.gate.Writable() != nil || now-used < minute || !s.lastUse.first(id, now/minute) {
		return
	}
	s.db.WriteLater(func(tx db.Tx) error { return note(tx, now/minute*minute) })
}

// NewKey describes an API key to create. Only an Operator sets fields other than Name. The user and
// the organization are created if they do not exist.
type NewKey struct {
	Name             string // for people, and in the audit log
	Email            string // of the user; '' for the first owner
	Role             Role   // of the user in the organization; '' keeps it; a new user then gets the default role
	OrganizationName string // '' for the first organization
	Secret           string // '' to generate one
}

func (n NewKey) check() error {
	var f db.Fields
	db.CheckName(&f, "name", n.Name, db.MaxName)
	if n.OrganizationName != "" {
		db.CheckName(&f, "organization", n.OrganizationName, db.MaxName)
	}
	f.Check(n.Role == "" || n.Role.Valid(), "role", "must be owner, admin or member")
	f.Check(n.Secret == "" || len(n.Secret) >= 16 && len(n.Secret) <= 1000 && db.IsToken(n.Secret), "secret",
		"must have 16 to 1000 characters, all of them printable ASCII and none a space")
	f.Check(n.Email == "" || db.ValidEmail(n.Email), "user", "must be an email address")
	return f.Err()
}

// CreateKey creates an API key and returns it with its secret, which is not stored. The key acts
// for the caller, or for the user whom an Operator names in n. It returns Forbidden for a Member.
// If an Operator gives the secret of an existing key, that key stays as it is.
func (s *Store) CreateKey(ctx context.Context, c Caller, n NewKey) (k Key, secret string, err error) {
	return s.createKey(ctx, c, n, func(db.Tx) error { return nil })
}

// CreateFirstKey is CreateKey for an Operator where no key exists. Otherwise it returns an empty secret. Of
// several servers that start at once on an empty database, one creates the key.
func (s *Store) CreateFirstKey(ctx context.Context, n NewKey) (secret string, err error) {
	_, secret, err = s.createKey(ctx, Operator(), n, func(tx db.Tx) error {
		return db.RefuseIf(ctx, tx, errNotFirst,
			anyKey)
	})
	if errors.Is(err, errNotFirst) {
		return "", nil
	}
	return secret, err
}

// errNotFirst ends a write that would create a first secret where there is one.
var errNotFirst = errors.New("it is not the first one")

// createKey is CreateKey unless may returns an error.
func (s *Store) createKey(ctx context.Context, c Caller, n NewKey, may func(db.Tx) error) (k Key, secret string,
	err error) {
	if err := n.check(); err != nil {
		return Key{}, "", err
	}
	if !c.operator && n != (NewKey{Name: n.Name}) {
		return Key{}, "", db.Errorf(db.Forbidden, "a key acts for the user who creates it")
	}
	secret = cmp.Or(n.Secret, db.NewToken("jm_live_"))
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := may(tx); err != nil {
			return err
		}
		// The user of the key may have another address now, and must not be created again.
		k, err = db.One(ctx, tx, scanKey, selectKeys+`WHERE k.hash = ?`, db.HashToken(secret))
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := AllowNow(ctx, tx, &c, ManageKeys); err != nil {
			return err
		}
		holder := c // a member's key acts only for the member
		if c.operator {
			if holder, err = s.ensureMembership(tx, c, n.OrganizationName, n.Email, n.Role); err != nil {
				return err
			}
			c.OrganizationID = holder.OrganizationID
		}
		if k, err = s.insertKey(ctx, tx, holder, n.Name, secret); err != nil {
			return err
		}
		return s.Audit(tx, c, "key.create", k.ID, k.audited())
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// insertKey stores a key that acts for the holder.
func (s *Store) insertKey(ctx context.Context, tx db.Tx, holder Caller, name, secret string) (Key, error) {
	id := db.NewID("key", s.db.Now())
	_, err := tx.Exec(`INSERT INTO api_keys (id, organization_id, user_id, name, hash, prefix, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		id, holder.OrganizationID, holder.UserID, name, db.HashToken(secret), secret[:12], s.db.Millis())
	if err != nil {
		return Key{}, err
	}
	return db.One(ctx, tx, scanKey, selectKey, id)
}

const anyKey = `SELECT EXISTS (SELECT 1 FROM api_keys)`

// HasKeys reports whether any API key was ever created. It is false at the first start.
func (s *Store) HasKeys(ctx context.Context) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool, anyKey)
}

// Keys lists the API keys of the named organization, or of all for an empty name,
// oldest first. It is for the command line.
func (s *Store) Keys(ctx context.Context, organizationName string) ([]Key, error) {
	if organizationName != "" {
		_, err := db.One(ctx, s.db, db.ScanString, `SELECT id FROM organizations WHERE name = ?`, organizationName)
		if err != nil {
			return nil, db.NoRow(err, db.Errorf(db.NotFound, "no organization is named %q", organizationName))
		}
	}
	return db.All(ctx, s.db, scanKey, selectKeys+`WHERE ?1 = '' OR o.name = ?1
		ORDER BY k.organization_id, k.id LIMIT 10000`, organizationName)
}

// OrganizationKeys lists the API keys of the caller's organization, newest first,
// with those that are revoked or expired. It also returns the cursor of the next
// page, or "" after the last. It returns Forbidden for a Member.
func (s *Store) OrganizationKeys(ctx context.Context, c Caller, cursor string, limit int) ([]Key, string, error) {
	if err := c.Allow(ManageKeys); err != nil {
		return nil, "", err
	}
	var f db.Fields
	before, of := db.AboveIDs, db.ScopeOf("keys")
	of.Read(&f, cursor, &before)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	limit = db.PageLimit(limit)
	keys, err := db.All(ctx, s.db, scanKey, selectKeys+`WHERE k.organization_id = ? AND k.id < ?
		ORDER BY k.id DESC LIMIT ?`, c.OrganizationID, before, limit+1)
	page, next := db.Cut(keys, limit, of, func(k Key) []any { return []any{k.ID} })
	return page, next, err
}

// RevokeKey ends a key at once. A key that is revoked already stays as it is. manageableKey
// describes which keys a caller may name, and how.
func (s *Store) RevokeKey(ctx context.Context, c Caller, which string) (k Key, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if k, err = manageableKey(ctx, tx, &c, which); err != nil {
			return err
		}
		if k.GrantID != "" {
			// The whole grant ends. Otherwise the program would get a new access token with its
			// refresh token.
			g, err := db.One(ctx, tx, scanGrant, selectGrant+`WHERE g.id = ?`, k.GrantID)
			if err == nil {
				err = s.endGrant(tx, c, g, "with its key")
			}
			if err != nil {
				return err
			}
			k, err = db.One(ctx, tx, scanKey, selectKey, k.ID)
			return err
		}
		s.ForgetKnown(tx)
		n, err := tx.Exec(`UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`, s.db.Millis(), k.ID)
		if err != nil || n == 0 {
			return err
		}
		if k, err = db.One(ctx, tx, scanKey, selectKey, k.ID); err != nil {
			return err
		}
		return s.Audit(tx, c, "key.revoke", k.ID, k.audited())
	})
	return k, err
}

// RollGrace is how long a key stays valid after it was rolled, so that its users can
// change over to the successor.
const RollGrace = 24 * time.Hour

// RollKey creates the successor of a key, with the same user and name. It returns the
// successor with its secret, which is not stored. The old key stays valid for
// RollGrace. It returns a Conflict if the old key is revoked, was rolled before, or is the
// access token of a program. It returns Forbidden if an Admin rolls an Owner's key, because
// the successor acts as the Owner.
func (s *Store) RollKey(ctx context.Context, c Caller, which string) (k Key, secret string, err error) {
	secret = db.NewToken("jm_live_")
	err = s.db.Write(ctx, func(tx db.Tx) error {
		old, err := manageableKey(ctx, tx, &c, which)
		if err == nil && old.Role == RoleOwner {
			err = c.Allow(ManageOwners)
		}
		switch {
		case err != nil:
			return err
		case old.GrantID != "":
			return db.Errorf(db.Conflict, "the key is the access token of a program, which renews it by itself")
		case old.RevokedAt != nil:
			return db.Errorf(db.Conflict, "the API key is revoked: make a new one")
		case old.ExpiresAt != nil:
			return db.Errorf(db.Conflict, "the API key has been rolled already: roll its successor")
		}
		// The successor acts for the user of the old key, who need not be the caller.
		holder := Caller{OrganizationID: old.organizationID, UserID: old.UserID}
		if k, err = s.insertKey(ctx, tx, holder, old.Name, secret); err != nil {
			return err
		}
		s.ForgetKnown(tx)
		if _, err := tx.Exec(`UPDATE api_keys SET expires_at = ? WHERE id = ?`,
			s.db.Now().Add(RollGrace).UnixMilli(), old.ID); err != nil {
			return err
		}
		detail := old.audited()
		detail["successor"] = k.ID
		return s.Audit(tx, c, "key.roll", old.ID, detail)
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// manageableKey returns the key that a caller names and may manage. It returns Forbidden for a
// Member. Other members name a key of their organization by its id, and any other key is
// NotFound. The operator may also name a key by its prefix or its secret. manageableKey then
// sets c.OrganizationID to the key's organization, for the audit log.
func manageableKey(ctx context.Context, tx db.Tx, c *Caller, which string) (Key, error) {
	if err := AllowNow(ctx, tx, c, ManageKeys); err != nil {
		return Key{}, err
	}
	if !c.operator {
		// A key of another organization is NotFound, so that its id reveals nothing.
		k, err := db.One(ctx, tx, scanKey, selectKeys+`WHERE k.id = ? AND k.organization_id = ?`, which, c.OrganizationID)
		return k, db.NoRecord(err, "API key")
	}
	// Prefixes are not unique. Two rows are enough to notice that.
	keys, err := db.All(ctx, tx, scanKey, selectKeys+`WHERE k.id IN
		(SELECT id FROM api_keys WHERE id = ?1 OR prefix = ?1 OR hash = ?2) LIMIT 2`, which, db.HashToken(which))
	switch {
	case err != nil:
		return Key{}, err
	case len(keys) == 0:
		return Key{}, db.Errorf(db.NotFound, "no API key has that id or prefix")
	case len(keys) == 2:
		return Key{}, db.Errorf(db.Conflict, "several API keys have that prefix: use the id")
	}
	c.OrganizationID = keys[0].organizationID
	return keys[0], nil
}
