package people

import (
	"context"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/pattern"
)

// The limits of programs that register themselves for OAuth.
const (
	maxOAuthClients  = 10_000
	maxRedirectURIs  = 10
	maxRedirectURI   = 2000                // bytes
	oauthClientIdle  = 30 * 24 * time.Hour // age at which a client without a grant is pruned
	oauthClientGrace = time.Hour           // time after its last use in which a client is not replaced
)

// An OAuthClient is a program that registered itself. Its name is not verified.
type OAuthClient struct {
	ID           string
	Name         string
	RedirectURIs []string
	CreatedAt    time.Time
}

// RegisterOAuthClient stores a program that wants to ask people for access. Anybody may
// register one, so a registration alone permits nothing. It returns Limited if
// maxOAuthClients are registered and none of them may be deleted.
func (s *Store) RegisterOAuthClient(ctx context.Context, name string, redirectURIs []string) (OAuthClient, error) {
	var f db.Fields
	db.CheckName(&f, "client_name", name, db.MaxName)
	f.Check(len(redirectURIs) >= 1 && len(redirectURIs) <= maxRedirectURIs, "redirect_uris",
		"must have 1 to %d addresses", maxRedirectURIs)
	for _, uri := range redirectURIs {
		if why := wrongRedirect(uri); why != "" {
			f.Add("redirect_uris", "%s", why)
			break
		}
	}
	if err := f.Err(); err != nil {
		return OAuthClient{}, err
	}
	if err := s.gate.RoomIn(ctx); err != nil {
		return OAuthClient{}, err
	}
	list, err := json.Marshal(redirectURIs)
	if err != nil {
		return OAuthClient{}, err
	}
	c := OAuthClient{ID: db.NewID("ocl", s.db.Now()), Name: name, RedirectURIs: redirectURIs, CreatedAt: s.db.Now().UTC()}
	return c, s.db.Write(ctx, func(tx db.Tx) error {
		n, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM oauth_clients`)
		if err == nil && n >= maxOAuthClients {
			// Many registrations must not block new ones, so the new client replaces an unused one.
			// Recent clients are kept, because their users may be giving consent at this moment.
			n, err = tx.Exec(deleteClients, s.db.Now().Add(-oauthClientGrace).UnixMilli(), 1)
			if err == nil && n == 0 {
				err = db.Errorf(db.Limited, "too many programs have registered: try again later")
			}
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO oauth_clients (id, name, redirect_uris, created_at, last_used_at)
			VALUES (?, ?, ?, ?, ?)`, c.ID, c.Name, string(list), s.db.Millis(), s.db.Millis())
		return err
	})
}

// deleteClients deletes clients without a grant, least recently used first.
const deleteClients = `DELETE FROM oauth_clients WHERE id IN (SELECT c.id FROM oauth_clients c
	WHERE c.last_used_at <= ? AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = c.id)
	ORDER BY c.last_used_at LIMIT ?)`

// OAuthClient returns a registered program. It returns NotFound for an unknown or pruned program.
func (s *Store) OAuthClient(ctx context.Context, id string) (OAuthClient, error) {
	return readOAuthClient(ctx, s.db, id)
}

func readOAuthClient(ctx context.Context, q db.Querier, id string) (OAuthClient, error) {
	c, err := db.One(ctx, q, func(row db.Scanner) (c OAuthClient, err error) {
		var list string
		if err = row.Scan(&c.ID, &c.Name, &list, db.AsTime(&c.CreatedAt)); err == nil {
			err = json.Unmarshal([]byte(list), &c.RedirectURIs)
		}
		return c, err
	}, `SELECT id, name, redirect_uris, created_at FROM oauth_clients WHERE id = ?`, id)
	return c, db.NoRow(err, db.Errorf(db.NotFound,
		"no program has registered under this client_id: it has to register again"))
}

// PruneOAuth deletes up to limit grants whose code was never used, and then up to limit clients
// without a grant. It returns the larger of the two counts. A count below limit means that nothing
// is left to prune.
func (s *Store) PruneOAuth(ctx context.Context, limit int) (int64, error) {
	// Grants go first: a client can be deleted only after its last grant. A grant with a key
	// stays, because usage and the audit log name the key.
	grants, err := s.db.Exec(ctx, `DELETE FROM oauth_grants WHERE id IN (SELECT id FROM oauth_grants g
		WHERE g.expires_at <= ? AND NOT EXISTS (SELECT 1 FROM api_keys k WHERE k.oauth_grant_id = g.id)
		ORDER BY g.expires_at LIMIT ?)`, s.db.Now().Add(-time.Hour).UnixMilli(), limit)
	if err != nil {
		return 0, err
	}
	clients, err := s.db.Exec(ctx, deleteClients, s.db.Now().Add(-oauthClientIdle).UnixMilli(), limit)
	return max(grants, clients), err
}

// redirectHost and privateScheme match hosts and schemes that are safe in a page and in
// its Content-Security-Policy header: they hold no space, quote or semicolon.
const (
	redirectHost  pattern.Pattern = `^([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?$`
	privateScheme pattern.Pattern = `^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+$`
)

// wrongRedirect returns why a browser may not be sent to uri with a code, or "" if it may.
func wrongRedirect(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxRedirectURI || !db.IsToken(uri):
		return "must be addresses of printable ASCII"
	// RFC 6749, section 3.1.2, forbids a fragment. A person could mistake a user name in the
	// address for the host.
	case u.Fragment != "" || strings.Contains(uri, "#") || u.User != nil:
		return "must have no fragment and no user"
	case u.Scheme == "https" && redirectHost.Compiled().MatchString(u.Host):
		return ""
	// Plain http would send the code over the network, except on the same machine (RFC
	// 8252, section 8.3).
	case u.Scheme == "http" && redirectHost.Compiled().MatchString(u.Host) && loopback(u):
		return ""
	case privateScheme.Compiled().MatchString(u.Scheme) || slices.Contains(appSchemes(), u.Scheme):
		return ""
	}
	return "must begin with https://, with http:// and a loopback address, or with a private-use scheme (RFC 8252)"
}

// appSchemes returns the schemes of well-known programs that use no reversed domain, although RFC
// 8252 asks for one. Any other scheme without a dot is refused, because it could be a scheme of the
// browser, such as javascript.
func appSchemes() []string {
	return []string{"cursor", "vscode", "vscode-insiders", "windsurf", "zed", "claude", "goose", "raycast"}
}

// loopback reports whether an address leads to the machine on which the browser runs.
func loopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// Redirects reports whether the client may get codes at uri. The port of a loopback
// address may be another one each time (RFC 8252, section 7.3).
func (c OAuthClient) Redirects(uri string) bool {
	if slices.Contains(c.RedirectURIs, uri) {
		return true
	}
	// Only the port may differ. So both addresses must be http, and every other part must
	// be equal.
	asked, err := url.Parse(uri)
	if err != nil || asked.Scheme != "http" || wrongRedirect(uri) != "" {
		return false
	}
	return slices.ContainsFunc(c.RedirectURIs, func(known string) bool {
		u, err := url.Parse(known)
		if err != nil || u.Scheme != "http" {
			return false
		}
		return u.Hostname() == asked.Hostname() && u.EscapedPath() == asked.EscapedPath() &&
			u.RawQuery == asked.RawQuery
	})
}
