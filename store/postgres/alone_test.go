package postgres_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
)

// TestWriteRunsAlone changes the row that a serializable write needs, in each of its tries. The fifth
// try holds off the other writes, and succeeds.
func TestWriteRunsAlone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	countUp := func(tx engine.Tx) error {
		_, err := tx.Exec(`UPDATE counters SET n = n + 1 WHERE id = 'a'`)
		return err
	}
	is.NoErr(db.Write(t.Context(), engine.Locking, exec(`INSERT INTO counters (id, n) VALUES ('a', 0)`)))
	var others []chan error // one for each try
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		if _, err := number(t.Context(), tx, `SELECT n FROM counters WHERE id = 'a'`); err != nil {
			return err
		}
		ended := make(chan error, 1)
		others = append(others, ended)
		go func() { ended <- db.Write(t.Context(), engine.Locking, countUp) }()
		eventually(t, "the other write to end or to wait", func() bool { return len(ended) > 0 || waiting(t, db) })
		return countUp(tx)
	}))
	is.Equal(len(others), 5)
	for _, ended := range others {
		is.NoErr(<-ended)
	}
	n, err := number(t.Context(), db, `SELECT n FROM counters WHERE id = 'a'`)
	is.NoErr(err)
	is.Equal(n, int64(6))
}

// waiting reports whether a connection waits for the lock of a table.
func waiting(t *testing.T, q engine.Querier) bool {
	t.Helper()
	n, err := number(t.Context(), q, `SELECT COUNT(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	if err != nil {
		t.Error(err)
	}
	return n > 0
}
