package share_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/share"
)

// TestRefusals counts refused connections, and logs the first one and then one line a minute.
func TestRefusals(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var log strings.Builder
	var count atomic.Int64
	now := time.Unix(1_800_000_000, 0)
	r := &share.Refusals{Listener: "http", Log: slog.New(slog.NewTextHandler(&log, nil)), Count: &count,
		Now: func() time.Time { return now }}
	for range 10 {
		r.Add("full")
	}
	is.Equal(count.Load(), int64(10))
	is.Equal(strings.Count(log.String(), "listener=http refused=1 why=full"), 1)
	now = now.Add(time.Minute)
	r.Add("full")
	is.Equal(strings.Count(log.String(), "refused=10"), 1)
	is.Equal(strings.Count(log.String(), "\n"), 2)
	(*share.Refusals)(nil).Add("full") // a listener without a log
}
