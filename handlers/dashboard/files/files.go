package files

import (
	"net/http"
	"path"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/view"
	"journeyman/store"
)

// filesOnPage is the number of files on a page.
const filesOnPage = 25

// A filesPage is the data of the page of a worker's files.
type filesPage struct {
	Files []fileRow
	Next  string // address of the next page; "" after the last
	Later bool   // this is not the first page
}

// A fileRow is a file with its addresses.
type fileRow struct {
	store.File
	TaskID  string // "" if the task is not known
	Preview string // address of the page that shows the file
	Bytes   string // address of the file itself
}

// Name returns the file's name without its folders.
func (f fileRow) Name() string { return path.Base(f.Path) }

// TaskPath returns the address of the task that published the file.
func (f fileRow) TaskPath() string { return view.TaskPath(f.TaskID) }

// fileRow returns a file with its addresses. An address has no host, so that it works under each
// name of this server.
func (d *Pages) fileRow(f store.File, taskID string) fileRow {
	local := strings.TrimPrefix(d.Runner.FileURL(f), d.BaseURL) // /api/workers/ID/files/PATH?v=VERSION
	preview := strings.Replace(strings.TrimPrefix(local, "/api"), "/files/", "/preview/", 1)
	return fileRow{File: f, TaskID: taskID, Preview: preview, Bytes: local}
}

func (d *Pages) listFiles(w http.ResponseWriter, r *frame.Request) error {
	cursor := r.URL.Query().Get("cursor")
	files, next, err := d.Store.FilesByWorker(r.Context(), r.Who.Caller, r.Head.ID, cursor, filesOnPage)
	if err != nil {
		return err
	}
	p := filesPage{Next: frame.ListPage(r.Head.Base()+"/files", nil, next), Later: cursor != ""}
	for _, f := range files {
		p.Files = append(p.Files, d.fileRow(f.File, f.TaskID))
	}
	return d.Page(w, r, "worker-files.html", r.Head.PageTitle(r), p)
}

// A previewPage is the data of the preview of a file.
type previewPage struct {
	File fileRow
	Show preview
}

// previewFile shows a file inside a page.
func (d *Pages) previewFile(w http.ResponseWriter, r *frame.Request) error {
	name := strings.TrimPrefix(r.Params.ByName("filePath"), "/")
	f, err := d.Store.File(r.Context(), r.Who.Caller, r.Head.ID, name, r.URL.Query().Get("v"))
	if err != nil {
		return err
	}
	blob, err := d.Store.OpenBlob(r.Context(), f.SHA256)
	if err != nil {
		return err
	}
	defer blob.Close()
	p := previewPage{File: d.fileRow(f, "")}
	if p.Show, err = d.preview(r.Context(), r.Who.Caller, f.Path, f.MediaType, f.Size, blob); err != nil {
		return err
	}
	return d.Page(w, r, "worker-file.html", p.File.Name(), p)
}
