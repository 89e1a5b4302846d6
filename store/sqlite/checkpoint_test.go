package sqlite_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/engine"
)

// TestCheckpointBesideAWrite copies the log into the database while a write is under way, whose lock
// the copy must not need.
func TestCheckpointBesideAWrite(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := openCounts(t)
	is.NoErr(writeBoth(t.Context(), db))
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(engine.Tx) error {
		return db.Checkpoint(t.Context())
	}))
}
