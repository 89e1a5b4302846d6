package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// A LinkKind says what a link is for.
type LinkKind string

// The kinds of links. The welcome is the first owner's: it sets their email address,
// too.
const (
	LinkInvitation LinkKind = "invitation"
	LinkReset      LinkKind = "reset"
	LinkWelcome    LinkKind = "welcome"
)

// How long links work.
const (
	InvitationLifetime = 7 * 24 * time.Hour
	ResetLifetime      = 24 * time.Hour
)

// maxInvitations is how many may be open in one organization.
const maxInvitations = 1000

// A Link lets whoever holds it in, once.
type Link struct {
	ID               string
	Kind             LinkKind
	OrganizationID   string // of an invitation, what it leads into
	OrganizationName string
	Email            string // of who is invited, or is to choose a password
	Role             Role   // of an invitation
	UserID           string // '' where the invited is no user yet
	HasPassword      bool   // the user has one: to join, it takes that
	InvitedBy        string // email address; '' for the command line
	CreatedAt        time.Time
	ExpiresAt        time.Time
}

const selectLinks = `SELECT l.id, l.kind, coalesce(l.organization_id, ''), coalesce(o.name, ''), coalesce(l.email, u.email),
		coalesce(l.role, ''), coalesce(u.id, ''), u.password_hash IS NOT NULL, coalesce(b.email, ''), l.created_at, l.expires_at
	FROM links l
	LEFT JOIN organizations o ON o.id = l.organization_id
	LEFT JOIN users u ON u.id = coalesce(l.user_id, (SELECT e.id FROM users e WHERE e.email = l.email))
	LEFT JOIN users b ON b.id = l.created_by_user_id `

func scanLink(row scanner) (l Link, err error) {
	var created, expires int64
	err = row.Scan(&l.ID, &l.Kind, &l.OrganizationID, &l.OrganizationName, &l.Email, &l.Role, &l.UserID, &l.HasPassword, &l.InvitedBy,
		&created, &expires)
	l.CreatedAt, l.ExpiresAt = fromMillis(created), fromMillis(expires)
	return l, err
}

// Link gives what a link's token is good for. A link that was used, withdrawn or has
// expired, one of another kind and one that never was are NotFound alike.
func (s *Store) Link(ctx context.Context, kind LinkKind, token string) (Link, error) {
	return s.link(ctx, s, kind, token)
}

func (s *Store) link(ctx context.Context, q querier, kind LinkKind, token string) (Link, error) {
	l, err := one(ctx, q, scanLink, selectLinks+`WHERE l.hash = ? AND l.kind = ? AND l.expires_at > ?`, hashSecret(token), kind, s.millis())
	if errors.Is(err, sql.ErrNoRows) {
		return Link{}, Errorf(NotFound, "this link has been used, was withdrawn or has expired: ask for a new one")
	}
	return l, err
}

// A linkRow is what a link is made of. Empty values are stored as NULL.
type linkRow struct {
	kind           LinkKind
	organizationID string
	email          string
	role           Role
	userID         string
	createdBy      string
	lifetime       time.Duration
}

// insertLink writes a link and gives it with its token, which is not kept.
func (s *Store) insertLink(ctx context.Context, tx *Tx, r linkRow) (Link, string, error) {
	id, token := NewID("lnk", s.now()), newSecret("")
	_, err := tx.Exec(`INSERT INTO links (id, hash, kind, organization_id, email, role, user_id, created_by_user_id, created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, hashSecret(token), r.kind, nullable(r.organizationID), nullable(r.email), nullable(string(r.role)),
		nullable(r.userID), nullable(r.createdBy), s.millis(), s.now().Add(r.lifetime).UnixMilli())
	if err != nil {
		return Link{}, "", err
	}
	l, err := one(ctx, tx, scanLink, selectLinks+`WHERE l.id = ?`, id)
	return l, token, err
}

// endLinks ends the links with which a user could choose a password.
func endLinks(tx *Tx, userID string) error {
	_, err := tx.Exec(`DELETE FROM links WHERE user_id = ?`, userID)
	return err
}

// endLinksBy ends the links that somebody has made in an organization: they hold them
// still.
func endLinksBy(tx *Tx, organizationID, userID string) error {
	_, err := tx.Exec(`DELETE FROM links WHERE created_by_user_id = ? AND organization_id = ?`, userID, organizationID)
	return err
}

// CreateInvitation makes a link with which who has that email address joins the
// caller's organization, and gives it with its token, which is not kept. It takes
// the place of an invitation there is. Nobody gives a role above their own.
func (s *Store) CreateInvitation(ctx context.Context, c Caller, email string, role Role) (l Link, token string, err error) {
	var f Fields
	email = strings.TrimSpace(email)
	f.Check(validEmail(email), "email", "must be an email address")
	f.Check(role.Valid(), "role", "must be owner, admin or member")
	if err := f.Err(); err != nil {
		return Link{}, "", err
	}
	err = s.write(ctx, func(tx *Tx) error {
		if err := s.mayManage(ctx, tx, &c, role); err != nil {
			return err
		}
		in, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM users u JOIN memberships m ON m.user_id = u.id
			WHERE u.email = ? AND m.organization_id = ?)`, email, c.OrganizationID)
		if err != nil {
			return err
		}
		if in == 1 {
			return Fields{{Path: "email", Message: "is a member's already"}}.Err()
		}
		if err := s.withdrawInvitation(ctx, tx, c, email); err != nil {
			return err
		}
		open, err := one(ctx, tx, scanInt, `SELECT count(*) FROM links WHERE organization_id = ? AND kind = 'invitation'`, c.OrganizationID)
		if err != nil {
			return err
		}
		if open >= maxInvitations {
			return Errorf(Conflict, "%d invitations are open: revoke some", maxInvitations)
		}
		l, token, err = s.insertLink(ctx, tx, linkRow{kind: LinkInvitation, organizationID: c.OrganizationID, email: email, role: role,
			createdBy: c.UserID, lifetime: InvitationLifetime})
		if err != nil {
			return err
		}
		return s.audit(tx, c, "invitation.create", l.ID, map[string]any{"email": email, "role": role})
	})
	return l, token, err
}

// withdrawInvitation makes room for another invitation of the same person. An Owner's
// is not an Admin's to replace.
func (s *Store) withdrawInvitation(ctx context.Context, tx *Tx, c Caller, email string) error {
	old, err := one(ctx, tx, scanLink, selectLinks+`WHERE l.organization_id = ? AND l.email = ? AND l.kind = 'invitation'`, c.OrganizationID, email)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.mayManage(ctx, tx, &c, old.Role); err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM links WHERE id = ?`, old.ID)
	return err
}

// Invitations lists the open invitations of the caller's organization, newest first.
// A Member is Forbidden.
func (s *Store) Invitations(ctx context.Context, c Caller) ([]Link, error) {
	if err := c.Allow(ManageMembers); err != nil {
		return nil, err
	}
	return all(ctx, s, scanLink, selectLinks+`WHERE l.organization_id = ? AND l.kind = 'invitation' AND l.expires_at > ?
		ORDER BY l.id DESC LIMIT ?`, c.OrganizationID, s.millis(), maxInvitations)
}

// RevokeInvitation withdraws an open invitation of the caller's organization.
func (s *Store) RevokeInvitation(ctx context.Context, c Caller, id string) error {
	return s.write(ctx, func(tx *Tx) error {
		l, err := one(ctx, tx, scanLink, selectLinks+`WHERE l.id = ? AND l.organization_id = ? AND l.kind = 'invitation'`, id, c.OrganizationID)
		if err != nil {
			return notFound(err, "open invitation")
		}
		if err := s.mayManage(ctx, tx, &c, l.Role); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM links WHERE id = ?`, id); err != nil {
			return err
		}
		return s.audit(tx, c, "invitation.revoke", id, map[string]any{"email": l.Email, "role": l.Role})
	})
}

// A NewUser is what somebody says of themselves who has followed a link.
type NewUser struct {
	Name     string
	Password string
	Email    string // with a welcome: the address to sign in with from now on
}

func (n NewUser) checkName(f *Fields) {
	f.Check(strings.TrimSpace(n.Name) != "" && utf8.RuneCountInString(n.Name) <= maxName, "name", "must have 1 to %d characters", maxName)
}

// AcceptInvitation has somebody without a password join: they become a user, if they
// are none, with the name and password they choose. It is a Conflict for a user
// who has a password: they join with AcceptInvitationAs. It is Forbidden for a user
// without one who is in another organization: whoever made the invitation could
// have followed it, and had access there.
func (s *Store) AcceptInvitation(ctx context.Context, token string, n NewUser, remoteAddr string) (c Caller, err error) {
	var f Fields
	n.checkName(&f)
	checkPassword(&f, n.Password)
	if err := f.Err(); err != nil {
		return c, err
	}
	if _, err := s.Link(ctx, LinkInvitation, token); err != nil {
		return c, err // before the work of hashing
	}
	hash, err := s.newPassword(ctx, n.Password)
	if err != nil {
		return c, err
	}
	err = s.write(ctx, func(tx *Tx) error {
		l, err := s.link(ctx, tx, LinkInvitation, token)
		if err != nil {
			return err
		}
		if l.HasPassword {
			return Errorf(Conflict, "you have a password already: sign in with it to join")
		}
		if l.UserID, err = s.ensureUser(tx, l.Email); err != nil {
			return err
		}
		elsewhere, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM memberships WHERE user_id = ? AND organization_id <> ?)`, l.UserID, l.OrganizationID)
		if err != nil {
			return err
		}
		if elsewhere == 1 {
			return Errorf(Forbidden, "you have no password yet, and are in another organization: ask there for a link to choose one")
		}
		if _, err := tx.Exec(`UPDATE users SET name = ? WHERE id = ?`, strings.TrimSpace(n.Name), l.UserID); err != nil {
			return err
		}
		if err := s.putPassword(tx, l.UserID, hash, ""); err != nil {
			return err
		}
		c, err = s.join(ctx, tx, l, remoteAddr)
		return err
	})
	return c, err
}

// AcceptInvitationAs has a user join whose password or session the caller of this
// has seen. It is Forbidden for another user than the invited one.
func (s *Store) AcceptInvitationAs(ctx context.Context, token, userID, remoteAddr string) (c Caller, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		l, err := s.link(ctx, tx, LinkInvitation, token)
		if err != nil {
			return err
		}
		if l.UserID == "" || l.UserID != userID {
			return Errorf(Forbidden, "the invitation is for another email address")
		}
		c, err = s.join(ctx, tx, l, remoteAddr)
		return err
	})
	return c, err
}

// join makes the invited user a member. Somebody who has become one meanwhile keeps
// their role.
func (s *Store) join(ctx context.Context, tx *Tx, l Link, remoteAddr string) (c Caller, err error) {
	if _, err := tx.Exec(`DELETE FROM links WHERE id = ?`, l.ID); err != nil {
		return c, err
	}
	// A link to choose a password was made by who may, in the organizations until now.
	if err := endLinks(tx, l.UserID); err != nil {
		return c, err
	}
	if _, err := tx.Exec(`INSERT INTO memberships (organization_id, user_id, role, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		l.OrganizationID, l.UserID, l.Role, s.millis()); err != nil {
		return c, err
	}
	role, err := s.role(ctx, tx, l.OrganizationID, l.UserID)
	if err != nil {
		return c, err
	}
	c = Caller{OrganizationID: l.OrganizationID, UserID: l.UserID, Role: role, Trigger: TriggerUI, RemoteAddr: remoteAddr}
	return c, s.audit(tx, c, "invitation.accept", l.UserID, map[string]any{"email": l.Email, "role": role, "invitation": l.ID})
}

// CreateResetAs makes a link with which a member of the caller's organization chooses
// a password, and gives it with its token, which is not kept. Older ones of theirs
// end. It is Forbidden where the caller does not manage the member in each of the
// member's organizations: the link is access to all of them.
func (s *Store) CreateResetAs(ctx context.Context, c Caller, userID string) (l Link, token string, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		role, err := s.memberRole(ctx, tx, c.OrganizationID, userID)
		if err != nil {
			return err
		}
		if err := s.mayManage(ctx, tx, &c, role); err != nil {
			return err
		}
		if userID == c.UserID {
			return Errorf(Conflict, "change your own password on your account's page")
		}
		if err := s.mayManageEverywhere(ctx, tx, c, userID); err != nil {
			return err
		}
		if err := endLinks(tx, userID); err != nil {
			return err
		}
		l, token, err = s.insertLink(ctx, tx, linkRow{kind: LinkReset, organizationID: c.OrganizationID, userID: userID, createdBy: c.UserID, lifetime: ResetLifetime})
		if err != nil {
			return err
		}
		return s.audit(tx, c, "password.link", userID, map[string]any{"user": l.Email})
	})
	return l, token, err
}

// mayManageEverywhere is a Forbidden error where a user is in an organization in which
// the caller may not manage them.
func (s *Store) mayManageEverywhere(ctx context.Context, tx *Tx, c Caller, userID string) error {
	list, err := s.organizationsOf(ctx, tx, userID)
	if err != nil {
		return err
	}
	for _, o := range list {
		there := c
		there.OrganizationID = o.ID
		err := s.mayManage(ctx, tx, &there, o.Role)
		if IsKind(err, Forbidden) {
			return Errorf(Forbidden, "the user is in another organization, too, and the link would be access to that: "+
				"who runs this server can make one with the command journeyman user reset")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CreateReset makes a link of a kind with which the user with that email address
// chooses a password, on behalf of who owns the data folder.
func (s *Store) CreateReset(ctx context.Context, kind LinkKind, email string) (l Link, token string, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		userID, err := one(ctx, tx, scanString, `SELECT id FROM users WHERE email = ?`, email)
		if errors.Is(err, sql.ErrNoRows) {
			return Errorf(NotFound, "no user has that email address")
		}
		if err != nil {
			return err
		}
		if err := endLinks(tx, userID); err != nil {
			return err
		}
		if l, token, err = s.insertLink(ctx, tx, linkRow{kind: kind, userID: userID, lifetime: ResetLifetime}); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, Caller{}, userID, "password.link", map[string]any{"user": l.Email})
	})
	return l, token, err
}

// ChoosePassword uses a reset or a welcome: it sets the password of its user, ends
// their sessions and gives who they are. A welcome sets the email address, too.
func (s *Store) ChoosePassword(ctx context.Context, kind LinkKind, token string, n NewUser, remoteAddr string) (userID string, err error) {
	var f Fields
	n.Email = strings.TrimSpace(n.Email)
	f.Check(kind != LinkWelcome || validEmail(n.Email), "email", "must be an email address")
	checkPassword(&f, n.Password)
	if err := f.Err(); err != nil {
		return "", err
	}
	if _, err := s.Link(ctx, kind, token); err != nil {
		return "", err // before the work of hashing
	}
	hash, err := s.newPassword(ctx, n.Password)
	if err != nil {
		return "", err
	}
	err = s.write(ctx, func(tx *Tx) error {
		l, err := s.link(ctx, tx, kind, token)
		if err != nil {
			return err
		}
		userID = l.UserID
		if kind == LinkWelcome && n.Email != l.Email {
			if err := s.changeEmail(ctx, tx, userID, n.Email); err != nil {
				return err
			}
		}
		if err := s.putPassword(tx, userID, hash, ""); err != nil { // which ends the link, too
			return err
		}
		return s.auditUser(ctx, tx, Caller{UserID: userID, RemoteAddr: remoteAddr}, userID, "password.reset", map[string]any{"user": l.Email, "link": l.ID})
	})
	return userID, err
}

// changeEmail gives a user another address. It is an Invalid field where it is
// another's.
func (s *Store) changeEmail(ctx context.Context, tx *Tx, userID, email string) error {
	taken, err := one(ctx, tx, scanInt, `SELECT EXISTS (SELECT 1 FROM users WHERE email = ? AND id <> ?)`, email, userID)
	if err != nil {
		return err
	}
	if taken == 1 {
		return Fields{{Path: "email", Message: "is another user's"}}.Err()
	}
	_, err = tx.Exec(`UPDATE users SET email = ? WHERE id = ?`, email, userID)
	return err
}

// PruneLinks deletes up to limit links that have expired.
func (s *Store) PruneLinks(ctx context.Context, limit int) (n int64, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		n, err = tx.Exec(`DELETE FROM links WHERE id IN (SELECT id FROM links WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, s.millis(), limit)
		return err
	})
	return n, err
}
