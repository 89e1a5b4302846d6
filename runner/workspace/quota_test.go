package workspace

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

// A testQuota is a Quota of some bytes.
type testQuota struct {
	mu   sync.Mutex // guards left
	left int64
}

func (q *testQuota) Left() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.left
}

func (q *testQuota) Take(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left < n {
		return errors.New("the quota is used up")
	}
	q.left -= n
	return nil
}

func (q *testQuota) Add(n int64) { q.mu.Lock(); defer q.mu.Unlock(); q.left -= n }

// TestQuota writes in two workspaces with one quota. What is overwritten or removed counts no longer, and
// neither does what was refused.
func TestQuota(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	q := &testQuota{left: 1000}
	a, b := open(t, t.TempDir(), Limits{Quota: q}), open(t, t.TempDir(), Limits{Quota: q, TotalSize: 500})
	is.NoErr(a.WriteFile("f", make([]byte, 700)))
	is.Equal(kind(b.WriteFile("f", make([]byte, 400))), OverQuota)
	is.Equal(kind(b.WriteFile("f", make([]byte, 501))), Full) // its own limit comes first
	_, err := b.Place("g", strings.NewReader(strings.Repeat("x", 301)), 0)
	is.Equal(kind(err), OverQuota)
	is.True(strings.Contains(err.Error(), "quota is used up")) // the reason of the quota is shown
	is.Equal(q.Left(), int64(300))
	is.NoErr(a.WriteFile("f", make([]byte, 100)))
	is.Equal(q.Left(), int64(900))
	is.NoErr(b.WriteFile("f", make([]byte, 400)))
	is.NoErr(a.Remove("f"))
	is.Equal(q.Left(), int64(600))
	is.NoErr(b.WriteFile("f", make([]byte, 400))) // the same size
	is.Equal(q.Left(), int64(600))
	b.Changed() // the next write measures the folder, which does not count twice
	is.NoErr(b.WriteFile("h", nil))
	is.Equal(q.Left(), int64(600))
}
