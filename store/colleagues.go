package store

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// A Colleague is a member of an organization.
type Colleague struct {
	UserID      string
	Email       string
	Name        string
	Role        Role
	HasPassword bool // without one they cannot sign in
	JoinedAt    time.Time
}

const selectColleagues = `SELECT u.id, u.email, u.name, m.role, u.password_hash IS NOT NULL, m.created_at
	FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.organization_id = ? `

func scanColleague(row scanner) (p Colleague, err error) {
	var joined int64
	err = row.Scan(&p.UserID, &p.Email, &p.Name, &p.Role, &p.HasPassword, &joined)
	p.JoinedAt = fromMillis(joined)
	return p, err
}

// Colleagues lists the members of the caller's organization, those who became users
// first at the top, and the cursor of the next page, ” after the last. Every member
// may ask: whom one works with is no secret.
func (s *Store) Colleagues(ctx context.Context, c Caller, cursor string, limit int) ([]Colleague, string, error) {
	after := ""
	if cursor != "" {
		var err error
		if after, err = parseIDCursor("usr", cursor); err != nil {
			return nil, "", Fields{{Path: "cursor", Message: "is not a nextCursor of this list"}}.Err()
		}
	}
	limit = pageLimit(limit)
	list, err := all(ctx, s, scanColleague, selectColleagues+`AND m.user_id > ? ORDER BY m.user_id LIMIT ?`, c.OrganizationID, after, limit+1)
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], formatIDCursor(list[limit-1].UserID), nil
}

// Colleague gives a member of the caller's organization.
func (s *Store) Colleague(ctx context.Context, c Caller, userID string) (Colleague, error) {
	p, err := one(ctx, s, scanColleague, selectColleagues+`AND m.user_id = ?`, c.OrganizationID, userID)
	return p, notFound(err, "member of this organization")
}

// memberRole is role, and NotFound for who is no member.
func (s *Store) memberRole(ctx context.Context, q querier, organizationID, userID string) (Role, error) {
	role, err := s.role(ctx, q, organizationID, userID)
	if err == nil && role == "" {
		err = Errorf(NotFound, "no member of this organization has that id")
	}
	return role, err
}

// mayManage is a Forbidden error where the caller may not manage members of that
// role. It sets the caller's role to what it is at this moment: a request that was on
// its way when an Admin was demoted must not pass.
func (s *Store) mayManage(ctx context.Context, q querier, c *Caller, role Role) (err error) {
	if c.Role, err = s.role(ctx, q, c.OrganizationID, c.UserID); err != nil {
		return err
	}
	if err := c.Allow(ManageMembers); err != nil || role != RoleOwner {
		return err
	}
	return c.Allow(ManageOwners)
}

// ChangeRole gives a member of the caller's organization another role, which holds
// for their keys and sessions at once. Only Owners make Owners and change them; it
// is a Conflict to leave the organization without one.
func (s *Store) ChangeRole(ctx context.Context, c Caller, userID string, role Role) (p Colleague, err error) {
	if !role.Valid() {
		return p, Fields{{Path: "role", Message: "must be owner, admin or member"}}.Err()
	}
	err = s.write(ctx, func(tx *Tx) error {
		old, err := s.memberRole(ctx, tx, c.OrganizationID, userID)
		if err != nil {
			return err
		}
		for _, r := range []Role{old, role} {
			if err := s.mayManage(ctx, tx, &c, r); err != nil {
				return err
			}
		}
		if p, err = one(ctx, tx, scanColleague, selectColleagues+`AND m.user_id = ?`, c.OrganizationID, userID); err != nil || old == role {
			return err
		}
		if err := s.keepOwner(ctx, tx, c.OrganizationID, userID, old); err != nil {
			return err
		}
		if err := s.putRole(tx, c.OrganizationID, userID, role); err != nil {
			return err
		}
		p.Role = role
		return s.audit(tx, c, "member.role", userID, map[string]any{"user": p.Email, "from": old, "to": role})
	})
	return p, err
}

// putRole sets a member's role. What was made in the old one to get in with ends.
func (s *Store) putRole(tx *Tx, organizationID, userID string, role Role) error {
	if _, err := tx.Exec(`UPDATE memberships SET role = ? WHERE organization_id = ? AND user_id = ?`, role, organizationID, userID); err != nil {
		return err
	}
	if err := endLinks(tx, userID); err != nil {
		return err
	}
	return endLinksBy(tx, organizationID, userID)
}

// keepOwner is a Conflict where the user is the organization's only owner.
func (s *Store) keepOwner(ctx context.Context, tx *Tx, organizationID, userID string, role Role) error {
	if role != RoleOwner {
		return nil
	}
	others, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM memberships WHERE organization_id = ? AND role = 'owner' AND user_id <> ?)`,
		organizationID, userID)
	if err == nil && others == 0 {
		return Errorf(Conflict, "an organization needs an owner, and this is the only one: make somebody else an owner first")
	}
	return err
}

// RemoveMember ends a membership of the caller's organization. Its keys, and the
// sessions that look at the organization, end at once; its schedules pause, and
// its workers become the caller's, so that somebody can change them. Turns that
// were accepted run on.
func (s *Store) RemoveMember(ctx context.Context, c Caller, userID string) (p Colleague, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		role, err := s.memberRole(ctx, tx, c.OrganizationID, userID)
		if err != nil {
			return err
		}
		if err := s.mayManage(ctx, tx, &c, role); err != nil {
			return err
		}
		if userID == c.UserID {
			return Errorf(Conflict, "you cannot remove yourself: ask another Admin or Owner")
		}
		if err := s.keepOwner(ctx, tx, c.OrganizationID, userID, role); err != nil {
			return err
		}
		if p, err = one(ctx, tx, scanColleague, selectColleagues+`AND m.user_id = ?`, c.OrganizationID, userID); err != nil {
			return err
		}
		ended, err := s.endMembership(tx, c, userID)
		if err != nil {
			return err
		}
		ended["user"], ended["role"] = p.Email, role
		return s.audit(tx, c, "member.remove", userID, ended)
	})
	return p, err
}

// endMembership deletes a membership and all that hangs on it, and counts that.
func (s *Store) endMembership(tx *Tx, c Caller, userID string) (counts map[string]any, err error) {
	now := s.millis()
	counts = map[string]any{}
	for _, end := range []struct {
		what, query string
		args        []any
	}{
		{"keys", `UPDATE api_keys SET revoked_at = ? WHERE organization_id = ? AND user_id = ? AND revoked_at IS NULL`, []any{now, c.OrganizationID, userID}},
		{"sessions", `DELETE FROM sessions WHERE user_id = ? AND organization_id = ?`, []any{userID, c.OrganizationID}},
		{"schedules", `UPDATE schedules SET paused = 1 WHERE organization_id = ? AND created_by_user_id = ? AND next_run_at IS NOT NULL AND paused = 0`,
			[]any{c.OrganizationID, userID}},
		{"", `DELETE FROM worker_members WHERE user_id = ? AND EXISTS (SELECT 1 FROM workers w WHERE w.id = worker_id AND w.organization_id = ?)`,
			[]any{userID, c.OrganizationID}},
		// One that somebody was invited by before they came in another way.
		{"", `DELETE FROM links WHERE organization_id = ? AND kind = 'invitation' AND email = (SELECT email FROM users WHERE id = ?)`, []any{c.OrganizationID, userID}},
		{"workers", `UPDATE workers SET user_id = ? WHERE organization_id = ? AND user_id = ? AND deleted_at IS NULL`, []any{c.UserID, c.OrganizationID, userID}},
		{"", `DELETE FROM memberships WHERE organization_id = ? AND user_id = ?`, []any{c.OrganizationID, userID}},
	} {
		n, err := tx.Exec(end.query, end.args...)
		if err != nil {
			return nil, err
		}
		if end.what != "" && n > 0 {
			counts[end.what] = n
		}
	}
	if err := endLinks(tx, userID); err != nil {
		return nil, err
	}
	return counts, endLinksBy(tx, c.OrganizationID, userID)
}

// RenameUser changes the name of the caller.
func (s *Store) RenameUser(ctx context.Context, c Caller, name string) error {
	var f Fields
	NewUser{Name: name}.checkName(&f)
	if err := f.Err(); err != nil {
		return err
	}
	name = strings.TrimSpace(name)
	return s.write(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`UPDATE users SET name = ?1 WHERE id = ?2 AND name <> ?1`, name, c.UserID)
		if err != nil || n == 0 {
			return err
		}
		return s.auditUser(ctx, tx, c, c.UserID, "user.name", map[string]any{"name": name})
	})
}

// A User is a person as the command line lists them.
type User struct {
	ID               string
	Email            string
	Name             string
	HasPassword      bool
	OrganizationName string // '' for who is in none
	Role             Role
}

// Users lists all users, one for each of their organizations, by email address.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	return all(ctx, s, func(row scanner) (u User, err error) {
		return u, row.Scan(&u.ID, &u.Email, &u.Name, &u.HasPassword, &u.OrganizationName, &u.Role)
	}, `SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL, coalesce(o.name, ''), coalesce(m.role, '')
		FROM users u LEFT JOIN memberships m ON m.user_id = u.id LEFT JOIN organizations o ON o.id = m.organization_id
		ORDER BY u.email LIMIT 10000`)
}

// OrganizationSettings are what an Owner decides for an organization.
type OrganizationSettings struct {
	Name             string
	MonthlyCreditCap *float64 // nil for none
}

// OrganizationSettings gives the settings of the caller's organization, and the
// nano-dollars it has spent this month. All but Owners are Forbidden.
func (s *Store) OrganizationSettings(ctx context.Context, c Caller) (o OrganizationSettings, spent int64, err error) {
	if err := c.Allow(ManageOrganization); err != nil {
		return o, 0, err
	}
	return s.organizationSettings(ctx, s, c)
}

func (s *Store) organizationSettings(ctx context.Context, q querier, c Caller) (o OrganizationSettings, spent int64, err error) {
	_, err = one(ctx, q, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&o.Name, &o.MonthlyCreditCap, &spent) },
		`SELECT name, monthly_credit_cap, coalesce((SELECT cost FROM spending WHERE organization_id = ?1 AND month = ?2), 0)
		FROM organizations WHERE id = ?1`, c.OrganizationID, month(s.now()))
	return o, spent, err
}

// UpdateOrganization changes the settings of the caller's organization. A name that
// is another organization's is an Invalid field. All but Owners are Forbidden.
func (s *Store) UpdateOrganization(ctx context.Context, c Caller, o OrganizationSettings) error {
	var f Fields
	o.Name = strings.TrimSpace(o.Name)
	f.Check(o.Name != "" && utf8.RuneCountInString(o.Name) <= maxName, "name", "must have 1 to %d characters", maxName)
	f.Check(o.MonthlyCreditCap == nil || *o.MonthlyCreditCap >= 0, "monthlyCreditCap", "must be 0 or more") // nor is NaN
	if err := f.Err(); err != nil {
		return err
	}
	return s.write(ctx, func(tx *Tx) (err error) {
		if c.Role, err = s.role(ctx, tx, c.OrganizationID, c.UserID); err != nil {
			return err
		}
		if err := c.Allow(ManageOrganization); err != nil {
			return err
		}
		was, _, err := s.organizationSettings(ctx, tx, c)
		if err != nil {
			return err
		}
		taken, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM organizations WHERE name = ? AND id <> ?)`, o.Name, c.OrganizationID)
		if err != nil {
			return err
		}
		if taken == 1 {
			return Fields{{Path: "name", Message: "is another organization's"}}.Err()
		}
		if _, err := tx.Exec(`UPDATE organizations SET name = ?, monthly_credit_cap = ? WHERE id = ?`, o.Name, creditsOrNull(o.MonthlyCreditCap), c.OrganizationID); err != nil {
			return err
		}
		return s.auditOrganization(tx, c, was, o)
	})
}

func (s *Store) auditOrganization(tx *Tx, c Caller, was, o OrganizationSettings) error {
	if was.Name != o.Name {
		if err := s.audit(tx, c, "organization.name", c.OrganizationID, map[string]any{"from": was.Name, "to": o.Name}); err != nil {
			return err
		}
	}
	from, to := creditsOrNull(was.MonthlyCreditCap), creditsOrNull(o.MonthlyCreditCap)
	if from == to {
		return nil
	}
	return s.audit(tx, c, "organization.cap", c.OrganizationID, map[string]any{"from": from, "to": to})
}

// creditsOrNull is a cap as the database and the audit log have it.
func creditsOrNull(credits *float64) any {
	if credits == nil {
		return nil
	}
	return *credits
}
