package people

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"journeyman/store/db"
)

// maxInvitations is how many invitations may be open in one organization.
const maxInvitations = 1000

// CreateInvitation creates a link with which the holder of that email address joins the caller's
// organization. It returns the link with its token, which is not stored. The link replaces an
// earlier invitation of the address. It returns Forbidden for a role above the caller's.
func (s *Store) CreateInvitation(ctx context.Context, c Caller, email string,
	role Role) (l Link, token string, err error) {
	var f db.Fields
	email = strings.TrimSpace(email)
	f.Check(db.ValidEmail(email), "email", "must be an email address")
	f.Check(role.Valid(), "role", "must be owner, admin or member")
	if err := f.Err(); err != nil {
		return Link{}, "", err
	}
	if err := s.gate.RoomIn(ctx); err != nil {
		return Link{}, "", err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := allowManaging(ctx, tx, &c, role); err != nil {
			return err
		}
		if err := checkInvitation(ctx, tx, c, email); err != nil {
			return err
		}
		l, token, err = s.insertLink(ctx, tx, c, Link{Kind: LinkInvitation, Email: email, Role: role},
			InvitationLifetime)
		if err != nil {
			return err
		}
		return s.Audit(tx, c, "invitation.create", l.ID, map[string]any{"email": email, "role": role})
	})
	return l, token, err
}

// checkInvitation returns an error if the caller may not invite that address now. It deletes an
// earlier invitation of the address.
func checkInvitation(ctx context.Context, tx db.Tx, c Caller, email string) error {
	err := db.RefuseIf(ctx, tx, db.Fields{{Path: "email", Message: "belongs to a member already"}}.Err(),
		`SELECT EXISTS (SELECT 1 FROM users u JOIN memberships m ON m.user_id = u.id
		WHERE u.email = ? AND m.organization_id = ?)`, email, c.OrganizationID)
	if err != nil {
		return err
	}
	old, err := db.One(ctx, tx, scanLink, selectLinks+`
		WHERE l.organization_id = ? AND l.email = ? AND l.kind = 'invitation'`, c.OrganizationID, email)
	if err == nil {
		if err = allowManaging(ctx, tx, &c, old.Role); err == nil { // an Admin must not replace the invitation of an Owner
			err = deleteLink(tx, old)
		}
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	open, err := db.One(ctx, tx, db.ScanInt,
		`SELECT count(*) FROM links WHERE organization_id = ? AND kind = 'invitation'`,
		c.OrganizationID)
	if err == nil && open >= maxInvitations {
		return db.Errorf(db.Conflict, "%d invitations are open: revoke some", maxInvitations)
	}
	return err
}

// Invitations lists the open invitations of the caller's organization, newest first. It returns
// Forbidden for a Member.
func (s *Store) Invitations(ctx context.Context, c Caller) ([]Link, error) {
	if err := c.Allow(ManageMembers); err != nil {
		return nil, err
	}
	return db.All(ctx, s.db, scanLink, selectLinks+`
		WHERE l.organization_id = ? AND l.kind = 'invitation' AND l.expires_at > ?
		ORDER BY l.id DESC LIMIT ?`, c.OrganizationID, s.db.Millis(), maxInvitations)
}

// RevokeInvitation deletes an open invitation of the caller's organization.
func (s *Store) RevokeInvitation(ctx context.Context, c Caller, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		l, err := db.One(ctx, tx, scanLink, selectLinks+`
			WHERE l.id = ? AND l.organization_id = ? AND l.kind = 'invitation'`, id, c.OrganizationID)
		if err != nil {
			return db.NoRecord(err, "open invitation")
		}
		if err := allowManaging(ctx, tx, &c, l.Role); err != nil {
			return err
		}
		if err := deleteLink(tx, l); err != nil {
			return err
		}
		return s.Audit(tx, c, "invitation.revoke", id, map[string]any{"email": l.Email, "role": l.Role})
	})
}

// AcceptInvitation makes the invited person a member, and returns them as a Caller in
// the organization.
//
// A caller with a UserID has signed in. If that user is not the invited one, AcceptInvitation
// returns Forbidden. A caller without a UserID becomes a user with the name and password in n.
// AcceptInvitation returns a Conflict if the user has a password already: they must sign in with
// it. It returns Forbidden if the user has no password and is in another organization. Otherwise
// the creator of the invitation could use the link and gain access to that organization.
func (s *Store) AcceptInvitation(ctx context.Context, c Caller, token string, n NewUser) (joined Caller, err error) {
	hash := ""
	if c.UserID == "" {
		if hash, err = s.checkNewUser(ctx, token, n); err != nil {
			return Caller{}, err
		}
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		// Read the link again: another request may have used it meanwhile.
		l, err := s.link(ctx, tx, LinkInvitation, token)
		if err != nil {
			return err
		}
		if c.UserID == "" {
			l.UserID, err = s.createInvited(ctx, tx, l, n.Name, hash)
		} else if l.UserID != c.UserID {
			err = db.Errorf(db.Forbidden, "the invitation is for another email address")
		}
		if err != nil {
			return err
		}
		joined, err = s.join(ctx, tx, l, c.RemoteAddr)
		return err
	})
	return joined, err
}

// checkNewUser returns the hash of the password that the holder of an invitation has
// chosen.
func (s *Store) checkNewUser(ctx context.Context, token string, n NewUser) (hash string, err error) {
	var f db.Fields
	db.CheckName(&f, "name", n.Name, db.MaxName)
	checkPassword(&f, n.Password)
	if err := f.Err(); err != nil {
		return "", err
	}
	if _, err := s.Link(ctx, LinkInvitation, token); err != nil {
		return "", err // before the work of hashing
	}
	return s.newPassword(ctx, n.Password)
}

// createInvited returns the id of the invited user. It creates the user if needed, and
// sets their name and password.
func (s *Store) createInvited(ctx context.Context, tx db.Tx, l Link, name, hash string) (userID string, err error) {
	if l.HasPassword {
		return "", db.Errorf(db.Conflict, "you have a password already: sign in with it to join")
	}
	if userID, err = s.ensureUser(tx, l.Email); err != nil {
		return "", err
	}
	err = db.RefuseIf(ctx, tx,
		db.Errorf(db.Forbidden, "you have no password yet, and are in another organization: "+
			"ask there for a link to choose one"),
		`SELECT EXISTS (SELECT 1 FROM memberships WHERE user_id = ? AND organization_id <> ?)`,
		userID, l.OrganizationID)
	if err != nil {
		return "", err
	}
	s.ForgetKnown(tx)
	if _, err := tx.Exec(`UPDATE users SET name = ? WHERE id = ?`, strings.TrimSpace(name), userID); err != nil {
		return "", err
	}
	return userID, setLinkPassword(tx, userID, hash, false)
}

// join makes the invited user a member. A user who has become one meanwhile keeps
// their role.
func (s *Store) join(ctx context.Context, tx db.Tx, l Link, remoteAddr string) (c Caller, err error) {
	if err := deleteLink(tx, l); err != nil {
		return c, err
	}
	if err := s.insertMembership(tx, l.OrganizationID, Member{UserID: l.UserID, Role: l.Role}); err != nil {
		return c, err
	}
	role, err := ReadRole(ctx, tx, l.OrganizationID, l.UserID)
	if err != nil {
		return c, err
	}
	c = Caller{OrganizationID: l.OrganizationID, UserID: l.UserID, Role: role, Trigger: TriggerUI,
		RemoteAddr: remoteAddr}
	return c, s.Audit(tx, c, "invitation.accept", l.UserID,
		map[string]any{"email": l.Email, "role": role, "invitation": l.ID})
}
