// Package objects stores files in a bucket of an S3-compatible store. The data folder can have its
// files there (see store.Options), and backups can go there (see runner/backup).
//
// It imports no other package of this module and knows nothing of rows: an object is a name, its
// bytes and the time of its last upload.
package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Scheme begins the address of a place in a bucket: s3://BUCKET/PREFIX.
const Scheme = "s3://"

// Access holds the flags that say how to reach a store.
type Access struct {
	Endpoint  string `default:"https://s3.amazonaws.com" help:"Address of the store for s3:// places; http:// only for this machine and private networks." placeholder:"URL"`
	Region    string `help:"Region of the bucket, if the store has regions." placeholder:"REGION"`
	AccessKey string `help:"Access key of the store; by default AWS_ACCESS_KEY_ID, or the role of the machine." placeholder:"KEY"`
	SecretKey string `help:"Secret key of the store; by default AWS_SECRET_ACCESS_KEY." placeholder:"KEY" secret:"the secret key of the store"`
}

// NewClient returns a client of the store for the address s3://BUCKET/PREFIX, and both parts of the
// address. It sends nothing. flags begins the names of the flags of a in errors, for example
// "--backup-s3-". getenv reads the environment variables of the AWS tools.
func NewClient(place string, a Access, flags string, getenv func(string) string) (
	client *Client, bucket, prefix string, err error,
) {
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(place, Scheme), "/")
	if bucket == "" || !strings.HasPrefix(place, Scheme) {
		return nil, "", "", fmt.Errorf("%q names no bucket: write s3://BUCKET/PREFIX", place)
	}
	u, err := url.Parse(a.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", "", fmt.Errorf("%sendpoint: must be an https:// or http:// address", flags)
	}
	access := cmp.Or(a.AccessKey, getenv("AWS_ACCESS_KEY_ID"))
	secret := cmp.Or(a.SecretKey, getenv("AWS_SECRET_ACCESS_KEY"))
	keys := credentials.NewStaticV4(access, secret, getenv("AWS_SESSION_TOKEN"))
	switch {
	case access == "" && secret == "":
		keys = credentials.NewIAM("") // the role of the machine, in clouds that have roles
	case access == "" || secret == "":
		return nil, "", "", fmt.Errorf("%saccess-key and %[1]ssecret-key belong together", flags)
	}
	c, err := minio.New(u.Host, &minio.Options{Creds: keys, Secure: u.Scheme == "https",
		Region: cmp.Or(a.Region, getenv("AWS_REGION")), MaxRetries: 5})
	if err != nil {
		return nil, "", "", fmt.Errorf("%sendpoint: %w", flags, err)
	}
	return newClient(c), bucket, strings.Trim(prefix, "/"), nil
}

// Explain adds the S3 error code to an error, and a hint for the user. flags is that of NewClient.
func Explain(err error, flags string) error {
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case "":
		return err
	case minio.NoSuchBucket:
		return fmt.Errorf("the bucket does not exist: create it first (%w)", err)
	case minio.AccessDenied, minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch:
		return fmt.Errorf("the store refuses the keys of %saccess-key: %s (%w)", flags, answer.Code, err)
	}
	return fmt.Errorf("%s (%w)", answer.Code, err)
}

// IsRefused reports whether the store has answered that it does not permit the request. Another
// attempt fails, too, until somebody changes the store or the flags.
func IsRefused(err error) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	switch answer.Code {
	case minio.NoSuchBucket, minio.AccessDenied, minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch:
		return ok
	}
	return false
}

// ErrMissing means that no object has the name.
var ErrMissing = errors.New("the object does not exist")

// A Bucket holds objects below a prefix of a bucket. Its methods may be called concurrently.
type Bucket struct {
	client       *Client
	name, prefix string
	flags        string        // see NewClient
	patience     time.Duration // see SetPatience
}

// Open returns the bucket at the address s3://BUCKET/PREFIX. It sends nothing: see Check. The
// parameters are those of NewClient.
func Open(place string, a Access, flags string, getenv func(string) string) (*Bucket, error) {
	client, name, prefix, err := NewClient(place, a, flags, getenv)
	if err != nil {
		return nil, err
	}
	return &Bucket{client, name, prefix, flags, 20 * time.Second}, nil
}

// SetPatience changes the time limit of requests, 20 seconds by default. The time of a body is added to
// it. SetPatience must be called before all other methods.
func (b *Bucket) SetPatience(d time.Duration) { b.patience = d }

// Patience returns the time limit of a request without its body, with its retries.
func (b *Bucket) Patience() time.Duration { return b.patience }

// String returns the address of the bucket and its prefix, and that of the store.
func (b *Bucket) String() string {
	return Scheme + path.Join(b.name, b.prefix) + " at " + b.client.Endpoint
}

func (b *Bucket) key(name string) string { return path.Join(b.prefix, name) }

// explain is Explain, but it returns ErrMissing if the store answers that an object does not exist.
func (b *Bucket) explain(err error) error {
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return ErrMissing
	}
	return Explain(err, b.flags)
}

// slowest is the minimum transfer rate of a body, in bytes a second.
const slowest = 128 << 10

// timeFor returns the time limit of a request with a body of size bytes.
func (b *Bucket) timeFor(size int64) time.Duration {
	return b.patience + time.Duration(size/slowest)*time.Second
}

// within returns a context that ends when a body of size bytes has taken too long.
func (b *Bucket) within(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.timeFor(size))
}

// errSlow means that the store did not answer in time.
var errSlow = fmt.Errorf("the store does not answer: %w", context.DeadlineExceeded)

// renewable returns a context that ends after patience. renew sets a new limit, from now on. slow
// returns errSlow instead of err if the limit ended the context.
func (b *Bucket) renewable(ctx context.Context) (
	limited context.Context, renew func(time.Duration), slow func(err error) error, cancel func(),
) {
	limited, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(b.patience, func() { end(errSlow) })
	slow = func(err error) error {
		if context.Cause(limited) == errSlow { //nolint:errorlint // it is the cause itself
			return errSlow
		}
		return err
	}
	return limited, func(d time.Duration) { timer.Reset(d) }, slow, func() { timer.Stop(); end(nil) }
}

// Put uploads the bytes of a file, from its beginning, under a name. When it returns nil, the
// object is durable. It replaces an object of that name.
func (b *Bucket) Put(ctx context.Context, name string, f *os.File, size int64) error {
	ctx, cancel := b.within(ctx, size)
	defer cancel()
	// The section has its own offset, and lets the client repeat a request.
	_, err := b.client.Put(ctx, b.name, b.key(name), io.NewSectionReader(f, 0, size), size,
		// In one request: a process that is killed between the parts of an upload leaves them in the store
		// for ever. Stores take up to 5 GiB in one request.
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	return b.explain(err)
}

// Get copies an object to w. It returns ErrMissing if there is none.
func (b *Bucket) Get(ctx context.Context, name string, w io.Writer) error {
	ctx, renew, slow, cancel := b.renewable(ctx)
	defer cancel()
	// One GET, because the answer to a HEAD does not say whether the object or the bucket is missing.
	body, info, _, err := b.client.GetBody(ctx, b.name, b.key(name), minio.GetObjectOptions{})
	if err != nil {
		return b.explain(slow(err))
	}
	renew(b.timeFor(info.Size))
	n, err := io.Copy(w, body)
	if err == nil && info.Size >= 0 && n != info.Size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(b.explain(slow(err)), body.Close())
}

// Stat returns the size and the time of the last upload of an object. It returns ErrMissing if there
// is none.
func (b *Bucket) Stat(ctx context.Context, name string) (size int64, at time.Time, err error) {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	info, err := b.client.Stat(ctx, b.name, b.key(name), minio.StatObjectOptions{})
	return info.Size, info.LastModified, b.explain(err)
}

// List returns the names of the objects in a folder of the prefix, such as "ab", with the time of
// their last upload. An error ends the sequence.
func (b *Bucket) List(ctx context.Context, folder string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		limited, renew, slow, cancel := b.renewable(ctx)
		defer cancel()
		prefix := b.key(folder) + "/"
		for o := range b.client.Iter(limited, b.name, minio.ListObjectsOptions{Prefix: prefix}) {
			if o.Err != nil {
				yield(Object{}, b.explain(slow(o.Err)))
				return
			}
			renew(b.patience)
			if !yield(Object{path.Base(o.Key), o.LastModified}, nil) {
				return
			}
		}
		if err := limited.Err(); err != nil { // the client ends such a listing without an error
			yield(Object{}, slow(err))
		}
	}
}

// An Object is the last part of an object's name, and the time of its last upload.
type Object struct {
	Name string
	At   time.Time
}

// Remove removes an object. It returns nil if there is none.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	return b.explain(b.client.Remove(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}))
}

// These objects are in no folder of List.
const (
	checkName = "journeyman-check" // of Check

	// OwnerName is the name of the object of SetOwner.
	OwnerName = "journeyman-server"
)

// Owner returns the text of the last SetOwner, "" if there was none. It returns an error if the store
// does not answer soon, refuses the keys or has no such bucket.
func (b *Bucket) Owner(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience/4) // a start waits for it
	defer cancel()
	var text strings.Builder
	if err := b.Get(ctx, OwnerName, &text); err != nil && !errors.Is(err, ErrMissing) {
		return "", err
	}
	return strings.TrimSpace(text.String()), nil
}

// SetOwner stores the id of the owner of the objects in the bucket.
func (b *Bucket) SetOwner(ctx context.Context, owner string) error {
	return b.putText(ctx, OwnerName, owner+"\n")
}

// putText uploads a short text.
func (b *Bucket) putText(ctx context.Context, name, text string) error {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	_, err := b.client.Put(ctx, b.name, b.key(name), strings.NewReader(text), int64(len(text)),
		minio.PutObjectOptions{ContentType: "text/plain"})
	return b.explain(err)
}

// Check writes, reads and removes a small object.
func (b *Bucket) Check(ctx context.Context) error {
	ctx, cancel := b.within(ctx, 0)
	defer cancel()
	text := "Journeyman wrote this object to check its rights.\n"
	if err := b.putText(ctx, checkName, text); err != nil {
		return err
	}
	var read strings.Builder
	if err := b.Get(ctx, checkName, &read); err != nil {
		return err
	}
	if read.String() != text {
		return errors.New("the store returned other bytes than it had received")
	}
	return b.Remove(ctx, checkName)
}
