package store

import "context"

// The keys of an organization as the people in it manage them. The command line
// goes past this, see keys.go: it owns the data folder.

// OrganizationKeys lists the API keys of the caller's organization, those revoked
// and expired included, newest first, and the cursor of the next page, none after
// the last. A Member is Forbidden.
func (s *Store) OrganizationKeys(ctx context.Context, c Caller, cursor string, limit int) ([]Key, string, error) {
	if err := c.Allow(ManageKeys); err != nil {
		return nil, "", err
	}
	before, err := parseIDCursor("key", cursor)
	if err != nil {
		return nil, "", Fields{{Path: "cursor", Message: "is not a nextCursor of this list"}}.Err()
	}
	limit = pageLimit(limit)
	keys, err := all(ctx, s, scanKey, selectKeys+`WHERE k.organization_id = ? AND k.id < ? ORDER BY k.id DESC LIMIT ?`,
		c.OrganizationID, before, limit+1)
	if err != nil || len(keys) <= limit {
		return keys, "", err
	}
	return keys[:limit], formatIDCursor(keys[limit-1].ID), nil
}

// CreateKeyAs makes an API key that acts for the caller, and gives it with its
// secret, which is not kept.
func (s *Store) CreateKeyAs(ctx context.Context, c Caller, name string) (k Key, secret string, err error) {
	if err := (NewKey{Name: name}).check(); err != nil {
		return Key{}, "", err
	}
	secret = newSecret("jm_live_")
	err = s.write(ctx, func(tx *Tx) error {
		if err := s.mayManageKeys(ctx, tx, &c); err != nil {
			return err
		}
		id, _, err := s.insertKey(tx, c.OrganizationID, c.UserID, name, secret)
		if err != nil {
			return err
		}
		if k, err = one(ctx, tx, scanKey, selectKey, id); err != nil {
			return err
		}
		return s.audit(tx, c, "key.create", id, map[string]any{"name": name, "user": k.Email, "prefix": k.Prefix})
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// RevokeKeyAs ends a key of the caller's organization at once; one revoked already
// stays as it is. A Member is Forbidden.
func (s *Store) RevokeKeyAs(ctx context.Context, c Caller, keyID string) (k Key, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		if k, err = s.manageableKey(ctx, tx, &c, keyID); err == nil {
			k, err = s.revokeKey(ctx, tx, c, k)
		}
		return err
	})
	return k, err
}

// RollKeyAs makes the successor of a key of the caller's organization and gives it
// with its secret, which is not kept; the old one stays valid for RollGrace. It is a
// Conflict if the old one is revoked or has been rolled before. A Member is
// Forbidden, and so is an Admin with an Owner's key: its secret acts as the Owner.
func (s *Store) RollKeyAs(ctx context.Context, c Caller, keyID string) (k Key, secret string, err error) {
	secret = newSecret("jm_live_")
	err = s.write(ctx, func(tx *Tx) error {
		old, err := s.manageableKey(ctx, tx, &c, keyID)
		if err == nil && old.Role == RoleOwner {
			err = c.Allow(ManageOwners)
		}
		if err == nil {
			k, err = s.rollKey(ctx, tx, c, old, secret)
		}
		return err
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, nil
}

// mayManageKeys is a Forbidden error where the caller may not manage keys. It sets the
// caller's role to what it is at this moment, as mayManage does.
func (s *Store) mayManageKeys(ctx context.Context, tx *Tx, c *Caller) (err error) {
	if c.Role, err = s.role(ctx, tx, c.OrganizationID, c.UserID); err != nil {
		return err
	}
	return c.Allow(ManageKeys)
}

// manageableKey gives a key that the caller may manage. One of another organization
// is NotFound, as if there were none.
func (s *Store) manageableKey(ctx context.Context, tx *Tx, c *Caller, keyID string) (Key, error) {
	if err := s.mayManageKeys(ctx, tx, c); err != nil {
		return Key{}, err
	}
	k, err := one(ctx, tx, scanKey, selectKeys+`WHERE k.id = ? AND k.organization_id = ?`, keyID, c.OrganizationID)
	return k, notFound(err, "API key")
}
