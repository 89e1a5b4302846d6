package db

import (
	"bytes"
	"context"
	"math"
	"time"
)

// How long the store remembers a request: by its Idempotency-Key, or by its content for clients
// that send only the number of the retry.
const (
	IdempotencyLife = 24 * time.Hour
	retryLife       = 10 * time.Minute

	retryHashBytes = 16 // of the hash, which suffice to distinguish the requests of one caller
)

// An IdempotencyKey identifies a request, so that the same request is carried out once if
// it is sent twice. The zero value identifies none.
type IdempotencyKey struct {
	KeyID string // of the API key that sent the request, or of the user whose form it is
	Key   string // the Idempotency-Key; '' without one
	Hash  []byte // SHA-256 of method, path and body, or of a form's token and fields
	Retry bool   // without a Key: return the result of the newest identical request
}

// byCaller selects the requests of the key or the user whose id is ?1.
const byCaller = `api_key_num = coalesce((SELECT num FROM api_keys WHERE id = ?1), 0)
	AND user_num = coalesce((SELECT num FROM users WHERE id = ?1), 0)`

// FindResult returns the id of the record that the same request created before, or "".
func (d *DB) FindResult(ctx context.Context, q Querier, k IdempotencyKey) (string, error) {
	if k.KeyID == "" || k.Key == "" && !k.Retry {
		return "", nil
	}
	var hash []byte
	var id string
	_, err := One(ctx, q, Into(&hash, &id),
		`SELECT request_hash, result_id FROM idempotency WHERE `+byCaller+`
			AND key = ?2 AND retry_hash = ?3 AND expires_at > ?4`, k.KeyID, k.Key, k.retryHash(), d.Millis())
	if err == nil && k.Key != "" && !bytes.Equal(hash, k.Hash) {
		return "", Errorf(Mismatch, "Idempotency-Key: was used for another request: method, path or body differ")
	}
	return id, NoRow(err, nil)
}

// Replay returns the id of the record that the same request created before, or "" if the
// request is new.
func (d *DB) Replay(ctx context.Context, k IdempotencyKey) (string, error) {
	return d.FindResult(ctx, d, k)
}

// Remember stores the result of a request that takes more than one transaction. If an equal request
// has a result already, that result stays.
func (d *DB) Remember(ctx context.Context, k IdempotencyKey, resultID string) error {
	return d.Write(ctx, func(tx Tx) error {
		_, err := d.insertResult(tx, k, resultID, k.Key != "")
		return err
	})
}

// RememberIn stores the result of a request in the transaction that created it. If an equal
// request has a result already that FindResult would return, it fails, and nothing is created.
func (d *DB) RememberIn(tx Tx, k IdempotencyKey, resultID string) error {
	first, err := d.insertResult(tx, k, resultID, k.Key != "" || k.Retry)
	switch {
	case err != nil || first:
		return err
	case IsLocking(tx):
		return ErrSerialize // which finds what the equal request has created
	}
	return Errorf(Busy, "Idempotency-Key: an equal request is being processed: try again")
}

// insertResult stores the result of a request. If keep is true, the result of an equal request that
// has not expired stays, and first is false.
func (d *DB) insertResult(tx Tx, k IdempotencyKey, resultID string, keep bool) (first bool, err error) {
	if k.KeyID == "" {
		return true, nil
	}
	// A Retry finds its request by content alone, so the request is remembered only for a short
	// time. After that, the same content is a new request. Within that time, the newest result
	// counts.
	now := d.Now()
	life, replaceable := retryLife, int64(math.MaxInt64)
	var hash []byte
	if k.Key != "" {
		life, hash = IdempotencyLife, k.Hash
	}
	if keep {
		replaceable = now.UnixMilli()
	}
	const insert = `INSERT INTO idempotency (api_key_num, user_num, key, retry_hash, request_hash, result_id, expires_at)
		VALUES (coalesce((SELECT num FROM api_keys WHERE id = ?1), 0), coalesce((SELECT num FROM users WHERE id = ?1), 0),
			?2, ?3, ?4, ?5, ?6)
		ON CONFLICT (api_key_num, user_num, key, retry_hash) DO UPDATE SET request_hash = excluded.request_hash,
			result_id = excluded.result_id,
			expires_at = excluded.expires_at
			WHERE idempotency.expires_at <= ?7`
	args := []any{k.KeyID, k.Key, k.retryHash(), hash, resultID, now.Add(life).UnixMilli(), replaceable}
	if !keep {
		return true, tx.ExecLater(insert, args...)
	}
	n, err := tx.Exec(insert, args...)
	return n > 0, err
}

// retryHash returns the part of the hash that identifies a request without a Key. It is empty for a
// request with one.
func (k IdempotencyKey) retryHash() []byte {
	if k.Key != "" {
		return []byte{}
	}
	return k.Hash[:retryHashBytes]
}

// PruneIdempotency deletes up to limit expired requests, and returns their number.
func (d *DB) PruneIdempotency(ctx context.Context, limit int) (int64, error) {
	return d.Exec(ctx, `DELETE FROM idempotency WHERE (api_key_num, user_num, key, retry_hash) IN
		(SELECT api_key_num, user_num, key, retry_hash FROM idempotency WHERE expires_at <= ? LIMIT ?)`, d.Millis(), limit)
}

// CreateOnce calls create in a write and remembers the id that it returns. If the same
// request was carried out before, it calls find with that id instead: then replayed is
// true.
func CreateOnce[T any](ctx context.Context, d *DB, key IdempotencyKey, find func(tx Tx, id string) (T, error),
	create func(tx Tx) (v T, id string, err error)) (v T, replayed bool, err error) {
	return CreateOnceIn(ctx, d, false, key, find, create)
}

// CreateOnceIn is CreateOnce in a write that is locking, as for Hot.
func CreateOnceIn[T any](ctx context.Context, d *DB, locking bool, key IdempotencyKey,
	find func(tx Tx, id string) (T, error),
	create func(tx Tx) (v T, id string, err error)) (v T, replayed bool, err error) {
	err = d.Hot(ctx, locking, func(tx Tx) error {
		id, err := d.FindResult(ctx, tx, key)
		if err != nil {
			return err
		}
		if replayed = id != ""; replayed {
			v, err = find(tx, id)
			return err
		}
		if err := d.gate.RoomIn(ctx); err != nil { // a repeated request still gets its result
			return err
		}
		if v, id, err = create(tx); err != nil {
			return err
		}
		return d.RememberIn(tx, key, id)
	})
	return v, replayed, err
}
