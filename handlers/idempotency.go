package handlers

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"unicode/utf8"

	"journeyman/store/db"
)

// IdempotencyKey returns the key that a POST shares with its repetitions. It holds the header
// Idempotency-Key and a hash of the request. Generated clients that retry without the header are
// recognized by the hash. content must be equal for requests that mean the same.
func IdempotencyKey(r *http.Request, keyID string, content []byte) (db.IdempotencyKey, error) {
	h := sha256.New()
	h.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	h.Write(content)
	key := db.IdempotencyKey{KeyID: keyID, Hash: h.Sum(nil)}
	if values := r.Header.Values("Idempotency-Key"); len(values) > 0 {
		key.Key = values[0]
		if n := utf8.RuneCountInString(key.Key); len(values) > 1 || n < 1 || n > 255 {
			return key, invalid("Idempotency-Key", "must be one header of 1 to 255 characters")
		}
	}
	// Clients that Stainless has generated count their retries from 1.
	if n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")); err == nil && n > 0 {
		key.Retry = true
	}
	return key, nil
}

// namedKey returns the key of a request with an Idempotency-Key, and the zero value for a request
// without one.
func namedKey(r *request, content []byte) (db.IdempotencyKey, error) {
	key, err := idempotencyKey(r, content)
	if key.Key == "" {
		return db.IdempotencyKey{}, err
	}
	return key, err
}

func idempotencyKey(r *request, content []byte) (db.IdempotencyKey, error) {
	return IdempotencyKey(r.Request, r.who.KeyID, content)
}

// markReplay informs a client that its request was carried out before.
func markReplay(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
}

// respondReplayed responds as respondOK does, and marks the answer to a repeated request.
func respondReplayed(w http.ResponseWriter, v any, replayed bool, err error) error {
	if err == nil {
		markReplay(w, replayed)
	}
	return respondOK(w, v, err)
}
