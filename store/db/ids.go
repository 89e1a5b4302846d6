package db

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewID returns a new id: prefix, "_" and a ULID of time t. The ULID is in lower case, so
// that the id survives the case-folding of mail addresses.
func NewID(prefix string, t time.Time) string {
	id := ulid.MustNew(uint64(t.UnixMilli()), rand.Reader) //nolint:gosec // a clock before 1970 is not supported
	return prefix + "_" + strings.ToLower(id.String())
}

// IsServerID reports whether id has the form that NewID returns for prefix.
func IsServerID(prefix, id string) bool {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	if !ok || len(rest) != ulid.EncodedSize || rest != strings.ToLower(rest) {
		return false
	}
	_, err := ulid.ParseStrict(strings.ToUpper(rest))
	return err == nil
}

// ChoseTaskID reports whether a client has chosen the id of a task. Only such an id may exist in
// several organizations.
func ChoseTaskID(id string) bool { return !IsServerID("tsk", id) }

// NewToken returns prefix and 43 URL-safe random characters: 256 bits.
func NewToken(prefix string) string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: without random numbers it ends the program
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// HashToken returns the hash with which the database knows a token.
func HashToken(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// TaskIDRule describes which ids ValidTaskID accepts.
const TaskIDRule = "must have 1 to 128 characters from A-Z, a-z, 0-9 and . _ : -, and not be . or .."

// ValidTaskID reports whether a client may use id for a task: 1 to 128 characters of
// [A-Za-z0-9._:-]. It refuses "." and "..", which mean folders in addresses.
func ValidTaskID(id string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	return id != "" && len(id) <= 128 && id != "." && id != ".." && strings.Trim(id, allowed) == ""
}

// IsToken reports whether an Authorization header can carry text.
func IsToken(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
