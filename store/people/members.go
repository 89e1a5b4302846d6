package people

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/store/db"
)

// A Member is a user in an organization.
type Member struct {
	UserID      string
	Email       string
	Name        string
	Role        Role
	HasPassword bool // needed to sign in
	JoinedAt    time.Time
}

const selectMembers = `SELECT u.id, u.email, u.name, m.role, u.password_hash IS NOT NULL, m.created_at
	FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.organization_id = ? `

func scanMember(row db.Scanner) (m Member, err error) {
	err = row.Scan(&m.UserID, &m.Email, &m.Name, &m.Role, &m.HasPassword, db.AsTime(&m.JoinedAt))
	return m, err
}

// Members lists the members of the caller's organization, the oldest users first, and
// the cursor of the next page, or "" after the last. Every member may see it.
func (s *Store) Members(ctx context.Context, c Caller, cursor string, limit int) ([]Member, string, error) {
	var f db.Fields
	after, of := "", db.ScopeOf("members")
	of.Read(&f, cursor, &after)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	limit = db.PageLimit(limit)
	list, err := db.All(ctx, s.db, scanMember, selectMembers+`AND m.user_id > ? ORDER BY m.user_id LIMIT ?`,
		c.OrganizationID, after, limit+1)
	page, next := db.Cut(list, limit, of, func(m Member) []any { return []any{m.UserID} })
	return page, next, err
}

// Member returns a member of the caller's organization.
func (s *Store) Member(ctx context.Context, c Caller, userID string) (Member, error) {
	return readMember(ctx, s.db, c, userID)
}

func readMember(ctx context.Context, q db.Querier, c Caller, userID string) (Member, error) {
	m, err := db.One(ctx, q, scanMember, selectMembers+`AND m.user_id = ?`, c.OrganizationID, userID)
	return m, db.NoRow(err, db.Errorf(db.NotFound, "no member of this organization has that id"))
}

// ChangeRole changes the role of a member of the caller's organization, and thereby of the member's
// keys and sessions. Only Owners may create and change Owners. It returns a Conflict if the
// organization would have no Owner.
func (s *Store) ChangeRole(ctx context.Context, c Caller, userID string, role Role) (m Member, err error) {
	if !role.Valid() {
		return m, db.Fields{{Path: "role", Message: "must be owner, admin or member"}}.Err()
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if m, err = readMember(ctx, tx, c, userID); err != nil {
			return err
		}
		old := m.Role
		// The caller must manage the role before and after: an Admin may neither demote
		// an Owner nor promote a member to one.
		for _, r := range []Role{old, role} {
			if err := allowManaging(ctx, tx, &c, r); err != nil {
				return err
			}
		}
		if old == role {
			return nil
		}
		if err := checkLastOwner(ctx, tx, c, m); err != nil {
			return err
		}
		m.Role = role
		return s.setRole(tx, c, m, old)
	})
	return m, err
}

// setRole stores the new role of a member. It ends the links of the member and the links that the
// member created, because they may permit more than the new role.
func (s *Store) setRole(tx db.Tx, c Caller, m Member, old Role) error {
	s.ForgetKnown(tx)
	if _, err := tx.Exec(`UPDATE memberships SET role = ? WHERE organization_id = ? AND user_id = ?`,
		m.Role, c.OrganizationID, m.UserID); err != nil {
		return err
	}
	if err := endLinks(tx, m.UserID); err != nil {
		return err
	}
	if err := endLinksBy(tx, c.OrganizationID, m.UserID); err != nil {
		return err
	}
	return s.Audit(tx, c, "member.role", m.UserID, map[string]any{"user": m.Email, "from": old, "to": m.Role})
}

// checkLastOwner returns a Conflict if the member is the organization's only Owner.
func checkLastOwner(ctx context.Context, tx db.Tx, c Caller, m Member) error {
	if m.Role != RoleOwner {
		return nil
	}
	others, err := db.One(ctx, tx, db.ScanBool, `SELECT EXISTS (SELECT 1 FROM memberships
		WHERE organization_id = ? AND role = 'owner' AND user_id <> ?)`, c.OrganizationID, m.UserID)
	if err == nil && !others {
		return db.Errorf(db.Conflict, "an organization needs an owner, and this is the only one: "+
			"make somebody else an owner first")
	}
	return err
}

// RemoveMember ends a membership of the caller's organization. The member's keys and sessions there
// end at once, their schedules pause, and their workers become the caller's, so that somebody can
// change them. Accepted turns continue.
func (s *Store) RemoveMember(ctx context.Context, c Caller, userID string) (m Member, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if m, err = readMember(ctx, tx, c, userID); err != nil {
			return err
		}
		if err := allowManaging(ctx, tx, &c, m.Role); err != nil {
			return err
		}
		if userID == c.UserID {
			return db.Errorf(db.Conflict, "you cannot remove yourself: ask another Admin or Owner")
		}
		// The last Owner stays: without one, nobody could manage the organization.
		if err := checkLastOwner(ctx, tx, c, m); err != nil {
			return err
		}
		// One transaction also writes the audit entry. So a key never exists without its member.
		ended, err := s.endMembership(tx, c, userID)
		if err != nil {
			return err
		}
		ended["user"], ended["role"] = m.Email, m.Role
		return s.Audit(tx, c, "member.remove", userID, ended)
	})
	return m, err
}

// endMembership deletes a membership and everything that depends on it. It returns
// the number of rows that changed, for the audit log.
func (s *Store) endMembership(tx db.Tx, c Caller, userID string) (counts map[string]any, err error) {
	counts = map[string]any{}
	org := c.OrganizationID
	if err := s.onLeave(context.Background(), tx, org, userID); err != nil {
		return nil, err
	}
	s.ForgetKnown(tx)
	// Each query names the organization. The user may be in others, which stay as they are.
	for _, end := range []struct {
		counted, query string
		args           []any
	}{
		{"keys", `UPDATE api_keys SET revoked_at = ? WHERE organization_id = ? AND user_id = ? AND revoked_at IS NULL`,
			[]any{s.db.Millis(), org, userID}},
		{"programs", `UPDATE oauth_grants SET revoked_at = ?, code_hash = NULL, refresh_hash = NULL
			WHERE organization_id = ? AND user_id = ? AND revoked_at IS NULL`, []any{s.db.Millis(), org, userID}},
		{"sessions", `DELETE FROM sessions WHERE user_id = ? AND organization_id = ?`, []any{userID, org}},
		{"schedules", `UPDATE schedules SET paused = 1
			WHERE organization_id = ? AND created_by_user_id = ? AND next_run_at IS NOT NULL AND paused = 0`,
			[]any{org, userID}},
		{"", `DELETE FROM worker_members
			WHERE user_id = ? AND EXISTS (SELECT 1 FROM workers w WHERE w.id = worker_id AND w.organization_id = ?)`,
			[]any{userID, org}},
		{"", `DELETE FROM worker_pins WHERE organization_id = ? AND user_id = ?`, []any{org, userID}},
		// This invitation is still open if the member has joined in another way.
		{"", `DELETE FROM links WHERE organization_id = ? AND kind = 'invitation'
			AND email = (SELECT email FROM users WHERE id = ?)`, []any{org, userID}},
		{"workers", `UPDATE workers SET user_id = ? WHERE organization_id = ? AND user_id = ? AND deleted_at IS NULL`,
			[]any{c.UserID, org, userID}},
		{"", `DELETE FROM memberships WHERE organization_id = ? AND user_id = ?`, []any{org, userID}},
	} {
		n, err := tx.Exec(end.query, end.args...)
		if err != nil {
			return nil, err
		}
		if end.counted != "" && n > 0 {
			counts[end.counted] = n
		}
	}
	if err := endLinks(tx, userID); err != nil {
		return nil, err
	}
	return counts, endLinksBy(tx, org, userID)
}

// ensureMembership returns the user with that email address as a Caller in the named organization.
// It creates the user, the organization and the membership if they do not exist. Without an address
// it returns the first Owner. role becomes the role of the user; if it is "", a member keeps the
// present role.
func (s *Store) ensureMembership(tx db.Tx, by Caller, organizationName, email string, role Role) (c Caller, err error) {
	ctx, created := context.Background(), false
	if c.OrganizationID, created, err = s.ensureOrganization(tx, organizationName); err != nil {
		return c, err
	}
	if email == "" { // the first owner
		c.UserID, err = db.One(ctx, tx, db.ScanString, `SELECT user_id FROM memberships
			WHERE organization_id = ? AND role = 'owner' ORDER BY created_at, user_id LIMIT 1`, c.OrganizationID)
		return c, db.NoRow(err, db.Errorf(db.Invalid, "the organization has no owner yet: name a user"))
	}
	if c.UserID, err = s.ensureUser(tx, email); err != nil {
		return c, err
	}
	if role == "" && created {
		role = RoleOwner // a new organization needs one
	}
	by.OrganizationID = c.OrganizationID // the organization whose audit log records the change
	return c, s.ensureRole(ctx, tx, by, Member{UserID: c.UserID, Email: email, Role: role})
}

// ensureRole makes the user m a member with the role that m has. If that role is "", a member keeps
// the present role.
func (s *Store) ensureRole(ctx context.Context, tx db.Tx, by Caller, m Member) error {
	old, err := ReadRole(ctx, tx, by.OrganizationID, m.UserID)
	if err != nil || old != "" && (m.Role == "" || m.Role == old) {
		return err
	}
	// The audit log gets member.role for a changed role, and member.add only for a new
	// member.
	if old != "" {
		return s.setRole(tx, by, m, old)
	}
	if err := checkProven(ctx, tx, m); err != nil {
		return err
	}
	if m.Role == "" {
		m.Role = RoleMember
	}
	if err := s.insertMembership(tx, by.OrganizationID, m); err != nil {
		return err
	}
	return s.Audit(tx, by, "member.add", m.UserID, map[string]any{"user": m.Email, "role": m.Role})
}

// checkProven returns a Conflict if only another organization vouches that the user has that email address. Whoever
// manages that organization may hold the account, so the address alone must not make it a member here.
func checkProven(ctx context.Context, tx db.Tx, m Member) error {
	return db.RefuseIf(ctx, tx, db.Errorf(db.Conflict,
		"nothing proves that the account %[1]s belongs to the holder of that "+
			"address, because a link of another organization set its password: run journeyman user reset %[1]s on the "+
			"server, give the link to the holder of the address, who chooses a new password with it, and then try again",
		m.Email),
		`SELECT EXISTS (SELECT 1 FROM users WHERE id = ? AND unproven = 1)`, m.UserID)
}

// insertMembership makes a user a member, unless they are one. It ends the user's links. They were
// created by members who manage the user's other organizations, and would give access to this one,
// too.
func (s *Store) insertMembership(tx db.Tx, organizationID string, m Member) error {
	if err := endLinks(tx, m.UserID); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (?, ?, ?, ?)
		ON CONFLICT (organization_id, user_id) DO NOTHING`, organizationID, m.UserID, m.Role, s.db.Millis())
	return err
}

// ensureUser returns the id of the user with that email address. It creates the user if there is
// none.
func (s *Store) ensureUser(tx db.Tx, email string) (string, error) {
	id, err := db.One(context.Background(), tx, db.ScanString, `SELECT id FROM users WHERE email = ?`, email)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	id = db.NewID("usr", s.db.Now())
	name, _, _ := strings.Cut(email, "@")
	_, err = tx.Exec(`INSERT INTO users (id, email, name, created_at) VALUES (?, ?, ?, ?)`, id, email, name, s.db.Millis())
	return id, err
}

// Owner returns the user with that email address as a Caller who owns the first
// organization. It creates both if they do not exist. Commands on the data folder
// itself use it.
func (s *Store) Owner(ctx context.Context, email string) (c Caller, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		c, err = s.ensureMembership(tx, Operator(), "", email, RoleOwner)
		return err
	})
	c.Role, c.Trigger = RoleOwner, TriggerAPI
	return c, err
}

// A NewUser holds the fields that the holder of a link fills in.
type NewUser struct {
	Name     string
	Password string
	Email    string // with a welcome: the new address to sign in with
}

// RenameUser changes the name of the caller.
func (s *Store) RenameUser(ctx context.Context, c Caller, name string) error {
	var f db.Fields
	db.CheckName(&f, "name", name, db.MaxName)
	if err := f.Err(); err != nil {
		return err
	}
	name = strings.TrimSpace(name)
	return s.db.Write(ctx, func(tx db.Tx) error {
		s.ForgetKnown(tx)
		n, err := tx.Exec(`UPDATE users SET name = ?1 WHERE id = ?2 AND name <> ?1`, name, c.UserID)
		if err != nil || n == 0 {
			return err
		}
		return s.auditUser(ctx, tx, c, c.UserID, "user.name", map[string]any{"name": name})
	})
}

// maxLanguage is the length of the longest code of a language, in characters.
const maxLanguage = 16

// SetPreferences changes the caller's settings of the pages. The audit log does not record this,
// because nobody else's pages change.
func (s *Store) SetPreferences(ctx context.Context, c Caller, p Preferences) error {
	var f db.Fields
	if !slices.Contains([]string{"", "light", "dark"}, p.Theme) {
		f.Add("theme", `must be "light", "dark" or empty`)
	}
	if utf8.RuneCountInString(p.Language) > maxLanguage {
		f.Add("language", "must be the code of a language, such as de")
	}
	if err := f.Err(); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE users SET theme = ?, language = ?, shortcuts = ? WHERE id = ?`,
			db.Nullable(p.Theme), db.Nullable(p.Language), p.Shortcuts, c.UserID)
		return err
	})
}

// A User is a person as the command line lists them.
type User struct {
	ID               string
	Email            string
	Name             string
	HasPassword      bool
	OrganizationName string // '' for a user who is in none
	Role             Role
}

// Users lists all users by email address, once for each of their organizations.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	return db.All(ctx, s.db, func(row db.Scanner) (u User, err error) {
		return u, row.Scan(&u.ID, &u.Email, &u.Name, &u.HasPassword, &u.OrganizationName, &u.Role)
	}, `SELECT u.id, u.email, u.name, u.password_hash IS NOT NULL, coalesce(o.name, ''), coalesce(m.role, '')
		FROM users u LEFT JOIN memberships m ON m.user_id = u.id LEFT JOIN organizations o ON o.id = m.organization_id
		ORDER BY u.email LIMIT 10000`)
}

// UserName returns the name of a user, or the email address if they have none. The
// caller has seen a task or an approval in which the user is named.
func (s *Store) UserName(ctx context.Context, id string) (string, error) {
	name, err := db.One(ctx, s.db, db.ScanString,
		`SELECT CASE name WHEN '' THEN email ELSE name END FROM users WHERE id = ?`,
		id)
	return name, db.NoRecord(err, "user")
}
