//go:build !linux

package storetest

import "testing"

// SmallDisk skips the test: this system has no small disks that a process can mount.
func SmallDisk(t testing.TB, _ string) string {
	t.Helper()
	t.Skip("only Linux mounts a small disk for a test")
	return ""
}

// FillDisk is for Linux.
func FillDisk(t testing.TB, _ string, _ int64) (makeRoom func()) {
	t.Helper()
	t.Skip("only Linux mounts a small disk for a test")
	return nil
}
