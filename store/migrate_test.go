package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func TestFolderAllowsOneProcess(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := t.TempDir()
	first, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.NoErr(err)
	is.True(errors.Is(errOf(store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})), store.ErrLocked))
	is.NoErr(first.Ping(t.Context())) // the failed attempt has no effect on the first
	is.NoErr(first.Close())
	is.NoErr(storetest.Reopen(t, dir, store.Options{}).Close())
}

func TestOpenRefusesANewerDatabase(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := t.TempDir()
	is.NoErr(storetest.Reopen(t, dir, store.Options{}).Close())
	storetest.Script(t, dir, fmt.Sprintf(`PRAGMA user_version = %d`, store.NewestVersion()+1))
	is.True(says(errOf(store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})), "use a newer program"))
	_, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
	is.True(!errors.Is(err, store.ErrLocked)) // a failed Open releases the folder
}
