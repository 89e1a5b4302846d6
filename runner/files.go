package runner

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"journeyman/runner/tool"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
)

// FileURL returns the address of this version of the file.
func (r *Runner) FileURL(f store.File) string { return r.views.FileURL(f) }

// publish copies the current content of a workspace file into the data folder.
func (r *Runner) publish(ctx context.Context, ws *workspace.Workspace, folder store.Folder, path, title string) (
	f store.File, err error) {
	clean, err := workspace.SafePath(path)
	if err != nil {
		return f, err
	}
	if folder.Reserved(clean) {
		return f, tool.Errorf("%q cannot be published: addresses below tasks/ are kept for the files of tasks that "+
			"have a folder of their own. Copy the file to another folder and publish it there", clean)
	}
	// A copy: the worker may change the file later, but a published version never changes.
	src, err := ws.Open(clean)
	if err != nil {
		return f, err
	}
	defer src.Close()
	f = store.File{WorkerID: folder.WorkerID, Path: folder.Published(clean), Title: title}
	disk, err := r.cfg.Store.DiskOfWorker(ctx, folder.WorkerID)
	if err != nil {
		return f, err
	}
	f, err = r.keep(ctx, disk, src, f, r.cfg.FileSize)
	if db.IsKind(err, db.TooLarge) {
		return f, tool.Errorf("%q cannot be published: a published file has at most %d bytes. "+
			"Compress it, or publish it in parts", clean, r.cfg.FileSize)
	}
	return f, err
}

// keep copies src into the data folder. It returns f with the checksum, size and media type.
func (r *Runner) keep(ctx context.Context, disk store.OrgDisk, src io.Reader, f store.File, limit int64) (store.File, error) {
	head, err := io.ReadAll(io.LimitReader(src, 512)) // enough to find the media type
	if err != nil {
		return f, fmt.Errorf("read file: %w", err)
	}
	blob, err := disk.PutBlob(ctx, io.MultiReader(bytes.NewReader(head), src), limit)
	if err != nil {
		return f, fmt.Errorf("keep file: %w", err)
	}
	f.SHA256, f.Size = blob.SHA256, blob.Size
	f.MediaType = workspace.MediaType(f.Path, head)
	return f, nil
}

// readFile returns the bytes of a file in the data folder.
func (r *Runner) readFile(ctx context.Context, f store.File) ([]byte, error) {
	blob, err := r.cfg.Store.OpenBlob(ctx, f.SHA256)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	return io.ReadAll(blob)
}
