package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// KeepOffer writes down what a claimed turn was offered of the tools of other
// people's servers, so that it has the same after a restart. A turn keeps the first
// that is written.
func (s *Store) KeepOffer(ctx context.Context, c Claim, offer json.RawMessage) error {
	sum := sha256.Sum256(offer)
	hash := hex.EncodeToString(sum[:])
	return s.write(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(`INSERT INTO tool_offers (hash, offer) VALUES (?, ?) ON CONFLICT DO NOTHING`, hash, string(offer)); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO turn_offers (turn_num, hash) SELECT num, ? FROM turns
			WHERE num = ? AND status = 'running' AND runner_id = ? ON CONFLICT DO NOTHING`, hash, c.Num, c.RunnerID)
		return err // a claim that is lost is found out by what follows
	})
}

// Offer gives what KeepOffer has written of a turn, nil where that is nothing.
func (s *Store) Offer(ctx context.Context, turnNum int64) (json.RawMessage, error) {
	offer, err := one(ctx, s, func(row scanner) (offer string, err error) { return offer, row.Scan(&offer) },
		`SELECT o.offer FROM turn_offers t CROSS JOIN tool_offers o ON o.hash = t.hash WHERE t.turn_num = ?`, turnNum)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return json.RawMessage(offer), err
}
