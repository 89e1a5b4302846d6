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
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// sweepAll sweeps every folder of blobs once.
func (f *fixture) sweepAll() (n int64) {
	f.t.Helper()
	for range 64 {
		removed, err := f.SweepBlobs(f.ctx())
		is.New(f.t).NoErr(err)
		n += removed
	}
	return n
}

// put stores content with the given age.
func (f *fixture) put(content string, age time.Duration) (sha string) {
	f.t.Helper()
	b, err := f.PutBlob(f.ctx(), strings.NewReader(content), 1<<20)
	is.New(f.t).NoErr(err)
	f.makeOld(b.SHA256, age)
	return b.SHA256
}

func (f *fixture) makeOld(sha string, age time.Duration) {
	f.t.Helper()
	at := f.clock.now().Add(-age)
	is.New(f.t).NoErr(os.Chtimes(f.BlobPath(sha), at, at))
}

func (f *fixture) kept(sha string) bool {
	f.t.Helper()
	file, err := f.OpenBlob(f.ctx(), sha)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !db.IsNotFound(err) {
		f.t.Fatal(err)
	}
	return err == nil
}

const day = 24 * time.Hour

// TestSweepsKeepReferencedFiles sweeps files of every use and age.
func TestSweepsKeepReferencedFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.Attachments = []store.File{{Path: "a", SHA256: f.put("attached", 90*day)}}
	f.accept(n)
	mail := store.NewEmail{Worker: f.worker, Status: store.EmailIgnored, MessageID: "a@b.test", Verdicts: []byte(`{}`)}
	raw := strings.Repeat("large ", 20_000)
	is.NoErr(errOf(f.ReceiveEmails(t.Context(), []store.NewEmail{mail}, []byte(raw), store.MailLimits{})))
	f.makeOld(sha(raw), 90*day)
	f.startRunner("r")
	c := f.claimOne("r")
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	shown := store.Image{MediaType: "image/png", Size: 5, SHA256: f.put("shown", 90*day)}
	is.NoErr(f.JournalCall(t.Context(), c, store.Call{State: store.CallCompleted, Output: []byte("1"), Images: []store.Image{shown}}, nil, nil))
	young, old := f.put("young", day), f.put("old", day+time.Millisecond)
	stranger := f.BlobPath(old)[:len(f.BlobPath(old))-64] + "notes.txt" // a file of an operator
	is.NoErr(os.WriteFile(stranger, nil, 0o600))

	is.Equal(f.sweepAll(), int64(1))
	// Rows refer to these files, or may soon refer to them.
	is.True(f.kept(sha("attached")) && f.kept(sha(raw)) && f.kept(young))
	// The model gets the image again in the next request.
	is.True(f.kept(sha("shown")))
	is.True(!f.kept(old))
	is.NoErr(errOf(os.Stat(stranger)))
	is.Equal(f.sweepAll(), int64(0))

	f.makeOld(young, 2*day)
	is.NoErr(errOf(f.PutBlob(t.Context(), strings.NewReader("young"), 100))) // the same content is stored again
	f.clock.advance(time.Hour)
	is.Equal(f.sweepAll(), int64(0))
	f.clock.advance(day)
	is.Equal(f.sweepAll(), int64(1))
}

// TestSweepsWaitForBackups sweeps between the database and the files of a backup. The sweep removes
// nothing.
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

// TestSweepsBesideUploads stores and sweeps the same old content at once. Content exists after
// PutBlob has returned.
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
		if _, err := f.PutBlob(t.Context(), strings.NewReader(content), 100); err != nil {
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

// TestSweepsInMaintenance checks that sweeps remove nothing during maintenance, even if they have
// begun before it.
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
			if removed += n; db.IsMaintenance(err) {
				refused++
				return
			}
			is.NoErr(err)
		}
		for range 64 { // visits every folder of blobs once, or stops at the refused one
			note(f.SweepBlobs(f.ctx()))
		}
		note(f.SweepFolders(f.ctx()))
		n, err := f.SweepWorkspaces(f.ctx(), time.Now().Add(time.Hour))
		note(int64(n), err)
		return removed, refused
	}
	is.True(f.Gate.BeginMaintenance())
	removed, refused := sweep()
	is.Equal(removed, int64(0))
	ordertest.AtLeast(is, refused, 3) // each sweep returns the reason
	is.True(f.Gate.EndMaintenance())
	f.SweepFolders(f.ctx()) // ends the round in which a folder was refused
	removed, refused = sweep()
	is.Equal([]int64{removed, int64(refused)}, []int64{3, 0})
}

// TestSweepEndsRemovals sweeps blobs whose removal a killed process has begun.
func TestSweepEndsRemovals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	old, stored, alone := f.put("old", 2*day), f.put("stored again", 2*day), f.put("alone", 0)
	for _, sha := range []string{old, stored, alone} {
		is.NoErr(os.Rename(f.BlobPath(sha), f.BlobPath(sha)+".removed"))
	}
	f.put("stored again", 0)
	is.Equal(f.sweepAll(), int64(2)) // one of them has been stored again
	is.True(!f.kept(old))
	is.True(f.kept(stored))
	is.True(f.kept(alone))
	left, err := filepath.Glob(filepath.Join(f.Dir(), "files", "*", "*.removed"))
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestSweepBesideNode stores old bytes again while another node removes them.
func TestSweepBesideNode(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	f := newFixtureWith(t, store.Options{Node: &store.Node{URL: "http://a.test"}})
	other := &fixture{t: t, clock: f.clock}
	other.Store = storetest.Reopen(t, f.Dir(), store.Options{Now: f.clock.now, Node: &store.Node{URL: "http://b.test"}})
	swept := int64(0)
	for range 100 {
		sha := f.put("the same bytes", 2*day)
		var sweep sync.WaitGroup
		sweep.Go(func() { swept += other.sweepAll() })
		is.NoErr(errOf(f.PutBlob(f.ctx(), strings.NewReader("the same bytes"), 100)))
		sweep.Wait()
		is.True(f.kept(sha)) // the bytes were stored again before, during or after the removal
	}
	t.Log("the other node removed the bytes", swept, "times")
}
