package files

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
)

// The limits of an archive that a page sends.
const (
	maxArchives     = 8       // sent at once
	maxArchiveFiles = 2000    // in one archive
	maxArchiveBytes = 1 << 30 // before compression
	archiveTime     = time.Hour
	writeTime       = 30 * time.Second // for the reader to accept some bytes
)

// A paced response has a deadline for each piece, before which the client must accept some bytes. A
// client that stops holds a connection and a file no longer than that.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func newPaced(w http.ResponseWriter) paced {
	return paced{w, http.NewResponseController(w), writeTime}
}

// Write writes some bytes.
func (p paced) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(p.within)) // without support for deadlines, the time-outs of TCP apply
	return p.ResponseWriter.Write(b)
}

// done removes the deadline, so that the connection may serve another request.
func (p paced) done() { _ = p.control.SetWriteDeadline(time.Time{}) }

// An archived is one file of an archive.
type archived struct {
	name     string // in the archive
	size     int64
	modified time.Time
	open     func() (io.ReadCloser, error)
}

// An archive collects the files of an archive, within the limits.
type archive struct {
	files []archived
	bytes int64
}

// add adds a file. It leaves out a name that could lead out of the folder into which the archive is
// unpacked.
func (a *archive) add(f archived) error {
	name, err := workspace.SafePath(f.name)
	if err != nil {
		return nil //nolint:nilerr // such a file has no address, either
	}
	f.name = name
	a.files, a.bytes = append(a.files, f), a.bytes+f.size
	if len(a.files) > maxArchiveFiles || a.bytes > maxArchiveBytes {
		return db.Errorf(db.TooLarge, "an archive can hold %d files and %d MiB, and this would be more: "+
			"download a folder of it, or single files", maxArchiveFiles, maxArchiveBytes>>20)
	}
	return nil
}

// sendArchive sends the files as a zip, which it creates while it sends.
func (d *Pages) sendArchive(w http.ResponseWriter, r *frame.Request, name string, a archive) error {
	if len(a.files) == 0 {
		return db.Errorf(db.NotFound, "there are no files to download")
	}
	select {
	case d.archives <- struct{}{}:
		defer func() { <-d.archives }()
	default: // not queued: compression needs much CPU time
		return db.Errorf(db.Busy, "too many archives are being sent; try again later")
	}
	ctx, cancel := context.WithTimeout(r.Context(), archiveTime)
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name + ".zip"}))
	if r.Method == http.MethodHead {
		return nil
	}
	out := newPaced(w)
	defer out.done()
	if err := writeZip(ctx, out, a.files); err != nil {
		if r.Context().Err() == nil {
			d.Log.WarnContext(r.Context(), "an archive is incomplete", "request", frame.RequestID(w), "err", err)
		}
		panic(http.ErrAbortHandler) // the browser must see that the archive is not complete
	}
	return nil
}

func writeZip(ctx context.Context, w io.Writer, files []archived) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeZipped(ctx, z, f); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeZipped(ctx context.Context, z *zip.Writer, f archived) error {
	src, err := f.open()
	if _, gone := errors.AsType[*workspace.Error](err); gone {
		return nil // a worker has removed it since the list was made
	}
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: f.modified.UTC()})
	if err != nil {
		return err
	}
	// A worker may write during the download, so the archive ends at the counted size.
	_, err = io.Copy(dst, io.LimitReader(contextReader{ctx, src}, f.size))
	return err
}

// A contextReader stops reading at the end of its context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read reads some bytes.
func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}

// addFile adds a published file.
func (d *Pages) addFile(ctx context.Context, a *archive, f store.File) error {
	open := func() (io.ReadCloser, error) { return d.Store.OpenBlob(ctx, f.SHA256) }
	return a.add(archived{f.Path, f.Size, f.CreatedAt, open})
}

// zipWorkerFiles sends the published files of a worker, each in its newest version.
func (d *Pages) zipWorkerFiles(w http.ResponseWriter, r *frame.Request) (err error) {
	var a archive
	for cursor, more := "", true; more; more = cursor != "" {
		var page []store.ListedFile
		page, cursor, err = d.Store.FilesByWorker(r.Context(), r.Who.Caller, r.Head.ID, cursor, archivePage)
		for _, f := range page {
			if err == nil {
				err = d.addFile(r.Context(), &a, f.File)
			}
		}
		if err != nil {
			return err
		}
	}
	return d.sendArchive(w, r, archiveName(r.Head.Title), a)
}

// archivePage is how many files zipWorkerFiles reads at once.
const archivePage = 100

// zipTaskFiles sends the files that a task has published, each in its newest version.
func (d *Pages) zipTaskFiles(w http.ResponseWriter, r *frame.Request) error {
	task, _, err := d.Store.Task(r.Context(), r.Who.Caller, r.Params.ByName("taskId"))
	if err != nil {
		return err
	}
	files, err := d.Store.FilesByTask(r.Context(), task)
	if err != nil {
		return err
	}
	var a archive
	for _, f := range store.PublishedFiles(files) {
		// In the archive of one task, the folder of the task is not needed.
		local := f
		local.Path = store.Folder{WorkerID: task.WorkerID, TaskID: task.ID}.Local(f.Path)
		if err := d.addFile(r.Context(), &a, local); err != nil {
			return err
		}
	}
	return d.sendArchive(w, r, archiveName(task.Title), a)
}

// zipWorkspace sends a folder of a workspace. It follows no link.
func (d *Pages) zipWorkspace(w http.ResponseWriter, r *frame.Request) error {
	at, err := d.place(r)
	if err != nil {
		return err
	}
	exists, err := d.Runner.Browse(at.folder, func(ws *workspace.Workspace) error {
		var a archive
		err := ws.Walk(at.Path, func(e workspace.Entry) error {
			if !e.Mode.IsRegular() {
				return nil
			}
			name := strings.TrimPrefix(e.Path, at.Path+"/")
			return a.add(archived{name, e.Size, e.Modified, func() (io.ReadCloser, error) { return ws.Open(e.Path) }})
		})
		if err != nil {
			return err
		}
		name := at.Name()
		if at.Path == "." {
			name = "workspace"
		}
		return d.sendArchive(w, r, archiveName(name), a)
	})
	if err == nil && !exists {
		err = db.Errorf(db.NotFound, "no task has worked in this workspace yet")
	}
	return refusal(err)
}

// archiveName returns a title as the name of a file.
func archiveName(title string) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) || r == 0x7f {
			return '-'
		}
		return r
	}, title)
	name = strings.Trim(db.FirstRunes(path.Clean(name), 80), " .-")
	if name == "" {
		return "files"
	}
	return name
}

// mediaTypeOf returns the media type of an open file, and leaves it at its beginning.
func mediaTypeOf(name string, f io.ReadSeeker) (string, error) {
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	_, err = f.Seek(0, io.SeekStart)
	return workspace.MediaType(name, head[:n]), err
}
