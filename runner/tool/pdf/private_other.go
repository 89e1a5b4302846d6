//go:build !unix

package pdf

import "io/fs"

// private returns true: other systems have no permissions that this program understands.
func private(fs.FileInfo) bool { return true }
