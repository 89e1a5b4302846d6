package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// folderToCopy returns a stopped data folder with an embedded database and rows in many tables.
func folderToCopy(t *testing.T) (dir, secret string) {
	t.Helper()
	is := is.New(t)
	dir = t.TempDir()
	s, err := openOn(t, dir, "")
	is.NoErr(err)
	owner, secret := storetest.Caller(t, s, "Acme", "Ann@acme.test", people.RoleOwner)
	w, _, err := s.Workers.CreateWorker(t.Context(), owner.Caller, workers.NewWorker{Title: "Scribe \\ tab\t line\nend"},
		db.IdempotencyKey{})
	is.NoErr(err)
	n := store.NewTurn{Caller: owner.Caller, WorkerID: w.ID, Input: "with NUL\x00, and \xff", Budget: store.BudgetStandard}
	for _, key := range []db.IdempotencyKey{{}, {KeyID: owner.KeyID, Key: "text", Hash: []byte("0123456789abcdef")},
		{KeyID: owner.KeyID, Hash: []byte("fedcba9876543210")}} {
		n.IdempotencyKey = key
		is.NoErr(errOf(s.CreateTurn(t.Context(), n)))
	}
	is.NoErr(s.StartRunner(t.Context(), "r", time.Minute))
	claims, err := s.ClaimTurns(t.Context(), "r", 1, 1)
	is.NoErr(err)
	_, err = s.FinishTurn(t.Context(), claims[0], nil, store.Outcome{Status: store.Completed, OutputText: "done"})
	is.NoErr(err)
	is.NoErr(s.StopRunner(t.Context(), "r"))
	is.NoErr(s.Close())
	return dir, secret
}

// serverCopy returns the copy between a folder and a database, which counts the copied rows by
// table.
func serverCopy(t *testing.T, dir, url string, rows map[string]int64) store.ServerCopy {
	return store.ServerCopy{Dir: dir, Database: url, Schema: storetest.Schema(t),
		Copied: func(table string, n int64) { rows[table] = n }}
}

func TestPostgresCopy(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	dir, secret := folderToCopy(t)
	there, back := map[string]int64{}, map[string]int64{}
	report, err := serverCopy(t, dir, url, there).ToServer(t.Context())
	is.NoErr(err)
	is.Equal(there["turns"], int64(3))
	is.Equal(there["idempotency"], int64(2))
	is.Equal(report.Changed, 6) // the input of each turn, and the title of its task
	is.True(strings.HasPrefix(report.Names[0], "tasks 1, title"))

	s, err := openOn(t, dir, url)
	is.NoErr(err)
	owner, err := s.People.Authenticate(t.Context(), secret)
	is.NoErr(err)
	key := db.IdempotencyKey{KeyID: owner.KeyID, Hash: []byte("fedcba9876543210"), Retry: true}
	_, found, err := s.Lookup(t.Context(), key)
	is.NoErr(err)
	is.True(found) // bytes in a column of texts and bytes
	tasks, _, err := s.Tasks(t.Context(), owner.Caller, store.TaskQuery{Limit: 10})
	is.NoErr(err)
	is.Equal(len(tasks), 3)
	a, err := s.CreateTurn(t.Context(), store.NewTurn{Caller: owner.Caller, WorkerID: tasks[0].WorkerID, Input: "more",
		Budget: store.BudgetStandard})
	is.NoErr(err)
	is.Equal(a.Turn.Num, int64(4)) // numbers continue on the server
	is.NoErr(s.Close())

	is.NoErr(serverCopy(t, dir, url, back).FromServer(t.Context()))
	is.Equal(back["turns"], int64(4))
	s, err = openOn(t, dir, "")
	is.NoErr(err)
	_, found, err = s.Lookup(t.Context(), key)
	is.NoErr(err)
	is.True(found)
	is.NoErr(s.Close())
}

// TestPostgresCopyAgain repeats a copy that was interrupted after its commit, and finds it
// complete. A database with other rows is not changed.
func TestPostgresCopyAgain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	dir, _ := folderToCopy(t)
	path := filepath.Join(dir, "journeyman.db")
	copied := map[string]int64{}
	is.NoErr(errOf(serverCopy(t, dir, url, copied).ToServer(t.Context())))
	_, err := os.Stat(path)
	is.True(os.IsNotExist(err)) // so no start uses it
	is.NoErr(os.Rename(path+".moved", path))
	is.NoErr(errOf(serverCopy(t, dir, url, copied).ToServer(t.Context())))

	// The copy back was interrupted: the file exists, but the note still says that it does not.
	note, err := os.ReadFile(filepath.Join(dir, "database-server"))
	is.NoErr(err)
	is.NoErr(serverCopy(t, dir, url, copied).FromServer(t.Context()))
	is.NoErr(os.WriteFile(filepath.Join(dir, "database-server"), note, 0o600))
	is.True(errOf(openOn(t, dir, "")) != nil)
	is.True(errOf(openOn(t, dir, url)) != nil)
	is.NoErr(serverCopy(t, dir, url, copied).FromServer(t.Context()))
	s, err := openOn(t, dir, "")
	is.NoErr(err)
	is.NoErr(s.Close())

	err = serverCopy(t, t.TempDir(), pgtest.URL(t), copied).FromServer(t.Context())
	is.True(says(err, "nothing to copy")) // another name was given

	other, _ := folderToCopy(t)
	is.True(says(errOf(serverCopy(t, other, url, copied).ToServer(t.Context())), "other rows"))
	is.NoErr(errOf(os.Stat(filepath.Join(other, "journeyman.db")))) // the folder is unchanged
	err = serverCopy(t, other, url, copied).FromServer(t.Context())
	is.True(says(err, "a database already"))

	s, err = openOn(t, other, "")
	is.NoErr(err)
	// A server uses the folder.
	is.True(errors.Is(errOf(serverCopy(t, other, pgtest.URL(t), copied).ToServer(t.Context())), store.ErrLocked))
	is.NoErr(s.Close())
}

// TestPostgresRefusesLongTexts copies a folder with a path that is longer than an index of the server
// permits. The error names the row, and nothing is copied.
func TestPostgresRefusesLongTexts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	dir, _ := folderToCopy(t)
	s, err := openOn(t, dir, "")
	is.NoErr(err)
	const file = `INSERT INTO files (id, worker_id, task_num, turn_num, origin, path, title, media_type, size, sha256,
			created_at)
		SELECT 'fil_x', id, 1, 1, 'published', ?, '', 'text/plain', 1, ?, 1 FROM workers`
	is.NoErr(s.Write(t.Context(), func(tx db.Tx) error {
		return errOf(tx.Exec(file, strings.Repeat("a/", 1300)+"b", strings.Repeat("0", 64)))
	}))
	is.NoErr(s.Close())
	copied := map[string]int64{}
	_, err = serverCopy(t, dir, url, copied).ToServer(t.Context())
	is.True(says(err, "table files: row 1: its path has 2601 bytes"))
	is.Equal(len(copied), 0)
	is.Equal(strings.Contains(err.Error(), "at most 2500"), true)
	s, err = openOn(t, dir, "") // the folder is unchanged
	is.NoErr(err)
	is.NoErr(s.Write(t.Context(), func(tx db.Tx) error {
		return errOf(tx.Exec(`UPDATE files SET path = 'b'`))
	}))
	is.NoErr(s.Close())
	is.NoErr(errOf(serverCopy(t, dir, url, copied).ToServer(t.Context())))
	is.Equal(copied["files"], int64(1))
}
