package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"
)

// How long a request is remembered: by its Idempotency-Key, and by its content
// for clients that only count their retries.
const (
	idempotencyLife = 24 * time.Hour
	retryLife       = 10 * time.Minute
)

// Once makes a request that is sent twice be carried out once. The zero value
// remembers nothing.
type Once struct {
	KeyID string // the API key asking
	Key   string // the Idempotency-Key; '' without one
	Hash  []byte // SHA-256 of path and body
	Retry bool   // without a Key: join the newest identical request rather than do it again
}

// lookup gives the id of what the same request made before, or ”.
func (s *Store) lookup(ctx context.Context, q querier, o Once) (string, error) {
	if o.KeyID == "" || o.Key == "" && !o.Retry {
		return "", nil
	}
	var hash []byte
	var id string
	_, err := one(ctx, q, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&hash, &id) },
		`SELECT request_hash, result_id FROM idempotency WHERE api_key_id = ? AND key = ? AND expires_at > ?`, o.KeyID, o.row(), s.millis())
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", err
	case !bytes.Equal(hash, o.Hash):
		return "", &Error{Kind: Mismatch, Message: "Idempotency-Key: was used for a request with another path or body"}
	}
	return id, nil
}

// Replay gives the id of what the same request made before, empty where it is new.
func (s *Store) Replay(ctx context.Context, o Once) (string, error) { return s.lookup(ctx, s, o) }

// Remember writes down what a request made or changed that is not one transaction.
func (s *Store) Remember(ctx context.Context, o Once, resultID string) error {
	return s.write(ctx, func(tx *Tx) error { return s.remember(tx, o, resultID) })
}

// remember writes down what the request made, in the transaction that made it.
func (s *Store) remember(tx *Tx, o Once, resultID string) error {
	if o.KeyID == "" {
		return nil
	}
	life := retryLife
	if o.Key != "" {
		life = idempotencyLife
	}
	_, err := tx.Exec(`INSERT INTO idempotency (api_key_id, key, request_hash, result_id, expires_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET request_hash = excluded.request_hash, result_id = excluded.result_id, expires_at = excluded.expires_at`,
		o.KeyID, o.row(), o.Hash, resultID, s.now().Add(life).UnixMilli())
	return err
}

func (o Once) row() string {
	if o.Key != "" {
		return "=" + o.Key
	}
	return "#" + hex.EncodeToString(o.Hash)
}

// PruneIdempotency forgets requests that are too old to be repeated, at most limit
// of them, and says how many.
func (s *Store) PruneIdempotency(ctx context.Context, limit int) (n int64, err error) {
	err = s.write(ctx, func(tx *Tx) error {
		n, err = tx.Exec(`DELETE FROM idempotency WHERE (api_key_id, key) IN
			(SELECT api_key_id, key FROM idempotency WHERE expires_at <= ? LIMIT ?)`, s.millis(), limit)
		return err
	})
	return n, err
}
