package store_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// sweepAll has every folder of blobs swept once.
func (f *fixture) sweepAll() (n int64) {
	f.t.Helper()
	for range 64 {
		removed, err := f.SweepBlobs(f.ctx())
		if err != nil {
			f.t.Fatal(err)
		}
		n += removed
	}
	return n
}

// put keeps content as if it had come an age ago.
func (f *fixture) put(content string, age time.Duration) (sha string) {
	f.t.Helper()
	b, err := f.PutBlob(strings.NewReader(content), 1<<20)
	if err != nil {
		f.t.Fatal(err)
	}
	f.makeOld(b.SHA256, age)
	return b.SHA256
}

func (f *fixture) makeOld(sha string, age time.Duration) {
	f.t.Helper()
	at := f.clock.now().Add(-age)
	if err := os.Chtimes(f.BlobPath(sha), at, at); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) kept(sha string) bool {
	f.t.Helper()
	file, err := f.OpenBlob(sha)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !store.IsNotFound(err) {
		f.t.Fatal(err)
	}
	return err == nil
}

const day = 24 * time.Hour

// TestSweepsKeepWhatIsReferredTo looks at bytes of every use and age.
func TestSweepsKeepWhatIsReferredTo(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.Attachments = []store.File{{Path: "a", SHA256: f.put("attached", 90*day)}}
	f.accept(n)
	mail := store.NewEmail{Worker: f.worker, Status: store.EmailIgnored, MessageID: "a@b.test"}
	raw := strings.Repeat("large ", 20_000)
	_, _, err := f.ReceiveEmails(t.Context(), []store.NewEmail{mail}, []byte(raw), store.MailLimits{})
	is.NoErr(err)
	f.makeOld(sha(raw), 90*day)
	young, old := f.put("young", day), f.put("old", day+time.Millisecond)
	stranger := f.BlobPath(old)[:len(f.BlobPath(old))-64] + "notes.txt" // somebody's own
	is.NoErr(os.WriteFile(stranger, nil, 0o600))

	is.Equal(f.sweepAll(), int64(1))
	is.True(f.kept(sha("attached")) && f.kept(sha(raw)) && f.kept(young))
	is.True(!f.kept(old))
	_, err = os.Stat(stranger)
	is.NoErr(err)
	is.Equal(f.sweepAll(), int64(0))

	f.makeOld(young, 2*day)
	_, err = f.PutBlob(strings.NewReader("young"), 100) // somebody brings it again
	is.NoErr(err)
	f.clock.advance(time.Hour)
	is.Equal(f.sweepAll(), int64(0))
	f.clock.advance(day)
	is.Equal(f.sweepAll(), int64(1))
}

// TestSweepsWaitForBackups has a sweep between the database and the files of a
// backup take nothing away.
func TestSweepsWaitForBackups(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.put("old", 2*day)
	err := f.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
		is.Equal(f.sweepAll(), int64(0))
		return len(b), nil
	}))
	is.NoErr(err)
	is.Equal(f.sweepAll(), int64(1))
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// TestSweepsBesideUploads has the same old bytes brought and swept at once: what
// PutBlob has answered is there.
func TestSweepsBesideUploads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_, err := f.SweepBlobs(f.ctx())
				if err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for i := range 300 {
		content := fmt.Sprint("content ", i%7)
		if _, err := f.PutBlob(strings.NewReader(content), 100); err != nil {
			t.Error(err)
		}
		if !f.kept(sha(content)) {
			t.Errorf("what was put is gone: %q", content)
		}
		at := f.clock.now().Add(-2 * day)
		if err := os.Chtimes(f.BlobPath(sha(content)), at, at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
}
