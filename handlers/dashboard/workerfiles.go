package dashboard

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store"
)

const (
	filesOnPage = 25
	shownText   = 64 << 10 // bytes of a text that a preview shows
)

// A filesPage is what the page of a worker's files shows.
type filesPage struct {
	Head  workerHead
	Files []fileRow
	Next  string // address of the next page, '' after the last
	Later bool   // this is not the first page
}

// A fileRow is a file with its addresses.
type fileRow struct {
	store.File
	TaskID  string // '' where it is not known
	Preview string // address of the page that shows it
	Bytes   string // address of the file itself
}

// Name is the file's without its folders.
func (f fileRow) Name() string { return path.Base(f.Path) }

// TaskPath is the address of the task that made it.
func (f fileRow) TaskPath() string { return taskPath(f.TaskID) }

func (d *Dashboard) fileRow(f store.File, taskID string) fileRow {
	local := strings.TrimPrefix(d.cfg.Runner.FileURL(f), d.cfg.BaseURL) // /api/workers/ID/files/PATH?v=VERSION
	preview := strings.Replace(strings.TrimPrefix(local, "/api"), "/files/", "/preview/", 1)
	return fileRow{File: f, TaskID: taskID, Preview: preview, Bytes: local}
}

func (d *Dashboard) listFiles(w http.ResponseWriter, r *request) error {
	head, err := d.head(r, "files")
	if err != nil {
		return err
	}
	cursor := r.URL.Query().Get("cursor")
	files, next, err := d.store.FilesByWorker(r.Context(), r.who.Caller, head.ID, cursor, filesOnPage)
	if err != nil {
		return err
	}
	p := filesPage{Head: head, Next: nextPage(r, next), Later: cursor != ""}
	for _, f := range files {
		p.Files = append(p.Files, d.fileRow(f.File, f.TaskID))
	}
	return d.page(w, r, "worker-files.html", head.PageTitle(), p)
}

// A previewPage is what the preview of a file shows.
type previewPage struct {
	Head workerHead
	File fileRow
	Kind string // image, markdown, text, pdf, or '' for what cannot be shown
	Text string // of markdown and text
	Cut  bool   // the file has more
}

// previewFile shows a file inside a page. Only pictures and PDFs are loaded from the
// address of the file, which has them confined; what is text is written into the
// page as text.
func (d *Dashboard) previewFile(w http.ResponseWriter, r *request) error {
	head, err := d.head(r, "files")
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(r.params.ByName("filePath"), "/")
	f, err := d.store.File(r.Context(), r.who.Caller, head.ID, name, r.URL.Query().Get("v"))
	if err != nil {
		return err
	}
	p := previewPage{Head: head, File: d.fileRow(f, ""), Kind: kindOf(f.MediaType)}
	if p.Kind == "text" || p.Kind == "markdown" || p.Kind == "" {
		if p.Text, p.Cut, err = d.beginning(f); err != nil {
			return err
		}
		switch {
		case !isText(p.Text):
			p.Kind, p.Text = "", ""
		case p.Kind == "":
			p.Kind = "text" // whatever its type says
		}
	}
	return d.page(w, r, "worker-file.html", p.File.Name(), p)
}

// pictures are the types that browsers show as pictures.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "image/avif", "image/bmp", "image/x-icon"}

// kindOf says how a file of that type is shown.
func kindOf(mediaType string) string {
	switch {
	case slices.Contains(pictures, mediaType):
		return "image"
	case mediaType == "application/pdf":
		return "pdf"
	case mediaType == "text/markdown":
		return "markdown"
	case strings.HasPrefix(mediaType, "text/"):
		return "text"
	}
	return ""
}

// beginning reads as much of a file as a preview shows.
func (d *Dashboard) beginning(f store.File) (text string, cut bool, err error) {
	blob, err := d.store.OpenBlob(f.SHA256)
	if err != nil {
		return "", false, err
	}
	defer blob.Close()
	b, err := io.ReadAll(io.LimitReader(blob, shownText))
	if err != nil {
		return "", false, fmt.Errorf("read file: %w", err)
	}
	text = string(b)
	if cut = f.Size > int64(len(b)); cut {
		if i := strings.LastIndexByte(text, '\n'); i > 0 {
			text = text[:i]
		}
		text = strings.TrimRightFunc(text, func(c rune) bool { return c == utf8.RuneError })
	}
	return text, cut, nil
}

// isText reports whether a person can read it.
func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
