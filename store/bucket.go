package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/objects"
)

// This file holds the code for blobs in a bucket: see Options.Blobs. The bucket is the place of the
// blobs, and the data folder holds copies of those in use. Objects have the names that the files have
// in the data folder, so that every tool of such stores can copy between them.

const (
	// renewAge is the age at which PutBlob uploads the same bytes again. An object is younger than
	// orphanAge when PutBlob returns, so it is not removed before a row refers to it.
	renewAge = orphanAge / 2

	// copyAge is how long the data folder holds a copy that nobody reads. renewCopyAge is the age at
	// which reading it renews its time.
	copyAge      = 7 * 24 * time.Hour
	renewCopyAge = 24 * time.Hour

	// copyAgeLow is copyAge while the disk has little space.
	copyAgeLow = 30 * time.Hour // longer than renewCopyAge, so that copies in use stay

	uploadsAtOnce = 8 // parallel uploads at the first start with a bucket

	// lockPatience limits how long a request waits for another one, in units of Bucket.Patience.
	lockPatience = 3
)

func objectName(sha string) string { return sha[:2] + "/" + sha }

// bucketError returns the error of a request to the bucket that a client learns of. It logs the cause
// of the first failure, and the end of the failures.
func (s *Store) bucketError(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	missing := errors.Is(err, objects.ErrMissing)
	failed := err != nil && !missing
	switch log, was := s.log, s.bucketFails.Swap(failed); {
	case failed && !was:
		log.Warn("the bucket of files fails", "bucket", s.bucket.String(), "err", err)
	case failed:
		log.Debug("the bucket of files still fails", "err", err)
	case was:
		log.Info("the bucket of files works again", "bucket", s.bucket.String())
	}
	switch {
	case missing:
		return fs.ErrNotExist
	case err == nil:
		return nil
	}
	return &db.Error{Kind: db.Busy, Code: db.CodeStorage, Message: "the store of files does not answer: try again later",
		RetryAfter: 5 * time.Second, Cause: err}
}

// openBucket returns an error unless the bucket has the blobs of the data folder. The first start with
// a bucket uploads the blobs of the data folder.
func (s *Store) openBucket(ctx context.Context, opt Options) error {
	path := filepath.Join(s.dir, bucketName)
	known, err := readBucketNote(s.dir)
	switch b := opt.Blobs; {
	case err != nil:
		return err
	case b == nil && known != "":
		return fmt.Errorf("the files of this data folder are in a bucket: name it with --blobs (%s). To have them in the "+
			"data folder again, copy all objects to %s and remove the file %s", known, s.blobDir(), path)
	case b == nil:
		return nil
	case opt.Database == "":
		return errors.New("--blobs needs --database: backups of a data folder with its own database have its files, too")
	case known == "":
		if err := b.Check(ctx); err != nil {
			return fmt.Errorf("--blobs: %s cannot be used: %w", b, err)
		}
		if err := s.ownBucket(ctx, b); err != nil {
			return fmt.Errorf("--blobs: %s cannot be used: %w", b, err)
		}
		if err := s.uploadAll(ctx, b, opt.Log); err != nil {
			return fmt.Errorf("--blobs: copy the files to %s: %w", b, err)
		}
		if err := writeNote(s.dir, bucketName, b.String()+"\n"); err != nil {
			return err
		}
	case known != b.String():
		return fmt.Errorf("the files of this data folder are in another bucket than --blobs names (%s): name that one, or "+
			"copy its objects to %s and write this address into %s", known, b, path)
	default:
		if err := s.ownBucket(ctx, b); objects.IsRefused(err) || errors.Is(err, errOwned) {
			return fmt.Errorf("--blobs: %s cannot be used: %w", b, err)
		} else if err != nil {
			opt.Log.Warn("the bucket of files does not answer; files that are not in the data folder are unavailable",
				"bucket", b.String(), "err", err)
		}
	}
	s.bucket = opt.Blobs
	for i := range s.objectLocks {
		s.objectLocks[i] = make(chan struct{}, 1)
	}
	return nil
}

// errOwned means that the bucket has the blobs of another database.
var errOwned = fmt.Errorf("it has the files of another server, and this one would remove them: choose another "+
	"prefix. To use this one all the same, remove the object %s first. This server then deletes the files that are "+
	"older than a day and to which its database does not refer", objects.OwnerName)

// ownBucket returns an error if the bucket has the blobs of another database: the sweep would remove
// them. It marks a bucket without an owner.
func (s *Store) ownBucket(ctx context.Context, b *objects.Bucket) error {
	instance, err := s.server.Instance(ctx)
	if err != nil {
		return err
	}
	switch owner, err := b.Owner(ctx); {
	case err != nil:
		return err
	case owner == "":
		return b.SetOwner(ctx, instance)
	case owner != instance:
		return errOwned
	}
	return nil
}

// readBucketNote returns the bucket that has the blobs of a data folder, or "".
func readBucketNote(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, bucketName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for the bucket of the data folder: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), nil
}

// refuseBucketFolder returns an error if a bucket has the blobs of the folder. A database in the
// folder needs them there.
func refuseBucketFolder(dir string) error {
	known, err := readBucketNote(dir)
	if err != nil || known == "" {
		return err
	}
	return fmt.Errorf("the files of this data folder are in a bucket (%s): copy all objects to %s first, and remove "+
		"the file %s", known, filepath.Join(dir, "files"), bucketName)
}

// uploadAll uploads the blobs of the data folder that the bucket does not have.
func (s *Store) uploadAll(ctx context.Context, b *objects.Bucket, log *slog.Logger) error {
	var sent atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(uploadsAtOnce)
	for n := range blobFolders {
		g.Go(func() error { return s.uploadFolder(ctx, b, fmt.Sprintf("%02x", n), &sent) })
	}
	err := g.Wait()
	if n := sent.Load(); n > 0 {
		log.Info("copied the files of the data folder to the bucket", "files", n, "bucket", b.String())
	}
	return err
}

// uploadFolder uploads the blobs of one folder that the bucket does not have, and counts them in sent.
func (s *Store) uploadFolder(ctx context.Context, b *objects.Bucket, folder string, sent *atomic.Int64) error {
	entries, err := readDir(filepath.Join(s.blobDir(), folder))
	if err != nil || len(entries) == 0 {
		return err
	}
	known, err := listObjects(ctx, b, folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := known[e.Name()]; ok || !isSHA256(e.Name()) {
			continue
		}
		if err := s.put(ctx, b, e.Name()); err != nil {
			return err
		}
		sent.Add(1)
	}
	return nil
}

// listObjects returns the objects of a folder of the bucket, with the times of their uploads.
func listObjects(ctx context.Context, b *objects.Bucket, folder string) (map[string]time.Time, error) {
	known := map[string]time.Time{}
	for o, err := range b.List(ctx, folder) {
		if err != nil {
			return nil, err
		}
		known[o.Name] = o.At
	}
	return known, nil
}

// put uploads a blob of the data folder.
func (s *Store) put(ctx context.Context, b *objects.Bucket, sha string) error {
	f, err := os.Open(s.blobPath(sha))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return b.Put(ctx, objectName(sha), f, info.Size())
}

// upload uploads a blob of the data folder unless the bucket has a recent object of it.
func (s *Store) upload(ctx context.Context, blob Blob) error {
	unlock, err := s.lockObject(ctx, blob.SHA256)
	if err != nil {
		return s.bucketError(err)
	}
	defer unlock()
	_, at, err := s.bucket.Stat(ctx, objectName(blob.SHA256))
	if err == nil && s.now().Sub(at) < renewAge {
		return s.bucketError(nil)
	}
	if err != nil && !errors.Is(err, objects.ErrMissing) {
		return s.bucketError(err)
	}
	return s.bucketError(s.put(ctx, s.bucket, blob.SHA256))
}

// lockObject excludes other uploads, downloads and removals of an object, and of some others, until
// unlock is called. It returns an error if ctx ends first, or if the wait takes too long: whoever holds
// the lock waits for the bucket.
func (s *Store) lockObject(ctx context.Context, sha string) (unlock func(), err error) {
	first, _ := hex.DecodeString(sha[:2]) // it is the name of a blob
	lock := s.objectLocks[first[0]]
	select {
	case lock <- struct{}{}: // the timer is not needed
		return func() { <-lock }, nil
	default:
	}
	wait, cancel := context.WithTimeout(ctx, lockPatience*s.bucket.Patience())
	defer cancel()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-wait.Done():
		return nil, fmt.Errorf("wait for another request for the same file: %w", wait.Err())
	}
}

// download copies a blob from the bucket to the data folder and opens it. It returns a Busy error if
// the disk has no room for copies.
func (s *Store) download(ctx context.Context, sha string) (f *os.File, err error) {
	unlock, err := s.lockObject(ctx, sha)
	if err != nil {
		return nil, s.bucketError(err)
	}
	defer unlock()
	if f, err = os.Open(s.blobPath(sha)); !errors.Is(err, fs.ErrNotExist) {
		return f, err // another request has copied it
	}
	if _, level := s.Gate.Disk(); level == gate.DiskFull {
		return nil, db.DiskFullError(nil)
	}
	tmp, err := os.CreateTemp(s.blobDir(), tempPattern)
	if err != nil {
		return nil, s.db.Unavailable(fmt.Errorf("copy file: %w", err))
	}
	defer func() {
		if rm := os.Remove(tmp.Name()); !errors.Is(rm, fs.ErrNotExist) {
			err = errors.Join(err, rm) // it does not exist if it was renamed
		}
	}()
	h := sha256.New()
	if err = s.bucket.Get(ctx, objectName(sha), io.MultiWriter(tmp, h)); err == nil {
		err = tmp.Sync() // a torn copy would be taken for the blob
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		if full := s.db.Unavailable(err); db.IsKind(full, db.Busy) {
			return nil, full
		}
		return nil, s.bucketError(err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != sha {
		return nil, &db.Error{Kind: db.Busy, Code: db.CodeStorage, Message: "the store of files has returned a damaged file",
			Cause: fmt.Errorf("the object %s holds bytes with the sum %s", objectName(sha), sum)}
	}
	if err := errors.Join(s.bucketError(nil), s.nameBlob(tmp.Name(), sha)); err != nil {
		return nil, s.db.Unavailable(err)
	}
	return os.Open(s.blobPath(sha))
}

// renewCopy renews the time of a copy that was opened, so that the copy stays in the data folder. A
// failure is only logged: f can be read all the same, for example on a disk that takes no writes.
func (s *Store) renewCopy(sha string, f *os.File) {
	info, err := f.Stat()
	if err == nil && s.now().Sub(info.ModTime()) > renewCopyAge {
		err = os.Chtimes(s.blobPath(sha), time.Time{}, s.now())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be removed at any time, but it is open
		s.log.Warn("the time of a file's copy cannot be renewed", "err", err)
	}
}

// sweepBucket removes the objects of a folder that nothing refers to, and the copies in the data
// folder that nobody has read for copyAge. It uploads objects that are missing. It returns the number
// of removed objects.
func (s *Store) sweepBucket(ctx context.Context, folder string) (n int64, err error) {
	known, err := listObjects(ctx, s.bucket, folder)
	if err != nil {
		return 0, err
	}
	for sha, at := range known {
		if !isSHA256(sha) {
			continue // an object of another program
		}
		removed, err := s.sweepObject(ctx, sha, at)
		if err == nil && !removed {
			err = s.sweepCopy(ctx, sha)
		}
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, s.restoreObjects(ctx, folder, known)
}

// restoreObjects uploads the blobs of a folder that rows refer to and that only the data folder has.
// Somebody may have emptied the bucket, for example.
func (s *Store) restoreObjects(ctx context.Context, folder string, known map[string]time.Time) error {
	entries, err := readDir(filepath.Join(s.blobDir(), folder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := known[e.Name()]; ok || !isSHA256(e.Name()) {
			continue
		}
		used, err := s.usesBlob(ctx, e.Name())
		if err == nil && used {
			err = s.upload(ctx, Blob{SHA256: e.Name()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepObject removes an object unless a row refers to it, or may do so soon. at is the time of its
// upload.
func (s *Store) sweepObject(ctx context.Context, sha string, at time.Time) (removed bool, err error) {
	if !s.isOrphan(at) {
		return false, nil
	}
	if used, err := s.usesBlob(ctx, sha); err != nil || used {
		return false, err
	}
	unlock, err := s.lockObject(ctx, sha)
	if err != nil {
		return false, err
	}
	defer unlock()
	// A request that has stored the same bytes since then has uploaded them again.
	if _, at, err = s.bucket.Stat(ctx, objectName(sha)); err != nil || !s.isOrphan(at) {
		return false, ignoreMissing(err)
	}
	if err := s.Gate.WritableIn(ctx); err != nil { // maintenance may begin in the middle of a sweep
		return false, err
	}
	return true, s.bucket.Remove(ctx, objectName(sha))
}

func ignoreMissing(err error) error {
	if errors.Is(err, objects.ErrMissing) {
		return nil
	}
	return err
}

// sweepCopy removes the copy of an object from the data folder, if nobody has read it for copyAge.
func (s *Store) sweepCopy(ctx context.Context, sha string) error {
	s.naming.Lock()
	defer s.naming.Unlock()
	most := copyAge
	if _, level := s.Gate.Disk(); level != gate.DiskOK {
		most = copyAgeLow
	}
	info, err := os.Stat(s.blobPath(sha))
	if errors.Is(err, fs.ErrNotExist) || err == nil && s.now().Sub(info.ModTime()) <= most {
		return nil
	}
	if err = errors.Join(err, s.Gate.WritableIn(ctx)); err != nil {
		return err
	}
	return os.Remove(s.blobPath(sha))
}
