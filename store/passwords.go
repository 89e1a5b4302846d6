package store

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The cost of a password hash (RFC 9106): 19 MiB, two passes, one lane. Hashes keep
// the cost they were made with, so it can be raised.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32
)

// What a password may be, in bytes. The upper limit bounds the work of hashing.
const (
	MinPassword = 8
	MaxPassword = 1024
)

// SetPassword sets the password a user signs in with.
func (s *Store) SetPassword(ctx context.Context, email, password string) error {
	var f Fields
	f.Check(len(password) >= MinPassword && len(password) <= MaxPassword, "password", "must have %d to %d bytes", MinPassword, MaxPassword)
	if err := f.Err(); err != nil {
		return err
	}
	hash := hashPassword(password) // before the transaction: it takes its time
	return s.write(ctx, func(tx *Tx) error {
		n, err := tx.Exec(`UPDATE users SET password_hash = ? WHERE email = ?`, hash, email)
		if err == nil && n == 0 {
			return Errorf(NotFound, "no user has that email address")
		}
		return err
	})
}

// CheckPassword gives the id of the user with that email address and password.
// Unknown users, users without a password and wrong passwords are an Unauthorized
// error alike, and take the same time.
func (s *Store) CheckPassword(ctx context.Context, email, password string) (userID string, err error) {
	var hash sql.NullString
	_, err = one(ctx, s, func(row scanner) (struct{}, error) { return struct{}{}, row.Scan(&userID, &hash) },
		`SELECT id, password_hash FROM users WHERE email = ?`, email)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	if len(password) > MaxPassword || !passwordMatches(hash.String, password) {
		return "", Errorf(Unauthorized, "the email address or the password is wrong")
	}
	return userID, nil
}

// hashPassword gives the PHC form, which names algorithm and cost.
func hashPassword(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails: it ends the program instead
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		b64.EncodeToString(salt), b64.EncodeToString(key))
}

// passwordMatches also hashes where there is nothing to compare with, so that the
// time tells nothing.
func passwordMatches(hash, password string) bool {
	var version, memory, time, lanes int
	fields := strings.Split(hash, "$")
	known := len(fields) == 6 && fields[1] == "argon2id"
	if known {
		_, err1 := fmt.Sscanf(fields[2], "v=%d", &version)
		_, err2 := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &memory, &time, &lanes)
		known = err1 == nil && err2 == nil && version == argon2.Version
	}
	if !known {
		argon2.IDKey([]byte(password), make([]byte, argonSalt), argonTime, argonMemory, argonLanes, argonKey)
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(fields[4])
	want, err2 := base64.RawStdEncoding.DecodeString(fields[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, uint32(time), uint32(memory), uint8(lanes), uint32(len(want))) //nolint:gosec // from our own table
	return subtle.ConstantTimeCompare(got, want) == 1
}
