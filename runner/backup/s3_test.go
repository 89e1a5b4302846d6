package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/matryer/is"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/objects"
	"journeyman/store/storetest"
)

// The access keys of the S3 store of TestS3.
const accessKey, secretKey = "journeyman", "a-secret-of-the-test"

// noise is a source of archives that do not compress. If fail is set, Archive fails after size
// bytes.
type noise struct {
	size int64
	fail error
}

func (n noise) Archive(_ context.Context, w io.Writer) (r store.BackupReport, err error) {
	if _, err = io.Copy(w, n.reader()); err == nil {
		err = n.fail
	}
	return r, err
}

func (n noise) reader() io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), n.size)
}

func (n noise) VerifyArchive(_ context.Context, r io.Reader, _ store.BackupReport) error {
	want, got := make([]byte, 32<<10), make([]byte, 32<<10)
	from := n.reader()
	for {
		size, err := io.ReadFull(from, want)
		_, read := io.ReadFull(r, got[:size])
		switch {
		case read != nil && size > 0 || !bytes.Equal(want[:size], got[:size]):
			return errors.New("the archive differs from the written one")
		case err != nil:
			return nil //nolint:nilerr // the end
		}
	}
}

// TestS3 uses a real store, at the address in S3_ENDPOINT. CI starts one.
func TestS3(t *testing.T) {
	endpoint := os.Getenv("S3_ENDPOINT")
	if endpoint == "" {
		t.Skip("S3_ENDPOINT names no store")
	}
	is := is.New(t)
	client, err := minio.New(strings.TrimPrefix(endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, "")})
	is.NoErr(err)
	const bucket = "backups-of-the-test"
	if err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err != nil {
		is.Equal(minio.ToErrorResponse(err).Code, "BucketAlreadyOwnedByYou")
	}
	id, err := age.GenerateX25519Identity()
	is.NoErr(err)
	prefix := "s3://" + bucket + "/" + db.NewID("run", time.Now()) // a rerun must not find objects of an earlier run
	storage := backup.Storage{Access: objects.Access{Endpoint: endpoint, AccessKey: accessKey, SecretKey: secretKey}}
	keys := func(prefix string) (names []string) {
		for o := range client.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			is.NoErr(o.Err)
			names = append(names, o.Key)
		}
		return names
	}
	uploads := func() (n int) {
		for u := range client.ListIncompleteUploads(t.Context(), bucket, "", true) {
			is.NoErr(u.Err)
			n++
		}
		return n
	}
	target := func(s backup.Storage, to string) *backup.Target {
		target, err := backup.NewTarget(s, to, noEnvironment)
		is.NoErr(err)
		return target
	}

	t.Run("a store is backed up, encrypted, and restored", func(t *testing.T) {
		is := is.New(t)
		sealed, s := storage, filled(t)
		sealed.Recipient = []string{id.Recipient().String()}
		to := target(sealed, prefix+"/a")
		for _, at := range []int64{3e9, 1e9, 2e9} {
			_, err := to.Write(t.Context(), to.NewName(time.Unix(at, 0)), 1, s)
			is.NoErr(err)
		}
		names, err := to.Names(t.Context())
		is.NoErr(err)
		is.Equal(len(names), 3)
		n, err := to.Prune(t.Context(), time.Unix(4e9, 0), backup.Keep{Newest: 2}, "")
		is.NoErr(err)
		is.Equal(n, 1)
		stored, err := backup.Open(t.Context(), storage, prefix+"/a", noEnvironment, time.Unix(4e9, 0))
		is.NoErr(err)
		is.Equal(stored.Path, to.Path(names[0])) // not the newest
		archive, err := backup.Unseal(stored, strings.NewReader(id.String()))
		is.NoErr(err)
		dir := filepath.Join(t.TempDir(), "restored")
		is.NoErr(store.Restore(t.Context(), dir, archive))
		is.NoErr(stored.Close())
		r, err := store.Open(t.Context(), dir, storetest.Schema(t), store.Options{})
		is.NoErr(err)
		is.NoErr(r.Close())
		older, err := backup.Open(t.Context(), storage, to.Path(names[1]), noEnvironment, time.Unix(4e9, 0))
		is.NoErr(err)
		is.Equal(older.Path, to.Path(names[1]))
		is.NoErr(older.Close())
	})
	t.Run("a damaged backup pushes out no good one", func(t *testing.T) {
		is := is.New(t)
		to, now := target(storage, prefix+"/damaged"), time.Unix(4e9, 0)
		var names []string
		for i, damaged := range []int{0, 1, 1} {
			w, err := to.Write(t.Context(), to.NewName(time.Unix(int64(i+1)*1e9, 0)), 1, source{damaged: damaged})
			is.NoErr(err)
			names = append(names, w.Name)
		}
		n, err := to.Prune(t.Context(), now, backup.Keep{Newest: 1}, "")
		is.NoErr(err)
		is.Equal(n, 1)
		left, err := to.Names(t.Context())
		is.NoErr(err)
		is.Equal(left, []string{names[2], names[0]})
		is.Equal(len(keys(strings.TrimPrefix(prefix, "s3://"+bucket+"/")+"/damaged")), 5) // two backups, two okSuffix marks and one damage mark
		n, err = to.Prune(t.Context(), time.Now().Add(48*time.Hour), backup.Keep{}, "")
		is.NoErr(err)
		is.Equal(n, 0)
		left, err = to.Names(t.Context())
		is.NoErr(err)
		is.Equal(left, []string{names[2], names[0]}) // a damaged backup is not a leftover
	})
	t.Run("many parts", func(t *testing.T) {
		is := is.New(t)
		to, source := target(storage, prefix+"/parts"), noise{size: 20<<20 + 1}
		w, err := to.Write(t.Context(), to.NewName(time.Now()), 1, source)
		is.NoErr(err)
		is.Equal(w.Size, source.size)
	})
	t.Run("failures leave nothing", func(t *testing.T) {
		is := is.New(t)
		to := target(storage, prefix+"/failed")
		_, err := to.Write(t.Context(), to.NewName(time.Now()), 1, noise{20 << 20, errors.New("the disk is damaged")})
		is.True(err != nil && strings.Contains(err.Error(), "the disk is damaged"))
		_, err = to.Write(t.Context(), to.NewName(time.Now()), 1, noise{10, errors.New("damaged")})
		is.True(err != nil)
		to.Spoil(func(b []byte) []byte { b[7] ^= 1; return b })
		_, err = to.Write(t.Context(), to.NewName(time.Now()), 1, noise{100, nil})
		is.True(err != nil)
		is.Equal(len(keys(strings.TrimPrefix(prefix, "s3://"+bucket+"/")+"/failed")), 0)
		is.Equal(uploads(), 0) // leftover parts cost money
	})
	t.Run("a killed upload is no backup", func(t *testing.T) {
		is := is.New(t)
		to := target(storage, prefix+"/killed")
		key := func(name string) string { return strings.TrimPrefix(to.Path(name), "s3://"+bucket+"/") }
		unverified, begun := to.NewName(time.Now()), to.NewName(time.Now())
		_, err := client.PutObject(t.Context(), bucket, key(unverified), strings.NewReader("whole"), 5, minio.PutObjectOptions{})
		is.NoErr(err)
		core := minio.Core{Client: client}
		_, err = core.NewMultipartUpload(t.Context(), bucket, key(begun), minio.PutObjectOptions{})
		is.NoErr(err)
		names, err := to.Names(t.Context())
		is.NoErr(err)
		is.Equal(len(names), 0)
		_, err = to.Prune(t.Context(), time.Now(), backup.Keep{}, "")
		is.NoErr(err)
		is.Equal(uploads(), 1) // it may still be running
		is.NoErr(to.Forget(t.Context(), unverified))
		_, err = to.Prune(t.Context(), time.Now().Add(48*time.Hour), backup.Keep{}, "")
		is.NoErr(err)
		is.Equal(uploads(), 0)
		is.Equal(len(keys(key(""))), 0)
	})
	t.Run("errors say what to do", func(t *testing.T) {
		is := is.New(t)
		wrong := storage
		wrong.SecretKey = "another"
		_, err := target(wrong, prefix).Names(t.Context())
		is.True(err != nil && strings.Contains(err.Error(), "refuses the keys"))
		_, err = target(storage, "s3://no-such-bucket").Write(t.Context(), "x", 1, noise{size: 10})
		is.True(err != nil && strings.Contains(err.Error(), "create it first"))
		is.True(!strings.Contains(err.Error(), secretKey)) // the error shows the key
		_, err = backup.Open(t.Context(), storage, prefix+"/none", noEnvironment, time.Now())
		is.True(err != nil && strings.Contains(err.Error(), "holds no backup"))
	})
}
