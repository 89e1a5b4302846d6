package objects_test

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"journeyman/store/objects"
	"journeyman/store/objects/objectstest"
)

// openBucket returns a bucket in the store at the address in S3_ENDPOINT, which CI starts, or in a
// store in memory.
func openBucket(t *testing.T) *objects.Bucket {
	t.Helper()
	is := is.New(t)
	endpoint := os.Getenv("S3_ENDPOINT")
	if endpoint == "" {
		return objectstest.NewServer(t, time.Now).Open(t, "of/a/test")
	}
	const access, secret, name = "journeyman", "a-secret-of-the-test", "files-of-the-test"
	client, err := minio.New(strings.TrimPrefix(endpoint, "http://"),
		&minio.Options{Creds: credentials.NewStaticV4(access, secret, "")})
	is.NoErr(err)
	err = client.MakeBucket(t.Context(), name, minio.MakeBucketOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != "BucketAlreadyOwnedByYou" {
		t.Fatal(err)
	}
	b, err := objects.Open("s3://"+name+"/"+t.Name(),
		objects.Access{Endpoint: endpoint, AccessKey: access, SecretKey: secret}, "--blobs-s3-", os.Getenv)
	is.NoErr(err)
	return b
}

// put uploads a text.
func put(t *testing.T, b *objects.Bucket, name, text string) {
	t.Helper()
	is := is.New(t)
	path := filepath.Join(t.TempDir(), "file")
	is.NoErr(os.WriteFile(path, []byte(text), 0o600))
	f, err := os.Open(path)
	if err == nil {
		err = errors.Join(b.Put(t.Context(), name, f, int64(len(text))), f.Close())
	}
	is.NoErr(err)
}

// TestBucketObjects uploads, lists, reads, replaces and removes objects.
func TestBucketObjects(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	b := openBucket(t)
	is.NoErr(b.Check(t.Context()))
	is.NoErr(b.SetOwner(t.Context(), "server 1"))
	owner, err := b.Owner(t.Context())
	is.NoErr(err)
	is.Equal(owner, "server 1")
	before := time.Now().Add(-time.Minute)
	put(t, b, "ab/abc", "old")
	put(t, b, "ab/abc", "new")
	put(t, b, "ab/empty", "")
	put(t, b, "abc/other folder", "other")

	size, at, err := b.Stat(t.Context(), "ab/abc")
	is.NoErr(err)
	is.Equal(size, int64(3))
	is.True(at.After(before)) // the time of the upload
	var names []string
	for o, err := range b.List(t.Context(), "ab") {
		is.NoErr(err)
		is.True(o.At.After(before)) // the time of the upload
		names = append(names, o.Name)
	}
	is.Equal(names, []string{"abc", "empty"})
	for name, want := range map[string]string{"ab/abc": "new", "ab/empty": ""} {
		var read bytes.Buffer
		is.NoErr(b.Get(t.Context(), name, &read))
		is.Equal(read.String(), want)
	}
	is.NoErr(b.Remove(t.Context(), "ab/abc"))
	is.NoErr(b.Remove(t.Context(), "ab/abc")) // it is gone
	_, _, err = b.Stat(t.Context(), "ab/abc")
	is.True(errors.Is(err, objects.ErrMissing))
	is.True(errors.Is(b.Get(t.Context(), "ab/abc", &bytes.Buffer{}), objects.ErrMissing))
}

// TestBucketFailures checks the errors of a store that does not answer, or refuses.
func TestBucketFailures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	server := objectstest.NewServer(t, time.Now)
	b := server.Open(t, "x")
	server.SetRefuses(true)
	err := b.Check(t.Context())
	is.True(objects.IsRefused(err))
	is.True(strings.Contains(err.Error(), "--blobs-s3-access-key"))
	server.SetRefuses(false)
	server.SetDown(true)
	_, err = b.Owner(t.Context())
	is.True(err != nil && !objects.IsRefused(err) && !errors.Is(err, objects.ErrMissing))
	for _, err := range b.List(t.Context(), "ab") {
		is.True(err != nil)
	}
	server.SetDown(false)
	is.NoErr(b.Check(t.Context()))
	owner, err := b.Owner(t.Context())
	is.NoErr(err)
	is.Equal(owner, "")
	is.Equal(len(server.Names()), 0) // Check removes what it wrote
}

// TestOpen checks what is refused without a request.
func TestOpen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		place  string
		access objects.Access
		says   string
	}{
		"no scheme":   {place: "bucket", says: "names no bucket"},
		"no bucket":   {place: "s3:///prefix", says: "names no bucket"},
		"no endpoint": {place: "s3://b", access: objects.Access{Endpoint: "s3.test"}, says: "--blobs-s3-endpoint"},
		"half a key":  {place: "s3://b", access: objects.Access{AccessKey: "a"}, says: "--blobs-s3-access-key and --blobs-s3-secret-key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			tt.access.Endpoint = cmp.Or(tt.access.Endpoint, "https://s3.test")
			_, err := objects.Open(tt.place, tt.access, "--blobs-s3-", func(string) string { return "" })
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says))
			is.True(!strings.Contains(err.Error(), "secret of")) // no key in the text
		})
	}
}
