package people

import (
	"context"
	"time"

	"journeyman/store/db"
)

// A LinkKind is the purpose of a link.
type LinkKind string

// The kinds of links. A welcome is a reset for the first owner, which also sets the owner's email
// address.
const (
	LinkInvitation LinkKind = "invitation"
	LinkReset      LinkKind = "reset"
	LinkWelcome    LinkKind = "welcome"
)

// The lifetimes of links.
const (
	InvitationLifetime = 7 * 24 * time.Hour
	ResetLifetime      = 24 * time.Hour
)

// A Link lets its holder join an organization or choose a password, once.
type Link struct {
	ID               string
	Kind             LinkKind
	OrganizationID   string // that an invitation leads into
	OrganizationName string
	Email            string // of the person who is invited, or chooses a password
	Role             Role   // of an invitation
	UserID           string // '' if the invited person is no user yet
	HasPassword      bool   // the user has a password, and must sign in with it to join
	InvitedBy        string // email address; '' for the command line
	CreatedAt        time.Time
	ExpiresAt        time.Time
}

const selectLinks = `SELECT l.id, l.kind, coalesce(l.organization_id, ''), coalesce(o.name, ''),
		coalesce(l.email, u.email), coalesce(l.role, ''), coalesce(u.id, ''), u.password_hash IS NOT NULL,
		coalesce(b.email, ''), l.created_at, l.expires_at
	FROM links l
	LEFT JOIN organizations o ON o.id = l.organization_id
	LEFT JOIN users u ON u.id = coalesce(l.user_id, (SELECT e.id FROM users e WHERE e.email = l.email))
	LEFT JOIN users b ON b.id = l.created_by_user_id `

func scanLink(row db.Scanner) (l Link, err error) {
	err = row.Scan(&l.ID, &l.Kind, &l.OrganizationID, &l.OrganizationName, &l.Email, &l.Role, &l.UserID, &l.HasPassword,
		&l.InvitedBy, db.AsTime(&l.CreatedAt), db.AsTime(&l.ExpiresAt))
	return l, err
}

// Link returns the link with a token. A link that was used or withdrawn, has expired,
// is of another kind or never existed is NotFound.
func (s *Store) Link(ctx context.Context, kind LinkKind, token string) (Link, error) {
	return s.link(ctx, s.db, kind, token)
}

func (s *Store) link(ctx context.Context, q db.Querier, kind LinkKind, token string) (Link, error) {
	l, err := db.One(ctx, q, scanLink, selectLinks+`WHERE l.hash = ? AND l.kind = ? AND l.expires_at > ?`,
		db.HashToken(token), kind, s.db.Millis())
	return l, db.NoRow(err, db.Errorf(db.NotFound,
		"this link has been used, was withdrawn or has expired: ask for a new one"))
}

// insertLink stores a link that the caller creates and that works for lifetime. It
// returns the link with its token, which is not stored. Empty fields become NULL.
func (s *Store) insertLink(ctx context.Context, tx db.Tx, c Caller, l Link,
	lifetime time.Duration) (Link, string, error) {
	// Only a hash of the token is stored, so that nobody can use a link that they read in a
	// copy of the database.
	id, token := db.NewID("lnk", s.db.Now()), db.NewToken("")
	_, err := tx.Exec(`INSERT INTO links (id, hash, kind, organization_id, email, role, user_id, created_by_user_id,
			created_at, expires_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, db.HashToken(token), l.Kind, db.Nullable(c.OrganizationID), db.Nullable(l.Email), db.Nullable(string(l.Role)),
		db.Nullable(l.UserID), db.Nullable(c.UserID), s.db.Millis(), s.db.Now().Add(lifetime).UnixMilli())
	if err != nil {
		return Link{}, "", err
	}
	l, err = db.One(ctx, tx, scanLink, selectLinks+`WHERE l.id = ?`, id)
	return l, token, err
}

// deleteLink deletes a link that was used or withdrawn.
func deleteLink(tx db.Tx, l Link) error {
	_, err := tx.Exec(`DELETE FROM links WHERE id = ?`, l.ID)
	return err
}

// endLinks deletes the links with which a user could choose a password.
func endLinks(tx db.Tx, userID string) error {
	_, err := tx.Exec(`DELETE FROM links WHERE user_id = ?`, userID)
	return err
}

// endLinksBy deletes the links that a user created in an organization. The user may
// have kept their tokens.
func endLinksBy(tx db.Tx, organizationID, userID string) error {
	_, err := tx.Exec(`DELETE FROM links WHERE created_by_user_id = ? AND organization_id = ?`, userID, organizationID)
	return err
}

// PruneLinks deletes up to limit expired links, and returns their number.
func (s *Store) PruneLinks(ctx context.Context, limit int) (int64, error) {
	return s.db.Exec(ctx, `DELETE FROM links WHERE id IN
		(SELECT id FROM links WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`, s.db.Millis(), limit)
}
