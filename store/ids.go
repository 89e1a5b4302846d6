package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewID makes an id: prefix, "_" and a lower-case ULID of time t. Lower case, so
// that it survives the case-folding of mail addresses.
func NewID(prefix string, t time.Time) string {
	id := ulid.MustNew(uint64(t.UnixMilli()), rand.Reader) //nolint:gosec // a clock before 1970 is not supported
	return prefix + "_" + strings.ToLower(id.String())
}

// isServerID reports whether id has the form NewID gives for prefix.
func isServerID(prefix, id string) bool {
	rest, ok := strings.CutPrefix(id, prefix+"_")
	if !ok || len(rest) != ulid.EncodedSize || rest != strings.ToLower(rest) {
		return false
	}
	_, err := ulid.ParseStrict(strings.ToUpper(rest))
	return err == nil
}

// newSecret makes prefix and 43 URL-safe characters: 256 bits.
func newSecret(prefix string) string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// ValidTaskID reports whether a client may use id for a task: 1 to 128 characters
// of [A-Za-z0-9._:-].
func ValidTaskID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._:-", r))
	}) < 0
}
