package runner

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"journeyman/runner/tool"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
)

// A toolHost gives a tool access to its turn. Each call has its own toolHost, so the fields need no
// lock.
type toolHost struct {
	r       *Runner
	e       *execution
	at      time.Time      // the time in the ids of its sources: the result of stamp
	files   []store.File   // published by the call
	sources []store.Source // that the call has used
	images  []store.Image  // that the call shows
	place   store.CallPlace
	started bool          // the call has started a turn
	awaits  *store.Child  // the turn that will produce the result, after tool.ErrLater
	took    time.Duration // work time of the turn that produced the result
}

// A callRun is a tool call in progress. It needs no lock: the tool's goroutine owns it while the
// tool runs, and the loop owns it before and after.
type callRun struct {
	store.ToolCall
	row  store.Call
	host *toolHost
	tool tool.Tool // nil if the call must not run; err contains the reason
	err  error
}

// Workspace returns the turn's folder, which is open while the turn runs.
func (h *toolHost) Workspace() *workspace.Workspace { return h.e.ws }

// Publish copies a workspace file into the data folder. The row is committed with the call.
func (h *toolHost) Publish(ctx context.Context, path, title string) (tool.File, error) {
	folder := h.e.claim.Folder()
	f, err := h.r.publish(ctx, h.e.ws, folder, path, title)
	if err != nil {
		return tool.File{}, err
	}
	h.files = append(h.files, f)
	// A copy without a row is not published, so no user sees it if the call fails.
	file := tool.File{Path: folder.Local(f.Path), MediaType: f.MediaType, Size: f.Size, URL: h.r.FileURL(f)}
	return file, ctx.Err()
}

// ShowImage stores a picture that the model will see. The row is committed with the call.
func (h *toolHost) ShowImage(ctx context.Context, path string, data []byte) (tool.Picture, error) {
	if len(h.images) == tool.MaxImages {
		return tool.Picture{}, tool.Errorf("a call can return at most %d images", tool.MaxImages)
	}
	// The model that made the call decides, also if another one of the chain sees: it gets the result.
	if !h.e.model.Sees() {
		return tool.Picture{}, tool.Errorf("%s", h.e.model.Blindness())
	}
	p, err := h.r.cfg.Documents.Picture(ctx, data)
	if err != nil {
		return p, err
	}
	disk := h.r.cfg.Store.DiskOf(h.e.claim.OrganizationID)
	blob, err := disk.PutBlob(h.e.ctx, bytes.NewReader(p.Data), int64(len(p.Data)))
	if err != nil {
		return p, fmt.Errorf("keep image: %w", err)
	}
	h.images = append(h.images, store.Image{Path: path, MediaType: p.MediaType, Size: blob.Size, SHA256: blob.SHA256})
	return p, nil
}

// CheckHost returns an error if the turn may not fetch from the host.
func (h *toolHost) CheckHost(name string) error { return h.e.tools.CheckHost(name) }

// Secret returns the value of a secret if it may be sent to the host.
func (h *toolHost) Secret(name, host string) (string, error) {
	return h.e.tools.Secrets.Value(name, host)
}

// Hide returns text with the values of the turn's secrets removed.
func (h *toolHost) Hide(text string) string { return h.e.tools.Secrets.ScrubText(text) }

// AddSource records a page that the call has used. The row is committed with the call.
func (h *toolHost) AddSource(url, title string) {
	s := h.e.tools.Secrets
	h.sources = append(h.sources, store.Source{ID: db.NewID("src", h.at), URL: s.ScrubText(url),
		Title: s.ScrubText(title)})
}
