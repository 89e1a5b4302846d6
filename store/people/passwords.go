package people

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	_ "embed" // for the list of common passwords
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"journeyman/store/db"
)

// The cost of a password hash (RFC 9106): 19 MiB, two passes, one lane. Each hash
// stores its cost, so that a later version can raise it.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16 // bytes
	argonKey    = 32 // bytes
)

// The lengths of a password. The upper limit bounds the work of hashing.
const (
	MinPassword = 8    // characters
	MaxPassword = 1024 // bytes
)

// checkPassword adds to f an error for a password that is too short, too long or common.
func checkPassword(f *db.Fields, password string) {
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		f.Add("password", "must have %d characters or more", MinPassword)
	case len(password) > MaxPassword:
		f.Add("password", "must have at most %d bytes", MaxPassword)
	case isCommonPassword(password):
		f.Add("password", "must not be a password that many people choose: several words in a row are better")
	}
}

//go:embed common-passwords.txt
var commonPasswords string // one a line, in lower case

// minDistinctRunes is the number of different characters that a password must exceed.
const minDistinctRunes = 2

// isCommonPassword reports whether a password is in the list of the most common ones, whatever
// its case, or repeats one or two characters. See NIST SP 800-63B, section 3.1.1.2.
func isCommonPassword(password string) bool {
	lower := strings.ToLower(password)
	different := map[rune]bool{}
	for _, r := range lower {
		different[r] = true
	}
	// A password with a line end could match several lines of the list.
	listed := !strings.Contains(lower, "\n") && strings.Contains(commonPasswords, "\n"+lower+"\n")
	return len(different) <= minDistinctRunes || listed
}

// hashWait is how long a request waits to hash a password. Few passwords are hashed at once,
// because each takes argonMemory.
const hashWait = 10 * time.Second

// hash calls do, which hashes a password, once fewer than the permitted number are being hashed. It
// returns a Busy error after hashWait.
func (s *Store) hash(ctx context.Context, do func()) error {
	late := time.NewTimer(hashWait)
	defer late.Stop()
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
		do()
		return nil
	case <-late.C:
		return db.Errorf(db.Busy, "too many people are signing in at this moment: try again")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newPassword checks and hashes a password that somebody has chosen. It takes too long
// for a transaction.
func (s *Store) newPassword(ctx context.Context, password string) (hash string, err error) {
	var f db.Fields
	checkPassword(&f, password)
	if err := f.Err(); err != nil {
		return "", err
	}
	err = s.hash(ctx, func() { hash = hashPassword(password, s.hashMemory) })
	return hash, err
}

// SetPassword sets the password of the user with that email address, for the owner of
// the data folder. It ends the user's sessions and their links to choose a password.
func (s *Store) SetPassword(ctx context.Context, email, password string) error {
	return s.setPasswordOf(ctx, email, password, func(db.Tx) error { return nil })
}

// SetFirstPassword is SetPassword where no user has a password. Otherwise it does nothing, and set is false.
// Of several servers that start at once on an empty database, one sets the password.
func (s *Store) SetFirstPassword(ctx context.Context, email, password string) (set bool, err error) {
	err = s.setPasswordOf(ctx, email, password, func(tx db.Tx) error {
		return db.RefuseIf(ctx, tx, errNotFirst,
			anyPassword)
	})
	if errors.Is(err, errNotFirst) {
		return false, nil
	}
	return err == nil, err
}

// setPasswordOf is SetPassword unless may returns an error.
func (s *Store) setPasswordOf(ctx context.Context, email, password string, may func(db.Tx) error) error {
	hash, err := s.newPassword(ctx, password)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		if err := may(tx); err != nil {
			return err
		}
		userID, err := userByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		// No session is kept: a person who knew the old password may have one of them.
		if err := setLinkPassword(tx, userID, hash, true); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, Operator(), userID, "password.set", map[string]any{"user": email})
	})
}

func userByEmail(ctx context.Context, tx db.Tx, email string) (userID string, err error) {
	userID, err = db.One(ctx, tx, db.ScanString, `SELECT id FROM users WHERE email = ?`, email)
	return userID, db.NoRow(err, db.Errorf(db.NotFound, "no user has that email address"))
}

// setLinkPassword is setPassword by a link, or by the operator. It ends every session of the user. proven
// tells whether the operator vouches for the holder of the address, as with a link of the command line. For a
// link of an organization it is false, because those who manage the organization can open the link themselves.
func setLinkPassword(tx db.Tx, userID, hash string, proven bool) error {
	if _, err := tx.Exec(`UPDATE users SET unproven = ? WHERE id = ?`, !proven, userID); err != nil {
		return err
	}
	return setPassword(tx, userID, hash, "")
}

// setPassword stores the hash of a new password. It ends the access that the old one gave: the
// user's links, and their sessions except the one with the id kept.
func setPassword(tx db.Tx, userID, hash, kept string) error {
	if _, err := tx.Exec(`UPDATE users SET password_hash = ? WHERE id = ?`, hash, userID); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM sessions WHERE user_id = ? AND id <> ?`, userID, kept); err != nil {
		return err
	}
	return endLinks(tx, userID)
}

// ChangePassword sets the password of the caller, who must know the old one. It ends
// their other sessions and their links to choose a password. For a wrong old password it
// returns an Invalid error.
func (s *Store) ChangePassword(ctx context.Context, c Identity, sessionID, old, password string) error {
	if _, err := s.CheckPassword(ctx, c.Email, old); err != nil {
		if db.IsKind(err, db.Unauthorized) {
			return db.Fields{{Path: "old", Message: "is not your password"}}.Err()
		}
		return err
	}
	// Hashing takes long, so it happens before the transaction.
	hash, err := s.newPassword(ctx, password)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		if err := setPassword(tx, c.UserID, hash, sessionID); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, c.Caller, c.UserID, "password.change", map[string]any{"user": c.Email})
	})
}

// CheckPassword returns the user with that email address and password, as a Caller without an
// organization. It returns the same Unauthorized error, after the same time, for unknown
// users, users without a password and wrong passwords.
func (s *Store) CheckPassword(ctx context.Context, email, password string) (Caller, error) {
	c := Caller{Trigger: TriggerUI}
	var hash sql.NullString
	_, err := db.One(ctx, s.db, db.Into(&c.UserID, &hash), `SELECT id, password_hash FROM users WHERE email = ?`, email)
	if err = db.NoRow(err, nil); err != nil {
		return Caller{}, err
	}
	// An unknown user has no hash. The work is done all the same, so that the duration does not
	// reveal whether the address is known.
	matches := false
	if len(password) <= MaxPassword {
		if err := s.hash(ctx, func() { matches = passwordMatches(hash.String, password, s.hashMemory) }); err != nil {
			return Caller{}, err
		}
	}
	if !matches {
		return Caller{}, db.Errorf(db.Unauthorized, "the email address or the password is wrong")
	}
	return c, nil
}

const anyPassword = `SELECT EXISTS (SELECT 1 FROM users WHERE password_hash IS NOT NULL)`

// HasPasswords reports whether any user has a password to sign in with.
func (s *Store) HasPasswords(ctx context.Context) (bool, error) {
	return db.One(ctx, s.db, db.ScanBool, anyPassword)
}

// hashPassword returns the hash of a password in PHC form, which names algorithm and cost.
// memory is the memory, in KiB, that the computation takes.
func hashPassword(password string, memory uint32) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails: it ends the program instead
	key := argon2.IDKey([]byte(password), salt, argonTime, memory, argonLanes, argonKey)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, argonTime, argonLanes,
		b64.EncodeToString(salt), b64.EncodeToString(key))
}

// passwordMatches reports whether a hash belongs to a password. Without a hash it does the same
// work, with unknown KiB of memory, so that its duration does not reveal whether a user exists.
func passwordMatches(hash, password string, unknown uint32) bool {
	var version, memory, time, lanes int
	fields := strings.Split(hash, "$")
	known := len(fields) == 6 && fields[1] == "argon2id"
	if known {
		_, err1 := fmt.Sscanf(fields[2], "v=%d", &version)
		_, err2 := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &memory, &time, &lanes)
		known = err1 == nil && err2 == nil && version == argon2.Version
	}
	if !known {
		argon2.IDKey([]byte(password), make([]byte, argonSalt), argonTime, unknown, argonLanes, argonKey)
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(fields[4])
	want, err2 := base64.RawStdEncoding.DecodeString(fields[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	//nolint:gosec // the numbers come from our own table, so none overflows
	got := argon2.IDKey([]byte(password), salt, uint32(time), uint32(memory), uint8(lanes), uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// CreatePasswordLink creates a reset or a welcome, with which a user chooses a
// password. It returns the link with its token, which is not stored. It ends the
// user's older links.
//
// A caller names the user by id, and may create a reset alone. CreatePasswordLink returns Forbidden
// unless the caller manages the user in each of the user's organizations, because the link gives
// access to all of them. An Operator names the user by email address.
func (s *Store) CreatePasswordLink(ctx context.Context, c Caller, kind LinkKind,
	user string) (l Link, token string, err error) {
	if !c.operator && kind != LinkReset {
		return Link{}, "", db.Errorf(db.Forbidden, "only the command line creates this link")
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		userID := user
		if c.operator {
			userID, err = userByEmail(ctx, tx, user)
		} else {
			err = allowReset(ctx, tx, c, user)
		}
		if err != nil {
			return err
		}
		if err := endLinks(tx, userID); err != nil {
			return err
		}
		if l, token, err = s.insertLink(ctx, tx, c, Link{Kind: kind, UserID: userID}, ResetLifetime); err != nil {
			return err
		}
		detail := map[string]any{"user": l.Email}
		if c.operator {
			return s.auditUser(ctx, tx, c, userID, "password.link", detail)
		}
		return s.Audit(tx, c, "password.link", userID, detail)
	})
	return l, token, err
}

// allowReset returns an error unless the caller may give a member of their
// organization a link to choose a password.
func allowReset(ctx context.Context, tx db.Tx, c Caller, userID string) error {
	m, err := readMember(ctx, tx, c, userID)
	if err != nil {
		return err
	}
	if err := allowManaging(ctx, tx, &c, m.Role); err != nil {
		return err
	}
	if userID == c.UserID {
		return db.Errorf(db.Conflict, "change your own password on your account's page")
	}
	list, err := organizationsOf(ctx, tx, userID)
	if err != nil {
		return err
	}
	// The link gives access to every organization of the user, so the caller must manage the user
	// in all of them.
	for _, o := range list {
		there := c
		there.OrganizationID = o.ID
		err := allowManaging(ctx, tx, &there, o.Role)
		if db.IsKind(err, db.Forbidden) {
			return db.Errorf(db.Forbidden,
				"the user is in another organization, too, and the link would also give access to it: "+
					"ask the operator of this server to run journeyman user reset")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ChoosePassword uses a reset or a welcome. It sets the password of the link's user,
// ends their sessions and returns them as a Caller without an organization. A welcome
// sets the name and the email address, too.
func (s *Store) ChoosePassword(ctx context.Context, kind LinkKind, token string, n NewUser,
	remoteAddr string) (Caller, error) {
	var f db.Fields
	n.Email = strings.TrimSpace(n.Email)
	n.Name = strings.TrimSpace(n.Name)
	if kind == LinkWelcome {
		db.CheckName(&f, "name", n.Name, db.MaxName)
		f.Check(db.ValidEmail(n.Email), "email", "must be an email address")
	}
	checkPassword(&f, n.Password)
	if err := f.Err(); err != nil {
		return Caller{}, err
	}
	if _, err := s.Link(ctx, kind, token); err != nil {
		return Caller{}, err // before the work of hashing
	}
	hash, err := s.newPassword(ctx, n.Password)
	if err != nil {
		return Caller{}, err
	}
	c := Caller{Trigger: TriggerUI, RemoteAddr: remoteAddr}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		// Read the link again: it works once, and another request may have used it.
		l, err := s.link(ctx, tx, kind, token)
		if err != nil {
			return err
		}
		c.UserID = l.UserID
		if kind == LinkWelcome && n.Email != l.Email {
			if err := s.changeEmail(ctx, tx, c, n.Email); err != nil {
				return err
			}
		}
		if kind == LinkWelcome {
			s.ForgetKnown(tx)
			if _, err := tx.Exec(`UPDATE users SET name = ? WHERE id = ?`, n.Name, c.UserID); err != nil {
				return err
			}
		}
		// The creator of a link of an organization may have opened it, too.
		// setPassword also deletes the link.
		if err := setLinkPassword(tx, c.UserID, hash, l.OrganizationID == ""); err != nil {
			return err
		}
		return s.auditUser(ctx, tx, c, c.UserID, "password.reset", map[string]any{"user": l.Email, "link": l.ID})
	})
	return c, err
}

// changeEmail sets the email address of the caller. The address of another user is
// Invalid.
func (s *Store) changeEmail(ctx context.Context, tx db.Tx, c Caller, email string) error {
	err := db.RefuseIf(ctx, tx, db.Fields{{Path: "email", Message: "belongs to another user"}}.Err(),
		`SELECT EXISTS (SELECT 1 FROM users WHERE email = ? AND id <> ?)`, email, c.UserID)
	if err != nil {
		return err
	}
	s.ForgetKnown(tx)
	_, err = tx.Exec(`UPDATE users SET email = ? WHERE id = ?`, email, c.UserID)
	return err
}
