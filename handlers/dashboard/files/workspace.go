package files

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
)

// The creator of a worker may see its workspace: the folder that its tasks share, or the own folder
// of one task. The pages change nothing there.

const (
	entriesOnPage = 50
	foldersOnPage = 50 // tasks with a folder of their own
)

// A workspacePage is the data of a folder of a workspace.
type workspacePage struct {
	Place   place
	Crumbs  []frame.Option // the folders above: address and name
	Entries []entryRow
	Total   int64
	Before  string // addresses of the pages before and after this one; "" for none
	Next    string
	Tasks   []ownFolder
}

// An ownFolder is a task with a folder of its own.
type ownFolder struct {
	store.Task
	Address string
}

// A place is a path in a workspace.
type place struct {
	folder store.Folder
	Path   string // '.' for the workspace itself
}

// Name returns the last part of the path.
func (p place) Name() string { return path.Base(p.Path) }

// Task returns the id of the task that the workspace belongs to, "" if it is shared.
func (p place) Task() string { return p.folder.TaskID }

// address returns the address of a page or file of the workspace.
func (p place) address(kind, name string) string {
	if name == "." {
		name = ""
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	address := "/workers/" + p.folder.WorkerID + "/" + kind + "/" + strings.Join(parts, "/")
	if p.folder.TaskID != "" {
		address += "?" + url.Values{"task": {p.folder.TaskID}}.Encode()
	}
	return address
}

// Bytes returns the address of the bytes of the file.
func (p place) Bytes() string { return p.address("workspace-file", p.Path) }

// Archive returns the address of the folder as an archive.
func (p place) Archive() string { return p.address("workspace-zip", p.Path) }

// An entryRow is one entry of a folder.
type entryRow struct {
	Name     string
	Kind     string // folder, file, link or other
	Size     int64
	Modified time.Time
	Address  string // of its page; "" for links and devices
	Bytes    string // of the file itself; "" for others
}

// place returns the place that a request names, if the caller may see it.
func (d *Pages) place(r *frame.Request) (place, error) {
	folder, err := d.Store.Workspace(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), r.URL.Query().Get("task"))
	if err != nil {
		return place{}, err
	}
	name := strings.Trim(r.Params.ByName("path"), "/")
	if name == "" {
		name = "."
	}
	clean, err := workspace.SafePath(name)
	return place{folder, clean}, refusal(err)
}

// refusal returns an error of a workspace in a form that a page may show.
func refusal(err error) error {
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return db.Errorf(db.NotFound, "%s", e.Message)
	}
	return err
}

// browse shows a folder or a file of a workspace.
func (d *Pages) browse(w http.ResponseWriter, r *frame.Request) error {
	at, err := d.place(r)
	if err != nil {
		return err
	}
	var show func() error
	exists, err := d.Runner.Browse(at.folder, func(ws *workspace.Workspace) error {
		e, err := ws.Stat(at.Path)
		if err != nil {
			return err
		}
		if e.Mode.IsDir() {
			list, err := ws.List(at.Path)
			show = func() error { return d.showFolder(w, r, at, list) }
			return err
		}
		show, err = d.workspaceFile(w, r, at, ws)
		return err
	})
	switch {
	case err != nil:
		return refusal(err)
	case !exists && at.Path != ".":
		return db.Errorf(db.NotFound, "%q is not in the workspace", at.Path)
	case !exists:
		return d.showFolder(w, r, at, nil) // no task has worked here yet
	}
	return show()
}

func (d *Pages) showFolder(w http.ResponseWriter, r *frame.Request, at place, list []workspace.Entry) error {
	p := workspacePage{Place: at, Crumbs: at.crumbs(r), Total: int64(len(list))}
	page := frame.PageNumber(r)
	p.Before, p.Next = frame.Neighbours(r, page, p.Total, entriesOnPage)
	first := min((page-1)*entriesOnPage, p.Total)
	for _, e := range list[first:min(first+entriesOnPage, p.Total)] {
		p.Entries = append(p.Entries, at.row(e))
	}
	if at.Path == "." && at.folder.TaskID == "" {
		tasks, err := d.Store.OwnFolders(r.Context(), r.Who.Caller, r.Head.ID, foldersOnPage)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			own := place{store.Folder{WorkerID: r.Head.ID, TaskID: t.ID}, "."}
			p.Tasks = append(p.Tasks, ownFolder{t, own.address("workspace", ".")})
		}
	}
	return d.Page(w, r, "workspace.html", r.Head.PageTitle(r), p)
}

// crumbs returns the folders from the workspace down to the place.
func (p place) crumbs(r *frame.Request) []frame.Option {
	name := r.T("Workspace")
	if p.folder.TaskID != "" {
		name = p.folder.TaskID
	}
	list := []frame.Option{{Value: p.address("workspace", "."), Label: name}}
	if p.Path == "." {
		return list
	}
	parts := strings.Split(p.Path, "/")
	for i, part := range parts {
		list = append(list, frame.Option{Value: p.address("workspace", strings.Join(parts[:i+1], "/")), Label: part})
	}
	return list
}

// row returns an entry of a folder. A link has no address, because the page must not show its
// target.
func (p place) row(e workspace.Entry) entryRow {
	row := entryRow{Name: path.Base(e.Path), Kind: "other", Size: e.Size, Modified: e.Modified}
	switch {
	case e.Mode.IsDir():
		row.Kind, row.Address = "folder", p.address("workspace", e.Path)
	case e.Mode.IsRegular():
		row.Kind, row.Address = "file", p.address("workspace", e.Path)
		row.Bytes = p.address("workspace-file", e.Path)
	case e.Mode.Type() == fs.ModeSymlink:
		row.Kind = "link"
	}
	// Commands may create names that are not possible in an address, such as a name with a control
	// character.
	if _, err := workspace.SafePath(e.Path); err != nil {
		row.Address, row.Bytes = "", ""
	}
	return row
}

// A workspaceFilePage is the data of the preview of a file of a workspace.
type workspaceFilePage struct {
	Place     place
	Crumbs    []frame.Option
	Size      int64
	MediaType string
	Modified  time.Time
	Show      preview
}

// workspaceFile reads the preview of a file. The returned function writes the page after the
// workspace is closed, so that a slow browser does not keep it open.
func (d *Pages) workspaceFile(w http.ResponseWriter, r *frame.Request, at place, ws *workspace.Workspace) (
	show func() error, err error) {
	f, err := ws.Open(at.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := workspaceFilePage{Place: at, Crumbs: at.crumbs(r), Size: info.Size(), Modified: info.ModTime()}
	if p.MediaType, err = mediaTypeOf(at.Path, f); err != nil {
		return nil, err
	}
	p.Show, err = d.preview(r.Context(), r.Who.Caller, at.Path, p.MediaType, p.Size, f)
	return func() error { return d.Page(w, r, "workspace-file.html", at.Name(), p) }, err
}

// sendWorkspaceFile sends the bytes of a file, with a policy that lets them run nothing.
func (d *Pages) sendWorkspaceFile(w http.ResponseWriter, r *frame.Request) error {
	at, err := d.place(r)
	if err == nil {
		err = handlers.RefuseCode(r.Request)
	}
	if err != nil {
		return err
	}
	exists, err := d.Runner.Browse(at.folder, func(ws *workspace.Workspace) error {
		f, err := ws.Open(at.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		mediaType, err := mediaTypeOf(at.Path, f)
		if err != nil {
			return err
		}
		if strings.HasPrefix(mediaType, "text/") {
			mediaType += "; charset=utf-8" // in which tools write text
		}
		h := w.Header()
		handlers.Confine(h)
		h.Set("Content-Type", mediaType)
		paced := newPaced(w)
		defer paced.done()
		http.ServeContent(paced, r.Request, "", time.Time{}, f)
		return nil
	})
	if err == nil && !exists {
		err = db.Errorf(db.NotFound, "%q is not in the workspace", at.Path)
	}
	return refusal(err)
}
