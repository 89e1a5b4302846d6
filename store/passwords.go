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
	"time"
	"unicode/utf8"

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

// What a password may be. The upper limit bounds the work of hashing.
const (
	MinPassword = 8    // characters
	MaxPassword = 1024 // bytes
)

// checkPassword notes in f a password that nobody may choose.
func checkPassword(f *Fields, password string) {
	f.Check(utf8.RuneCountInString(password) >= MinPassword, "password", "must have %d characters or more", MinPassword)
	f.Check(len(password) <= MaxPassword, "password", "must have at most %d bytes", MaxPassword)
}

// hashWait is how long a password waits for its turn to be hashed: each takes its
// memory, so few are at once.
const hashWait = 10 * time.Second

// hash runs do, which hashes a password, once there is room for it. It is Busy where
// too many others are before it.
func (s *Store) hash(ctx context.Context, do func()) error {
	late := time.NewTimer(hashWait)
	defer late.Stop()
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
		do()
		return nil
	case <-late.C:
		return Errorf(Busy, "too many people are signing in at this moment: try again")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newPassword gives the hash of a password that somebody has chosen.
func (s *Store) newPassword(ctx context.Context, password string) (hash string, err error) {
	var f Fields
	checkPassword(&f, password)
	if err := f.Err(); err != nil {
		return "", err
	}
	err = s.hash(ctx, func() { hash = hashPassword(password) })
	return hash, err
}

// SetPassword sets the password a user signs in with, on behalf of who owns the
// data folder. It ends the user's sessions, and the links to choose another.
func (s *Store) SetPassword(ctx context.Context, email, password string) error {
	hash, err := s.newPassword(ctx, password) // before the transaction: it takes its time
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *Tx) error {
		userID, err := one(ctx, tx, scanString, `SELECT id FROM users WHERE email = ?`, email)
		if errors.Is(err, sql.ErrNoRows) {
			return Errorf(NotFound, "no user has that email address")
		}
		if err != nil {
			return err
		}
		if err := s.putPassword(tx, userID, hash, ""); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, Caller{}, userID, "password.set", map[string]any{"user": email})
	})
}

// putPassword sets a password, and ends all that the old one gave access to but the
// session kept.
func (s *Store) putPassword(tx *Tx, userID, hash, kept string) error {
	if _, err := tx.Exec(`UPDATE users SET password_hash = ? WHERE id = ?`, hash, userID); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM sessions WHERE user_id = ? AND id <> ?`, userID, kept); err != nil {
		return err
	}
	return endLinks(tx, userID)
}

// ChangePassword sets the password of the caller, who must know the old one. It ends
// their other sessions and the links to choose another. A wrong old password is an
// Invalid error of the field.
func (s *Store) ChangePassword(ctx context.Context, c Identity, sessionID, old, password string) error {
	if _, err := s.CheckPassword(ctx, c.Email, old); err != nil {
		if IsKind(err, Unauthorized) {
			return Fields{{Path: "old", Message: "is not your password"}}.Err()
		}
		return err
	}
	hash, err := s.newPassword(ctx, password)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *Tx) error {
		if err := s.putPassword(tx, c.UserID, hash, sessionID); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, c.Caller, c.UserID, "password.change", map[string]any{"user": c.Email})
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
	matches := false
	if len(password) <= MaxPassword {
		err = s.hash(ctx, func() { matches = passwordMatches(hash.String, password) })
		if err != nil {
			return "", err
		}
	}
	if !matches {
		return "", Errorf(Unauthorized, "the email address or the password is wrong")
	}
	return userID, nil
}

// HasPasswords reports whether anybody has a password to sign in with.
func (s *Store) HasPasswords(ctx context.Context) (bool, error) {
	n, err := one(ctx, s, scanInt, `SELECT EXISTS (SELECT 1 FROM users WHERE password_hash IS NOT NULL)`)
	return n == 1, err
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
