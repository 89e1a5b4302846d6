package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"syscall"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestReplace reloads a configuration. A server with an unchanged entry keeps its program. A
// changed one ends after its call in progress, and a removed one is gone.
func TestReplace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	same, changed, removed := a("good"), a("other"), a("resources")
	f := newPool(t, quick, same, changed, removed)
	pid := func(name string) int {
		var text string
		is.NoErr(json.Unmarshal([]byte(f.must(name, "pid", `{}`)), &text))
		n, err := strconv.Atoi(text)
		is.NoErr(err)
		return n
	}
	kept, before := pid("good"), pid("other")
	old := f.find("other")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs := make(chan error, 1)
	go func() { _, err := f.call(ctx, "other", "hang", `{}`); hangs <- err }()
	storetest.Eventually(t, "the call begins", func() bool {
		idle := old.inUse.TryLock()
		if idle {
			old.inUse.Unlock()
		}
		return !idle
	})

	changed.Env = map[string]string{"TOKEN": "another"}
	next := []Server{same, changed}
	is.Equal(f.Changes([]Server{same, a("other"), removed}), nil)
	is.Equal(f.Changes(next), []string{"other", "resources"})
	f.Replace(next)
	is.Equal(f.Names(), []string{"good", "other"})
	is.Equal(pid("good"), kept)
	after := pid("other")
	is.True(after != before) // the new entry has a program of its own
	contains(t, f.must("other", "env", `{}`), "TOKEN=another")
	contains(t, f.refused("resources", "x", `{}`), "no longer configured")
	is.NoErr(syscall.Kill(before, 0)) // its call is in progress
	cancel()
	is.True(<-hangs != nil) // it was cancelled here
	storetest.Eventually(t, "the old program ends", func() bool { return syscall.Kill(before, 0) != nil })
	storetest.Eventually(t, "it does not come back", func() bool {
		_, err := old.session(t.Context())
		return errors.Is(err, errRetired)
	})
	is.Equal(pid("other"), after)
}
