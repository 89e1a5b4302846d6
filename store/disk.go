package store

import (
	"context"
	"io/fs"
	"path/filepath"
)

// addSizes adds the sizes of the files below a folder to sum. It follows no links.
func addSizes(ctx context.Context, folder string, sum *int64) error {
	return filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // a worker may remove its files, or make them unreadable
		}
		if info, err := e.Info(); err == nil {
			*sum += info.Size()
		}
		return nil
	})
}
