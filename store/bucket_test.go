package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/objects"
	"journeyman/store/objects/objectstest"
	"journeyman/store/storetest"
)

// newBucketFixture returns a store whose files are in a bucket below the prefix "jm".
func newBucketFixture(t *testing.T) (*fixture, *objectstest.Server) {
	t.Helper()
	return newBucketFixtureWith(t, store.Options{})
}

func newBucketFixtureWith(t *testing.T, opt store.Options) (*fixture, *objectstest.Server) {
	t.Helper()
	storetest.NeedServer(t)
	var f *fixture
	bucket := objectstest.NewServer(t, func() time.Time {
		if f == nil {
			return newClock().now()
		}
		return f.clock.now()
	})
	place := bucket.Open(t, "jm")
	place.SetPatience(2 * time.Second)
	opt.Blobs = place
	f = newFixtureWith(t, opt)
	return f, bucket
}

func objectOf(content string) string { return "jm/" + sha(content)[:2] + "/" + sha(content) }

// content returns the content of a blob.
func content(t *testing.T, st *store.Store, sha string) string {
	t.Helper()
	r, err := st.OpenBlob(t.Context(), sha)
	is.New(t).NoErr(err)
	defer r.Close()
	b, err := io.ReadAll(r)
	is.New(t).NoErr(err)
	return string(b)
}

// forget removes the copy of a blob from the data folder.
func (f *fixture) forget(sha string) {
	f.t.Helper()
	is.New(f.t).NoErr(os.Remove(f.BlobPath(sha)))
}

// TestPostgresBlobsInBucket stores and reads files whose place is a bucket.
func TestPostgresBlobsInBucket(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, bucket := newBucketFixture(t)
	sum := f.put("hello", 0)
	is.Equal(bucket.Names(), []string{objectOf("hello")})
	puts := bucket.Puts()
	f.put("hello", 0)
	is.Equal(bucket.Puts(), puts) // the bucket has it
	bucket.SetAge(objectOf("hello"), 13*time.Hour)
	f.put("hello", 0)
	is.Equal(bucket.Puts(), puts+1) // so that it is not removed before a row refers to it

	f.forget(sum)
	is.Equal(content(t, f.Store, sum), "hello")
	bucket.SetDown(true)
	is.Equal(content(t, f.Store, sum), "hello") // the copy
}

// TestPostgresBucketFails stores and reads files while the bucket does not answer, or is damaged.
func TestPostgresBucketFails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, bucket := newBucketFixture(t)
	sum := f.put("hello", 0)
	f.forget(sum)
	bucket.SetDown(true)
	_, err := f.PutBlob(t.Context(), strings.NewReader("other"), 100)
	is.True(db.IsKind(err, db.Busy))
	is.True(!strings.Contains(err.(*db.Error).Message, "127.0.0.1")) // clients read it
	is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), sum)), db.Busy))
	bucket.SetDown(false)
	is.NoErr(errOf(f.PutBlob(t.Context(), strings.NewReader("other"), 100)))

	bucket.Change(objectOf("hello"), "hullo")
	is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), sum)), db.Busy))
	_, err = os.Stat(f.BlobPath(sum))
	is.True(os.IsNotExist(err)) // damaged bytes are not kept
	left, err := f.UnnamedBlobs()
	is.NoErr(err)
	is.Equal(len(left), 0)
	bucket.Remove(objectOf("hello"))
	is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), sum)), db.NotFound))
}

// TestPostgresBucketFailuresAreLogged counts the warnings of a bucket that fails twice.
func TestPostgresBucketFailuresAreLogged(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var log bytes.Buffer
	f, bucket := newBucketFixtureWith(t, store.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	sum := f.put("hello", 0)
	for range 2 {
		f.forget(sum)
		bucket.SetDown(true)
		for range 3 {
			is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), sum)), db.Busy))
		}
		bucket.SetDown(false)
		content(t, f.Store, sum)
	}
	is.Equal(strings.Count(log.String(), "the bucket of files fails"), 2)
	is.Equal(strings.Count(log.String(), "the bucket of files works again"), 2)
}

// TestPostgresBucketOnFullDisk reads files whose copies have no room in the data folder.
func TestPostgresBucketOnFullDisk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := newFakeDisk(5000)
	f, _ := newBucketFixtureWith(t, d.options())
	away, here := f.put("away", 0), f.put("here", 0)
	n := f.turn()
	n.Attachments = []store.File{{Path: "a", SHA256: away}}
	f.accept(n)
	f.forget(away)
	d.free.Store(100)
	f.clock.advance(time.Minute)
	is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), away)), db.Busy))
	is.Equal(content(t, f.Store, here), "here")
	d.free.Store(5000)
	f.clock.advance(time.Minute)
	content(t, f.Store, away)

	f.makeOld(away, 2*day)
	f.sweepAll()
	is.NoErr(errOf(os.Stat(f.BlobPath(away))))
	d.free.Store(800) // more than the reserve, less than the warning
	f.clock.advance(time.Minute)
	f.sweepAll()
	_, err := os.Stat(f.BlobPath(away))
	is.True(os.IsNotExist(err))
}

// TestPostgresBucketHangs stores, reads and sweeps files while the bucket accepts requests and answers
// none.
func TestPostgresBucketHangs(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, bucket := newBucketFixture(t)
	sum := f.put("hello", 0)
	f.forget(sum)
	bucket.SetHangs(true)
	reads := make(chan error)
	for range 3 {
		go func() {
			reads <- errOf(f.OpenBlob(f.ctx(), sum))
		}()
	}
	ctx, cancel := context.WithCancel(f.ctx())
	leaves := make(chan error, 1)
	go func() {
		leaves <- errOf(f.OpenBlob(ctx, sum))
	}()
	cancel()
	is.True(errors.Is(<-leaves, context.Canceled)) // it does not wait for the others
	for range 3 {
		is.True(db.IsKind(<-reads, db.Busy))
	}
	swept := make(chan error, 1)
	go func() {
		swept <- errOf(f.SweepBlobs(f.ctx()))
	}()
	select {
	case err := <-swept:
		is.True(errors.Is(err, context.DeadlineExceeded))
	case <-time.After(time.Minute):
		t.Fatal("the sweep waits for a bucket that does not answer")
	}
	bucket.SetHangs(false)
	is.Equal(content(t, f.Store, sum), "hello")
}

// TestPostgresBucketIsGone reads a file whose bucket does not exist any more.
func TestPostgresBucketIsGone(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, bucket := newBucketFixture(t)
	sum := f.put("hello", 0)
	f.forget(sum)
	bucket.SetGone(true)
	is.True(db.IsKind(errOf(f.OpenBlob(f.ctx(), sum)), db.Busy)) // not NotFound: the file may exist
}

// TestPostgresBucketSweeps removes objects without a reference, and copies that nobody reads.
func TestPostgresBucketSweeps(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f, bucket := newBucketFixture(t)
	n := f.turn()
	n.Attachments = []store.File{{Path: "a", SHA256: f.put("attached", 8*day)}}
	f.accept(n)
	for content, age := range map[string]time.Duration{"young": 0, "old": 2 * day, "stored again": 2 * day, "only there": 2 * day} {
		f.put(content, age)
		bucket.SetAge(objectOf(content), age)
	}
	bucket.SetAge(objectOf("attached"), 90*day)
	f.forget(sha("only there"))
	f.put("stored again", 0)
	bucket.Change("jm/"+sha("old")[:2]+"/notes.txt", "of an operator")
	bucket.SetAge("jm/"+sha("old")[:2]+"/notes.txt", 90*day)

	is.Equal(f.sweepAll(), int64(2))
	want := []string{objectOf("attached"), objectOf("young"), objectOf("stored again"), "jm/" + sha("old")[:2] + "/notes.txt"}
	slices.Sort(want)
	is.Equal(bucket.Names(), want)
	_, err := os.Stat(f.BlobPath(sha("attached")))
	is.True(os.IsNotExist(err)) // nobody has read the copy for a week
	is.NoErr(errOf(os.Stat(f.BlobPath(sha("young")))))
	is.Equal(content(t, f.Store, sha("attached")), "attached")

	bucket.Remove(objectOf("attached")) // the copy is left
	f.sweepAll()
	is.Equal(bucket.Names(), want)

	f.makeOld(sha("attached"), 3*day) // reading it renews its time
	content(t, f.Store, sha("attached"))
	f.clock.advance(6 * day)
	f.sweepAll()
	is.NoErr(errOf(os.Stat(f.BlobPath(sha("attached")))))
	bucket.SetDown(true)
	is.True(errOf(f.SweepBlobs(t.Context())) != nil)
}

// TestPostgresBucketIsThatOfTheFolder opens a data folder with the bucket of its files, without it, and
// with another one.
func TestPostgresBucketIsThatOfTheFolder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	f := newFixture(t)
	sum := f.put("from before", 0)
	is.NoErr(os.WriteFile(filepath.Join(filepath.Dir(f.BlobPath(sum)), "notes.txt"), nil, 0o600)) // a file of an operator
	is.NoErr(f.Close())
	bucket, log := objectstest.NewServer(t, time.Now), &bytes.Buffer{}
	open := func(opt store.Options) error {
		opt.Database, opt.Log = storetest.DatabaseOf(f.Dir()), slog.New(slog.NewTextHandler(log, nil))
		s, err := store.Open(t.Context(), f.Dir(), storetest.Schema(t), opt)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	says := func(err error, text string) {
		t.Helper()
		is.True(says(err, text))
		is.True(!strings.Contains(err.Error(), "secret of the key"))
	}
	bucket.SetRefuses(true)
	says(open(store.Options{Blobs: bucket.Open(t, "jm")}), "--blobs-s3-access-key")
	is.NoErr(open(store.Options{})) // nothing has changed
	bucket.SetRefuses(false)
	bucket.Change("jm/"+objects.OwnerName, "another database")
	says(open(store.Options{Blobs: bucket.Open(t, "jm")}), "files of another server")
	is.Equal(len(bucket.Names()), 0) // nothing was uploaded
	bucket.Remove("jm/" + objects.OwnerName)

	is.NoErr(open(store.Options{Blobs: bucket.Open(t, "jm")}))
	is.NoErr(open(store.Options{Blobs: bucket.Open(t, "jm")})) // it is the owner
	is.Equal(bucket.Names(), []string{objectOf("from before")})
	is.True(strings.Contains(log.String(), "copied the files"))
	says(open(store.Options{}), "--blobs")
	says(open(store.Options{Blobs: bucket.Open(t, "other")}), "another bucket")
	job := store.ServerCopy{Dir: f.Dir(), Database: storetest.DatabaseOf(f.Dir()), Schema: storetest.Schema(t)}
	says(job.FromServer(t.Context()), "copy all objects")

	bucket.SetRefuses(true)
	says(open(store.Options{Blobs: bucket.Open(t, "jm")}), "refuses the keys")
	bucket.SetRefuses(false)
	owner := "jm/" + objects.OwnerName
	bucket.Change(owner, "another database")
	says(open(store.Options{Blobs: bucket.Open(t, "jm")}), "files of another server")
	bucket.Remove(owner)
	bucket.SetGone(true)
	says(open(store.Options{Blobs: bucket.Open(t, "jm")}), "does not exist")
	bucket.SetGone(false)
	bucket.SetHangs(true)
	hanging := bucket.Open(t, "jm")
	hanging.SetPatience(2 * time.Second)
	is.NoErr(open(store.Options{Blobs: hanging}))
	is.True(strings.Contains(log.String(), "does not answer"))
	log.Reset()
	bucket.SetHangs(false)
	bucket.SetDown(true)
	is.NoErr(open(store.Options{Blobs: bucket.Open(t, "jm")})) // a restart must not depend on the bucket
	is.True(strings.Contains(log.String(), "does not answer"))
}

// TestBucketNeedsServer opens a data folder with its own database and a bucket.
func TestBucketNeedsServer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	bucket := objectstest.NewServer(t, time.Now)
	_, err := store.Open(t.Context(), t.TempDir(), storetest.Schema(t), store.Options{Blobs: bucket.Open(t, "jm")})
	is.True(says(err, "--blobs needs --database"))
	is.Equal(len(bucket.Names()), 0)
}
