//go:build !linux

package command

import "runtime/debug"

// releaseStart returns the free memory of the heap to the system, which only the start has needed.
func releaseStart() { debug.FreeOSMemory() }
