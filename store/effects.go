package store

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/seal"
)

// Effects keeps what the end of a turn has besides its answer: usage and spending, deliveries of webhooks, mails
// to send, and alerts. Its methods are safe for concurrent use.
type Effects struct {
	db       *db.DB
	seal     *seal.Key
	people   *people.Store
	counters *Counters
	zone     *time.Location // of the times in alerts

	putBlob  func(ctx context.Context, src io.Reader, size int64) (Blob, error)
	openBlob func(ctx context.Context, sha256 string) (*os.File, error)

	onDelivery atomic.Pointer[func(workerID string)] // nil until OnDelivery
}
