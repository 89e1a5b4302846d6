package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"journeyman/store/db"
)

// KeepToolset stores the toolset of a claimed turn, which is the tools of MCP servers that the model may
// call, and what the turn's preamble names besides. So the turn has the same tools and the same preamble
// after a restart. A turn keeps the first ones that are stored for it.
func (s *Store) KeepToolset(ctx context.Context, c Claim, toolset, preamble json.RawMessage) error {
	sum := sha256.Sum256(toolset)
	hash := hex.EncodeToString(sum[:])
	return s.db.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`INSERT INTO toolsets (hash, toolset) VALUES (?, ?)
			ON CONFLICT (hash) DO NOTHING`, hash, string(toolset)); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO turn_toolsets (turn_num, hash, preamble) SELECT num, ?, ? FROM turns
			WHERE num = ? AND status = 'running' AND runner_id = ?
			ON CONFLICT (turn_num) DO NOTHING`, hash, string(preamble), c.Num, c.RunnerID)
		return err // nothing is stored if the claim is lost; the runner's next write then fails
	})
}

// Toolset returns what KeepToolset stored for a turn, or nil.
func (s *Store) Toolset(ctx context.Context, c Claim) (toolset, preamble json.RawMessage, err error) {
	_, err = db.One(ctx, s.db, db.Into(db.AsJSON(&toolset), db.AsJSON(&preamble)),
		`SELECT o.toolset, t.preamble FROM turn_toolsets t CROSS JOIN toolsets o ON o.hash = t.hash WHERE t.turn_num = ?`, c.Num)
	return toolset, preamble, db.NoRow(err, nil)
}
