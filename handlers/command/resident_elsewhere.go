//go:build !linux

package command

import "runtime/debug"

// releaseStart returns free memory of the heap that only the start needed to the system.
func releaseStart() { debug.FreeOSMemory() }
