package people

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
)

// The lifetimes of the secrets of a grant, and the limit on grants.
const (
	oauthCodeLifetime    = time.Minute
	OAuthTokenLifetime   = time.Hour           // of an access token
	oauthRefreshLifetime = 60 * 24 * time.Hour // of a refresh token, from its last use

	maxOAuthGrants = 100 // of one person in one organization
)

// The prefixes of the secrets that clients of OAuth hold.
const (
	codePrefix    = "jm_code_"
	accessPrefix  = "jm_oauth_"
	refreshPrefix = "jm_refresh_"
)

// A Consent is a person's agreement that a client acts for them. The client later sends
// the verifier of CodeChallenge, which proves that it made the request (RFC 7636).
type Consent struct {
	ClientID      string
	RedirectURI   string // one of the client's
	CodeChallenge string // of PKCE, S256
}

// An OAuthGrant is the stored consent of a person, with the hashes of its secrets.
type OAuthGrant struct {
	ID         string
	ClientName string
	CreatedAt  time.Time
	LastUsedAt *time.Time // to the minute
	ExpiresAt  time.Time  // each refresh extends it

	clientID, organizationID, userID, redirectURI, challenge string
	codeHash, refreshHash                                    []byte
	revokedAt                                                *time.Time
}

// OAuthTokens are the tokens that a client gets for a code or a refresh token.
type OAuthTokens struct {
	Access  string
	Refresh string
	Expires time.Duration // of Access
}

const selectGrant = `SELECT g.id, c.name, g.created_at, g.expires_at, g.client_id, g.organization_id, g.user_id,
		g.redirect_uri, g.code_challenge, g.code_hash, g.refresh_hash, g.revoked_at,
		(SELECT max(k.last_used_at) FROM api_keys k WHERE k.oauth_grant_id = g.id)
	FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id `

func scanGrant(row db.Scanner) (g OAuthGrant, err error) {
	err = row.Scan(&g.ID, &g.ClientName, db.AsTime(&g.CreatedAt), db.AsTime(&g.ExpiresAt), &g.clientID, &g.organizationID,
		&g.userID, &g.redirectURI, &g.challenge, &g.codeHash, &g.refreshHash, db.AsTimeOrNil(&g.revokedAt),
		db.AsTimeOrNil(&g.LastUsedAt))
	return g, err
}

// by returns the person of the grant as a caller, for the audit log.
func (g OAuthGrant) by(addr string) Caller {
	return Caller{OrganizationID: g.organizationID, UserID: g.userID, RemoteAddr: addr}
}

// oauthError returns an error with a code of RFC 6749.
func oauthError(code, message string) error {
	return &db.Error{Kind: db.Invalid, Code: code, Message: message}
}

// errGrant is the one error for all codes and tokens that are not valid, whatever the reason.
var errGrant = oauthError("invalid_grant", "the code or the token is unknown, expired, used or revoked")

// Consent lets a client act for the caller, and returns the code by which the client gets
// its tokens.
func (s *Store) Consent(ctx context.Context, c Caller, consent Consent) (code string, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		// The role is read here, because the person may have been removed while the page
		// was open.
		if role, err := ReadRole(ctx, tx, c.OrganizationID, c.UserID); err != nil || role == "" {
			return cmp.Or[error](err, db.Errorf(db.Forbidden, "you are not in this organization"))
		}
		client, err := readOAuthClient(ctx, tx, consent.ClientID)
		if err != nil {
			return err
		}
		// The page has checked both. The store checks them again, because a code that is sent to a
		// wrong address gives access to the account.
		if !client.Redirects(consent.RedirectURI) || len(consent.CodeChallenge) != 43 {
			return db.Errorf(db.Invalid, "the request of the program is not valid")
		}
		n, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM oauth_grants WHERE user_id = ? AND organization_id = ?
			AND revoked_at IS NULL AND expires_at > ?`, c.UserID, c.OrganizationID, s.db.Millis())
		if err == nil && n >= maxOAuthGrants {
			err = db.Errorf(db.Conflict, "%d programs act for you already: revoke one on the page of your account", n)
		}
		if err != nil {
			return err
		}
		id := db.NewID("ogr", s.db.Now())
		// Only the hash of the code is stored, so that nobody can redeem a code from a copy of the
		// database.
		if code, err = s.grantToken(codePrefix, id); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO oauth_grants (id, client_id, organization_id, user_id, code_hash, code_challenge,
				redirect_uri, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, client.ID, c.OrganizationID, c.UserID, db.HashToken(code), consent.CodeChallenge,
			consent.RedirectURI, s.db.Millis(),
			s.db.Now().Add(oauthCodeLifetime).UnixMilli())
		if err != nil {
			return err
		}
		// If the code is never used, the grant is pruned. The age of the client then counts
		// from this moment.
		_, err = tx.Exec(`UPDATE oauth_clients SET last_used_at = ? WHERE id = ?`, s.db.Millis(), client.ID)
		if err != nil {
			return err
		}
		// The audit log names the site that got access. The name of the client is not verified.
		host := ""
		if u, err := url.Parse(consent.RedirectURI); err == nil {
			host = u.Scheme + "://" + u.Host
		}
		return s.Audit(tx, c, "oauth.grant", id, map[string]any{"name": client.Name, "redirect": host})
	})
	return code, err
}

// grantToken returns a new secret of a grant. The secret holds the grant's id and a
// signature. So the server recognizes a secret that it issued, even after its hash is gone.
func (s *Store) grantToken(prefix, grantID string) (string, error) {
	body := strings.TrimPrefix(grantID, "ogr_") + "." + db.NewToken("")
	mac, err := s.seal.Sign(prefix, body)
	return prefix + body + "." + base64.RawURLEncoding.EncodeToString(mac), err
}

// grantOf returns the id of the grant that a secret names. It returns "" if this server did
// not issue the secret.
func (s *Store) grantOf(prefix, token string) (string, error) {
	rest, _ := strings.CutPrefix(token, prefix)
	at := strings.LastIndexByte(rest, '.')
	if len(token) > 500 || len(rest) == len(token) || at < 0 {
		return "", nil
	}
	// The prefix is the purpose of the signature. So a code cannot pass for a refresh
	// token.
	want, err := s.seal.Sign(prefix, rest[:at])
	if err != nil {
		return "", err
	}
	got, err := base64.RawURLEncoding.DecodeString(rest[at+1:])
	if err != nil || subtle.ConstantTimeCompare(want, got) != 1 {
		return "", nil //nolint:nilerr // not a signature
	}
	id, _, _ := strings.Cut(rest, ".")
	return "ogr_" + id, nil
}

// An OAuthExchange is a code, with the proof that the right client sends it.
type OAuthExchange struct {
	ClientID    string
	Code        string
	RedirectURI string
	Verifier    string // of PKCE
}

// ExchangeCode returns the tokens for a code, once. If a code is sent again, or by another client,
// it was probably stolen. ExchangeCode then ends the grant (RFC 6749, section 4.1.2).
func (s *Store) ExchangeCode(ctx context.Context, x OAuthExchange, addr string) (OAuthTokens, error) {
	return s.exchange(ctx, codePrefix, x.Code, addr, func(g OAuthGrant) bool {
		sum := sha256.Sum256([]byte(x.Verifier))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		return subtle.ConstantTimeCompare(g.codeHash, db.HashToken(x.Code)) == 1 && g.clientID == x.ClientID &&
			g.redirectURI == x.RedirectURI && len(x.Verifier) >= 43 &&
			subtle.ConstantTimeCompare([]byte(challenge), []byte(g.challenge)) == 1
	})
}

// RefreshTokens returns new tokens for a refresh token, which then stops working. If the old
// token is sent again, two parties hold it, and one of them has stolen it. The server cannot
// tell which one, so RefreshTokens ends the grant (RFC 9700, section 4.14.2).
func (s *Store) RefreshTokens(ctx context.Context, clientID, refresh, addr string) (OAuthTokens, error) {
	return s.exchange(ctx, refreshPrefix, refresh, addr, func(g OAuthGrant) bool {
		return subtle.ConstantTimeCompare(g.refreshHash, db.HashToken(refresh)) == 1 && g.clientID == clientID
	})
}

// exchange returns new tokens for the grant that a secret names. It ends the grant if fits
// reports false.
func (s *Store) exchange(ctx context.Context, prefix, secret, addr string, fits func(OAuthGrant) bool) (
	t OAuthTokens, err error) {
	id, err := s.grantOf(prefix, secret)
	if err != nil || id == "" {
		return t, cmp.Or(err, errGrant)
	}
	refused := false
	err = s.db.Write(ctx, func(tx db.Tx) error {
		t, refused = OAuthTokens{}, false
		g, err := db.One(ctx, tx, scanGrant, selectGrant+`WHERE g.id = ?`, id)
		if err != nil {
			return db.NoRow(err, errGrant)
		}
		// A removed member must not keep access through a program.
		role, err := ReadRole(ctx, tx, g.organizationID, g.userID)
		switch {
		case err != nil:
			return err
		// All refusals are the same error, so a caller learns nothing about the grant.
		case g.revokedAt != nil, !g.ExpiresAt.After(s.db.Now()), role == "":
			return errGrant
		case !fits(g):
			// An error from this function would undo the end of the grant. So the refusal is
			// returned after the commit.
			refused = true
			return s.endGrant(tx, g.by(addr), g, "reused")
		}
		t, err = s.issue(tx, g)
		return err
	})
	if err == nil && refused {
		err = errGrant
	}
	return t, err
}

// issue creates new tokens for a grant. All access tokens of a grant are one API key, whose
// secret changes. So usage and the audit log name the same key each time.
func (s *Store) issue(tx db.Tx, g OAuthGrant) (t OAuthTokens, err error) {
	t = OAuthTokens{Access: db.NewToken(accessPrefix), Expires: OAuthTokenLifetime}
	if t.Refresh, err = s.grantToken(refreshPrefix, g.ID); err != nil {
		return t, err
	}
	// From here on the old code or refresh token fits no hash, so a second use is
	// noticed.
	_, err = tx.Exec(`UPDATE oauth_grants SET code_hash = NULL, refresh_hash = ?, expires_at = ? WHERE id = ?`,
		db.HashToken(t.Refresh), s.db.Now().Add(oauthRefreshLifetime).UnixMilli(), g.ID)
	if err != nil {
		return t, err
	}
	expires := s.db.Now().Add(OAuthTokenLifetime).UnixMilli()
	s.ForgetKnown(tx)
	n, err := tx.Exec(`UPDATE api_keys SET hash = ?, prefix = ?, expires_at = ? WHERE oauth_grant_id = ?`,
		db.HashToken(t.Access), t.Access[:12], expires, g.ID)
	if err != nil || n > 0 {
		return t, err
	}
	// The first exchange of the grant: it has no key yet.
	_, err = tx.Exec(`INSERT INTO api_keys (id, organization_id, user_id, name, hash, prefix, created_at, expires_at,
			oauth_grant_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, db.NewID("key", s.db.Now()), g.organizationID, g.userID,
		g.ClientName, db.HashToken(t.Access), t.Access[:12], s.db.Millis(), expires, g.ID)
	return t, err
}

// endGrant revokes a grant and its access token. A grant that is revoked already stays as
// it is, and the audit log gets no second entry.
func (s *Store) endGrant(tx db.Tx, c Caller, g OAuthGrant, why string) error {
	n, err := tx.Exec(`UPDATE oauth_grants SET revoked_at = ?, code_hash = NULL, refresh_hash = NULL
		WHERE id = ? AND revoked_at IS NULL`, s.db.Millis(), g.ID)
	if err != nil || n == 0 {
		return err
	}
	s.ForgetKnown(tx)
	if _, err := tx.Exec(`UPDATE api_keys SET revoked_at = ? WHERE oauth_grant_id = ? AND revoked_at IS NULL`,
		s.db.Millis(), g.ID); err != nil {
		return err
	}
	return s.Audit(tx, c, "oauth.revoke", g.ID, map[string]any{"name": g.ClientName, "why": why})
}

// RevokeToken ends the grant of an access or refresh token of the client. It does nothing for
// an unknown token (RFC 7009, section 2.2).
func (s *Store) RevokeToken(ctx context.Context, clientID, token, addr string) error {
	id, err := s.grantOf(refreshPrefix, token)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		// A refresh token names its grant, even one that was used. An access token is
		// found by its hash.
		g, err := db.One(ctx, tx, scanGrant, selectGrant+`WHERE g.client_id = ?1
			AND g.id IN (?2, (SELECT k.oauth_grant_id FROM api_keys k WHERE k.hash = ?3))`,
			clientID, id, db.HashToken(token))
		if err != nil {
			return db.NoRow(err, nil)
		}
		return s.endGrant(tx, g.by(addr), g, "by the program")
	})
}

// OAuthGrants lists the programs that act for the caller in this organization, newest
// first.
func (s *Store) OAuthGrants(ctx context.Context, c Caller) ([]OAuthGrant, error) {
	grants, err := db.All(ctx, s.db, scanGrant, selectGrant+`WHERE g.user_id = ? AND g.organization_id = ?
		AND g.revoked_at IS NULL AND g.refresh_hash IS NOT NULL AND g.expires_at > ? LIMIT ?`,
		c.UserID, c.OrganizationID, s.db.Millis(), maxOAuthGrants)
	// Consent limits their number, so they are sorted here, and no index is needed.
	slices.SortFunc(grants, func(a, b OAuthGrant) int { return strings.Compare(b.ID, a.ID) })
	return grants, err
}

// RevokeOAuthGrant ends a grant of the caller. Any other grant is NotFound: RevokeKey ends
// the grants of other people.
func (s *Store) RevokeOAuthGrant(ctx context.Context, c Caller, id string) error {
	return s.db.Write(ctx, func(tx db.Tx) error {
		g, err := db.One(ctx, tx, scanGrant, selectGrant+`WHERE g.id = ? AND g.user_id = ? AND g.organization_id = ?`,
			id, c.UserID, c.OrganizationID)
		if err != nil {
			return db.NoRecord(err, "grant")
		}
		return s.endGrant(tx, c, g, "by the person")
	})
}
