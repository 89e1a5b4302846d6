package sandbox

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

func open(t *testing.T, dir string, limits workspace.Limits) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(dir, limits)
	is.New(t).NoErr(err)
	t.Cleanup(func() { w.Close() })
	return w
}

// kind returns the kind of a *workspace.Error, 0 for any other error or none.
func kind(err error) workspace.Kind {
	var e *workspace.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

// long skips a slow test, unless the environment variable LONG is set. CI runs these tests in a
// separate section.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("takes long: LONG=1 runs it")
	}
}

// rounds returns few, or many if the environment variable LONG is set. CI sets it.
func rounds(many, few int) int {
	if os.Getenv("LONG") == "" {
		return few
	}
	return many
}

// A testQuota is a workspace.Quota of some bytes.
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
