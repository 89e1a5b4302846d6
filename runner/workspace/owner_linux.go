package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// GiveTo returns a function for Survey that makes user the owner of the workspace and its
// content. Commands of that user can then change files that the service wrote.
func (w *Workspace) GiveTo(user int) func(p string, info fs.FileInfo) error {
	return func(p string, info fs.FileInfo) error {
		if ownerOf(info) == user {
			return nil
		}
		if err := w.root.Lchown(p, user, user); err != nil {
			return fmt.Errorf("give workspace to the worker's user: %w", err)
		}
		return nil
	}
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
