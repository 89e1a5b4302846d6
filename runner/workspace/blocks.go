//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// blocksOf returns how many bytes a file takes on the disk. On Linux and the BSDs, st_blocks
// counts units of 512 bytes, independent of the file system's block size.
func blocksOf(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int64(st.Blocks) * 512
}
