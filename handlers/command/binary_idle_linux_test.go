package command_test

import (
	"testing"

	"journeyman/store/storetest"
)

// TestIdleMemory bounds the memory of a server that has started and does nothing: about 25 MiB. The
// start of one that keeps all of it takes more than 40.
func TestIdleMemory(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	s := serve(t, t.TempDir())
	storetest.Eventually(t, "less than 32 MiB", func() bool { return memoryMB(t, s, "VmRSS") < 32 })
}
