package command_test

import (
	"testing"

	"journeyman/store/storetest"
)

// TestIdleMemory bounds the memory that a server keeps for itself after its start: about 14 MiB. The
// pages of the program's file come on top, and the system can take them at any time.
func TestIdleMemory(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	s := serve(t, t.TempDir())
	storetest.Eventually(t, "less than 20 MiB", func() bool { return memoryMB(t, s, "RssAnon") < 20 })
}
