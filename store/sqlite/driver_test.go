package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	modernc "modernc.org/sqlite"

	"journeyman/store/engine"
)

// TestDriverIsTheComparedOne checks that the required driver is the one with which the calls of this
// package were compared, and that it runs on the C library that it was made for: the layout of that
// library's memory differs between releases.
func TestDriverIsTheComparedOne(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	listed := func(name string) (version, file string) {
		text, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.GoMod}}", name).Output()
		is.NoErr(err)
		version, file, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
		return version, file
	}
	driver, file := listed("modernc.org/sqlite")
	libc, _ := listed("modernc.org/libc")
	needs, err := os.ReadFile(file)
	is.NoErr(err)
	is.True(slices.Contains(strings.Split(string(needs), "\n"), "\tmodernc.org/libc "+libc)) // go.mod of the driver names our libc
	comment, err := os.ReadFile("conn.go")
	is.NoErr(err)
	is.True(strings.Contains(string(comment), fmt.Sprintf("modernc.org/sqlite %s.", driver))) // compare the calls again
}

// TestCommitsSyncData checks the system call of a commit.
func TestCommitsSyncData(t *testing.T) {
	is := is.New(t)
	open(t)
	was, err := modernc.Fdatasync(true)
	is.True(was || err != nil) // the system has no such call
}

// TestNoBufferStaysBound runs statements with texts and blobs to their end, early, and with errors.
// Afterwards no parameter points to memory that the package may free.
func TestNoBufferStaysBound(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	const query = `SELECT detail FROM log WHERE organization = ?1 AND detail <> ?2 AND num >= ?3`
	read := func(q engine.Querier, args ...any) error {
		rows, err := q.Query(t.Context(), query, args...)
		if err != nil {
			return err
		}
		rows.Next()
		return rows.Close() // early
	}
	for _, text := range []string{"short", strings.Repeat("long", 10_000)} {
		is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
			for range 2 {
				_, err := tx.Exec(`INSERT INTO log (organization, detail, created_at) VALUES (?, ?, 12345)`, text, text)
				is.NoErr(err)
			}
			_, err := tx.Exec(`INSERT INTO links (note) VALUES (CAST(? AS TEXT))`, []byte(text))
			is.True(err != nil) // there is no such note
			is.True(read(tx, text, "x", struct{}{}) != nil)
			return read(tx, text, []byte(text), 67890)
		}))
		is.NoErr(read(db, text, []byte(text), 67890))
		is.True(read(db, text, text, struct{}{}) != nil)
	}
	bound := strings.Join(db.Bound(), "\n")
	is.True(!strings.Contains(bound, "short") && !strings.Contains(bound, "long") && !strings.Contains(bound, "x'"))
	is.Equal(strings.Count(bound, "organization = NULL AND detail <> NULL AND num >= 67890"), 2) // the writer's and a reader's
}
