package handlers

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"

	"journeyman/store"
)

// once reads how a POST is told from its repetitions: by its Idempotency-Key or,
// for generated clients that retry without one, by its content. content is equal
// for requests that mean the same.
func once(r *request, content []byte) (store.Once, error) {
	h := sha256.New()
	h.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	h.Write(content)
	o := store.Once{KeyID: r.who.KeyID, Hash: h.Sum(nil)}
	if values := r.Header.Values("Idempotency-Key"); len(values) > 0 {
		o.Key = values[0]
		if n := utf8.RuneCountInString(o.Key); len(values) > 1 || n < 1 || n > 255 {
			return o, invalid("Idempotency-Key", "must be one header of 1 to 255 characters")
		}
	}
	if n, err := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")); err == nil && n > 0 {
		o.Retry = true
	}
	return o, nil
}
