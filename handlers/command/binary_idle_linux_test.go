package command_test

import (
	"testing"

	"journeyman/store/storetest"
)

// TestIdleMemory bounds the memory of a server that has started and does nothing.
func TestIdleMemory(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	storetest.Eventually(t, "less than 28 MiB", func() bool { return memoryMB(t, s, "VmRSS") < 28 })
}
