package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"github.com/minio/minio-go/v7"

	"journeyman/store/objects"
)

const (
	// okSuffix ends the name of the empty object that lists a verified backup. Objects cannot be
	// renamed, so the presence of the backup's own name does not prove that it was verified.
	okSuffix = ".verified"

	// A part of an upload is held in memory until it is sent.
	leastPart = 8 << 20
	mostParts = 9000 // S3 allows 10,000; the size is only an estimate
)

// A bucket is a destination in an S3-compatible store: a bucket and a prefix of object names.
type bucket struct {
	client       *objects.Client
	name, prefix string
}

// s3Flags begins the names of the flags of Storage.Access.
const s3Flags = "--backup-s3-"

// newBucket returns the destination s3://BUCKET/PREFIX.
func newBucket(s Storage, to string, getenv func(string) string) (*bucket, error) {
	client, name, prefix, err := objects.NewClient(to, s.Access, s3Flags, getenv)
	if err != nil {
		return nil, err
	}
	return &bucket{client, name, prefix}, nil
}

func (b *bucket) key(name string) string { return path.Join(b.prefix, name) }

func (b *bucket) path(name string) string { return objects.Scheme + path.Join(b.name, b.prefix, name) }

// room returns nil: a bucket has no size limit.
func (b *bucket) room(int64) error { return nil }

// put uploads in parts. The object appears after the last part, and a failed upload is aborted.
func (b *bucket) put(ctx context.Context, name string, atMost int64, write func(w io.Writer) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		// The upload's reader returns err, so that the upload aborts instead of completing.
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	_, err := b.client.Put(ctx, b.name, b.key(name), r, -1, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize(atMost)})
	_ = r.CloseWithError(cmp.Or(err, io.ErrClosedPipe)) // unblocks write after the upload failed
	if failed := <-wrote; failed != nil && (err == nil || !errors.Is(failed, err)) {
		return failed
	}
	return explainS3(err)
}

// partSize returns the part size for an upload of about atMost bytes.
func partSize(atMost int64) uint64 {
	const mebibyte = 1 << 20
	least := (2*max(atMost, 0)/mostParts/mebibyte + 1) * mebibyte // twice: random bytes do not compress
	return uint64(max(leastPart, least))                          //nolint:gosec // it is positive
}

func (b *bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.Get(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, explainS3(err)
	}
	if _, err := object.Stat(); err != nil { // GetObject itself sends nothing
		return nil, errors.Join(explainS3(err), object.Close())
	}
	return object, nil
}

func (b *bucket) finish(ctx context.Context, name string, damaged bool) error {
	if damaged { // create this mark first: after a crash, a damaged backup must not be listed without it
		if err := b.mark(ctx, name+damagedSuffix); err != nil {
			return err
		}
	}
	return b.mark(ctx, name+okSuffix)
}

// mark creates an empty object.
func (b *bucket) mark(ctx context.Context, name string) error {
	_, err := b.client.Put(ctx, b.name, b.key(name), bytes.NewReader(nil), 0, minio.PutObjectOptions{})
	return explainS3(err)
}

// objects returns the names under the prefix, with their modification times.
func (b *bucket) objects(ctx context.Context) (map[string]time.Time, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the listing after an error
	defer cancel()
	prefix, names := b.key("journeyman-"), map[string]time.Time{}
	for o := range b.client.List(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, explainS3(o.Err)
		}
		names[path.Base(o.Key)] = o.LastModified
	}
	return names, nil
}

func (b *bucket) list(ctx context.Context) (list []entry, err error) {
	all, err := b.objects(ctx)
	for name := range all {
		_, verified := all[name+okSuffix]
		if _, ours := madeAt(name); ours && verified {
			_, damaged := all[name+damagedSuffix]
			list = append(list, entry{name, damaged})
		}
	}
	return list, err
}

func (b *bucket) remove(ctx context.Context, name string) error {
	// Delete the okSuffix object first: without it, the backup is no longer listed.
	for _, key := range []string{b.key(name + okSuffix), b.key(name + damagedSuffix), b.key(name)} {
		if err := b.client.Remove(ctx, b.name, key, minio.RemoveObjectOptions{}); err != nil {
			return explainS3(err)
		}
	}
	return explainS3(b.client.RemoveUpload(ctx, b.name, b.key(name)))
}

func (b *bucket) clean(ctx context.Context, before time.Time) error {
	all, err := b.objects(ctx)
	if err != nil {
		return err
	}
	for name, at := range all {
		_, verified := all[name+okSuffix]
		if _, ours := madeAt(name); ours && !verified && at.Before(before) {
			err = errors.Join(err, b.remove(ctx, name))
		}
	}
	ctx, cancel := context.WithCancel(ctx) // ends the listing after an error
	defer cancel()
	for u := range b.client.ListUploads(ctx, b.name, b.key("journeyman-"), false) {
		if u.Err != nil {
			return errors.Join(err, explainS3(u.Err))
		}
		if _, ours := madeAt(path.Base(u.Key)); ours && u.Initiated.Before(before) {
			err = errors.Join(err, explainS3(b.client.RemoveUpload(ctx, b.name, u.Key)))
		}
	}
	return err
}

func explainS3(err error) error { return objects.Explain(err, s3Flags) }
