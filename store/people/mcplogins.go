package people

import (
	"context"
	"database/sql"
	"errors"

	"journeyman/store/db"
	"journeyman/store/gate"
)

// maxMCPLogin bounds the credentials for one MCP server, in bytes.
const maxMCPLogin = 64 << 10

// MCPLogin returns the credentials of this server at an MCP server, or nil if nobody has
// signed in.
func (s *Store) MCPLogin(ctx context.Context, server string) ([]byte, error) {
	sealed, err := db.One(ctx, s.db, func(row db.Scanner) (b []byte, err error) { return b, row.Scan(&b) },
		`SELECT sealed FROM mcp_logins WHERE server = ?`, server)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.seal.Unseal("mcp "+server, sealed)
}

// SetMCPLogin stores the credentials of this server at an MCP server, sealed. An empty login
// deletes them. It also works in maintenance, because a renewal may have revoked the older tokens.
func (s *Store) SetMCPLogin(ctx context.Context, server string, login []byte) error {
	ctx = gate.DuringMaintenance(ctx)
	if len(login) == 0 {
		_, err := s.db.Exec(ctx, `DELETE FROM mcp_logins WHERE server = ?`, server)
		return err
	}
	if len(login) > maxMCPLogin {
		return db.Errorf(db.TooLarge, "the sign-in has more than %d bytes", maxMCPLogin)
	}
	sealed, err := s.seal.Seal("mcp "+server, login)
	if err != nil {
		return err
	}
	_, err = s.db.Exec(ctx, `INSERT INTO mcp_logins (server, sealed, updated_at) VALUES (?, ?, ?)
		ON CONFLICT (server) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`,
		server, sealed, s.db.Millis())
	return err
}

// AuditMCPLogin records that the caller has signed this server in to an MCP server, or out of it.
// SetMCPLogin cannot do so, because it also stores tokens that the server renews by itself. It also
// works in maintenance, as SetMCPLogin does, so that every sign-in has its entry.
func (s *Store) AuditMCPLogin(ctx context.Context, c Caller, server string, in bool) error {
	action := "mcp.signOut"
	if in {
		action = "mcp.signIn"
	}
	return s.db.Write(gate.DuringMaintenance(ctx), func(tx db.Tx) error {
		return s.Audit(tx, c, action, server, map[string]any{"name": server})
	})
}
