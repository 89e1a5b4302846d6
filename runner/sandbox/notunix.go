//go:build !unix

package sandbox

import (
	"io/fs"
	"time"
)

var processBegun = time.Now()

// ProcessTime returns the time since this process began, an upper bound of its CPU time. A
// filter that can stop early compares it with FilterTime.
func ProcessTime() time.Duration { return time.Since(processBegun) }

// blocksOf returns 0: this system does not report how many bytes a file takes.
func blocksOf(fs.FileInfo) int64 { return 0 }
