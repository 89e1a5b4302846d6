package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/sqlite"
)

// TestSnapshot reads one moment, though writes come between its queries, from more
// goroutines than there are connections.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), `CREATE TABLE a (n INTEGER); CREATE TABLE b (n INTEGER)`, nil)
	is.NoErr(err)
	defer db.Close()
	count := func(s engine.Querier, table string) (n int, err error) {
		rows, err := s.Query(t.Context(), `SELECT count(*) FROM `+table)
		if err != nil {
			return 0, err
		}
		defer rows.Close()
		if !rows.Next() {
			return 0, errors.Join(errors.New("no row"), rows.Err())
		}
		err = rows.Scan(&n)
		return n, err
	}
	done := make(chan error, 40)
	for range cap(done) {
		go func() {
			done <- db.Snapshot(context.Background(), func(s engine.Querier) error {
				a, err := count(s, "a")
				if err != nil {
					return err
				}
				err = db.Write(context.Background(), engine.Serializable, func(tx engine.Tx) error {
					_, err := tx.Exec(`INSERT INTO a VALUES (1)`)
					if err == nil {
						_, err = tx.Exec(`INSERT INTO b VALUES (1)`)
					}
					return err
				})
				if err != nil {
					return err
				}
				b, err := count(s, "b")
				if err == nil && b != a {
					err = fmt.Errorf("%d rows in a and %d in b: the snapshot shows later writes", a, b)
				}
				return err
			})
		}()
	}
	for range cap(done) {
		is.NoErr(<-done)
	}
}
