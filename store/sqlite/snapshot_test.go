package sqlite_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
)

// TestSnapshot reads one moment, though writes come between its queries, from more
// goroutines than there are connections.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openCounts(t)
	done := make(chan error, 40)
	for range cap(done) {
		go func() {
			done <- db.Snapshot(context.Background(), func(s engine.Querier) error {
				a, err := texts(t.Context(), s, `SELECT count(*) FROM a`)
				if err != nil {
					return err
				}
				if err := writeBoth(context.Background(), db); err != nil {
					return err
				}
				b, err := texts(t.Context(), s, `SELECT count(*) FROM b`)
				if err == nil && b[0] != a[0] {
					err = fmt.Errorf("%s rows in a and %s in b: the snapshot shows later writes", a[0], b[0])
				}
				return err
			})
		}()
	}
	for range cap(done) {
		is.NoErr(<-done)
	}
}
