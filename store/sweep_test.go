package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
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
	f.startRunner("r")
	c := f.claimOne("r")
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	shown := store.Image{MediaType: "image/png", Size: 5, SHA256: f.put("shown", 90*day)}
	is.NoErr(f.JournalCall(t.Context(), c, store.Call{State: store.CallCompleted, Output: []byte("1"), Images: []store.Image{shown}}, nil, nil))
	young, old := f.put("young", day), f.put("old", day+time.Millisecond)
	stranger := f.BlobPath(old)[:len(f.BlobPath(old))-64] + "notes.txt" // somebody's own
	is.NoErr(os.WriteFile(stranger, nil, 0o600))

	is.Equal(f.sweepAll(), int64(1))
	is.True(f.kept(sha("attached")) && f.kept(sha(raw)) && f.kept(young)) // something refers to them, or soon may
	is.True(f.kept(sha("shown")))                                         // the model sees it again in the next call
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
	storetest.Embedded(t)
	is := is.New(t)
	f := newFixture(t)
	f.put("old", 2*day)
	_, err := f.Backup(t.Context(), writerFunc(func(b []byte) (int, error) {
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
	for i := range storetest.Rounds(300, 60) {
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

// TestSweepsInMaintenance has sweeps that began before the maintenance remove nothing during it.
func TestSweepsInMaintenance(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.put("nothing refers to this", 48*time.Hour)
	f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "left"}, 48*time.Hour)
	left := filepath.Join(f.Dir(), "workspaces", ".journeyman-ABC.tmp")
	is.NoErr(os.WriteFile(left, nil, 0o600))
	sweep := func() (removed int64, refused int) {
		note := func(n int64, err error) {
			if removed += n; store.IsMaintenance(err) {
				refused++
				return
			}
			is.NoErr(err)
		}
		for range 64 { // looks at every folder of blobs once, or stops at the one in question
			note(f.SweepBlobs(f.ctx()))
		}
		note(f.SweepFolders(f.ctx()))
		n, err := f.SweepWorkspaces(f.ctx(), time.Now().Add(time.Hour))
		note(int64(n), err)
		return removed, refused
	}
	is.True(f.BeginMaintenance())
	removed, refused := sweep()
	is.Equal(removed, int64(0))
	is.True(refused >= 3) // each sweep says why
	is.True(f.EndMaintenance())
	f.SweepFolders(f.ctx()) // ends the round in which a folder was refused
	removed, refused = sweep()
	is.Equal([]int64{removed, int64(refused)}, []int64{3, 0})
}
