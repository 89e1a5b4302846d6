package store_test

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	b, err := s.PutBlob(t.Context(), strings.NewReader("hello"), 5) // exactly the limit
	is.NoErr(err)
	is.Equal(b, store.Blob{SHA256: sha("hello"), Size: 5})
	is.Equal(content(t, s, b.SHA256), "hello")

	again, err := s.PutBlob(t.Context(), strings.NewReader("hello"), math.MaxInt64)
	is.NoErr(err)
	is.Equal(again, b)
	files, err := os.ReadDir(filepath.Dir(s.BlobPath(b.SHA256)))
	is.NoErr(err)
	is.Equal(len(files), 1) // stored only once
	empty, err := s.PutBlob(t.Context(), strings.NewReader(""), 0)
	is.NoErr(err)
	is.Equal(empty.SHA256, sha(""))

	is.True(db.IsKind(errOf(s.PutBlob(t.Context(), strings.NewReader("hello!"), 5)), db.TooLarge))
	is.True(db.IsNotFound(errOf(s.OpenBlob(t.Context(), sha("hello!")))))
	broken := errors.New("connection lost")
	_, err = s.PutBlob(t.Context(), io.MultiReader(strings.NewReader("half"), &failing{broken}), 100)
	is.True(errors.Is(err, broken))
	left, err := s.UnnamedBlobs()
	is.NoErr(err)
	is.Equal(len(left), 0) // no partially written file remains
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestBlobNamesAreHashes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, store.Options{})
	for _, name := range []string{"", "..", sha("")[:63], sha("") + "0", strings.Repeat("/", 64), "../" + strings.Repeat("a", 61),
		"..//../../" + strings.Repeat("../", 18), strings.Repeat("z", 64), strings.Repeat("\x00", 64)} {
		_, err := s.OpenBlob(t.Context(), name)
		is.New(t).True(db.IsNotFound(err))
	}
}

func TestSameBlobConcurrently(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	large := strings.Repeat("x", 100_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.PutBlob(t.Context(), strings.NewReader(large), 1<<20); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	is.True(content(t, s, sha(large)) == large)
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "a [odd] name")
	s := storetest.Reopen(t, dir, store.Options{})
	kept, err := s.PutBlob(t.Context(), strings.NewReader("kept"), 10)
	is.NoErr(err)
	is.NoErr(s.Close())
	is.NoErr(os.WriteFile(filepath.Join(dir, "files", ".journeyman-123.tmp"), []byte("half"), 0o600))
	s = storetest.Reopen(t, dir, store.Options{})
	left, err := s.UnnamedBlobs()
	is.NoErr(err)
	is.Equal(len(left), 0)
	is.Equal(content(t, s, kept.SHA256), "kept")
}

func TestFilesHaveVersions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	publish := func(seq int64, content string) {
		err := f.JournalCall(t.Context(), c, store.Call{Seq: seq, State: store.CallCompleted, Output: []byte("1")},
			[]store.File{{Path: "a/b.txt", SHA256: sha(content), Size: int64(len(content))}}, nil)
		is.NoErr(err)
	}
	publish(0, "old")
	publish(1, "newer")
	newest, err := f.File(t.Context(), f.owner.Caller, f.worker.ID, "a/b.txt", "")
	is.NoErr(err)
	is.Equal(newest.SHA256, sha("newer"))
	old, err := f.File(t.Context(), f.owner.Caller, f.worker.ID, "a/b.txt", sha("old")[:12])
	is.NoErr(err)
	is.Equal(old.Size, int64(3))
	for _, path := range []string{"a/b.tx", "A/B.TXT", "", "../a/b.txt"} {
		is.True(db.IsNotFound(errOf(f.File(t.Context(), f.owner.Caller, f.worker.ID, path, ""))))
	}
	is.True(db.IsNotFound(errOf(f.File(t.Context(), f.owner.Caller, f.worker.ID, "a/b.txt", "000000000000"))))
}
