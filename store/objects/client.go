package objects

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// A Client sends the requests of this program to a store. Its functions are methods of a minio.Client.
//
// A Client has no field of that type. With one, the linker would keep all of its methods in the
// binary: 1.1 MB. Templates call methods by name. So the linker keeps each method of a type that
// reflection may meet: the type of a value in an interface, and the types of its fields.
type Client struct {
	Endpoint string // URL of the store

	Put func(ctx context.Context, bucket, name string, r io.Reader, size int64,
		o minio.PutObjectOptions) (minio.UploadInfo, error)
	Get     func(ctx context.Context, bucket, name string, o minio.GetObjectOptions) (*minio.Object, error)
	GetBody func(ctx context.Context, bucket, name string,
		o minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	Stat   func(ctx context.Context, bucket, name string, o minio.StatObjectOptions) (minio.ObjectInfo, error)
	Iter   func(ctx context.Context, bucket string, o minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
	List   func(ctx context.Context, bucket string, o minio.ListObjectsOptions) <-chan minio.ObjectInfo
	Remove func(ctx context.Context, bucket, name string, o minio.RemoveObjectOptions) error

	ListUploads  func(ctx context.Context, bucket, prefix string, recursive bool) <-chan minio.ObjectMultipartInfo
	RemoveUpload func(ctx context.Context, bucket, name string) error
}

func newClient(c *minio.Client) *Client {
	return &Client{
		Endpoint: c.EndpointURL().String(),
		Put:      c.PutObject, Get: c.GetObject, GetBody: minio.Core{Client: c}.GetObject, Stat: c.StatObject,
		Iter: c.ListObjectsIter, List: c.ListObjects, Remove: c.RemoveObject,
		ListUploads: c.ListIncompleteUploads, RemoveUpload: c.RemoveIncompleteUpload,
	}
}
