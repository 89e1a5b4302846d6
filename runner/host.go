package runner

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
)

// A toolHost is the turn as its tools see it. Each call has its own, so its fields need no lock.
type toolHost struct {
	r       *Runner
	e       *execution
	at      time.Time      // the time in the ids of its sources: later than in all calls before it
	files   []store.File   // published by the call
	sources []store.Source // that the call has used
	images  []store.Image  // that the call shows
	place   store.CallPlace
	started bool          // the call has started a turn
	awaits  *store.Child  // the turn from which the result will come, with tool.ErrLater
	took    time.Duration // how long the turn worked from which the result comes
}

// A callRun is a tool call in progress. It needs no lock: runTool owns it while the tool
// runs, and the loop owns it before and after.
type callRun struct {
	store.ToolCall
	row  store.Call
	host *toolHost
	tool tool.Tool // nil if the call must not run: err says why
	err  error
}

// Workspace returns the turn's folder. It is open while the turn runs.
func (h *toolHost) Workspace() *sandbox.Workspace { return h.e.ws }

// Publish keeps a copy of a workspace file. Its row is written with the call.
func (h *toolHost) Publish(ctx context.Context, path, title string) (tool.File, error) {
	folder := h.e.claim.Folder()
	f, err := h.r.publish(h.e.ws, folder, path, title)
	if err != nil {
		return tool.File{}, err
	}
	h.files = append(h.files, f)
	// A copy without a row is not published: if the call does not end well, nobody sees it.
	file := tool.File{Path: folder.Local(f.Path), MediaType: f.MediaType, Size: f.Size, URL: h.r.FileURL(f)}
	return file, ctx.Err()
}

// ShowImage keeps an image for the model. Its row is written with the call.
func (h *toolHost) ShowImage(path string, data []byte) error {
	if len(h.images) == tool.MaxImages {
		return tool.Errorf("a call can return at most %d images", tool.MaxImages)
	}
	mediaType, err := tool.ImageType(data)
	if err != nil {
		return err
	}
	blob, err := h.r.cfg.Store.PutBlob(bytes.NewReader(data), tool.MaxImageBytes)
	if err != nil {
		return fmt.Errorf("keep image: %w", err)
	}
	h.images = append(h.images, store.Image{Path: path, MediaType: mediaType, Size: blob.Size, SHA256: blob.SHA256})
	return nil
}

// CheckHost returns an error for a host that the turn may not fetch from.
func (h *toolHost) CheckHost(name string) error { return h.e.tools.checkHost(name) }

// Secret returns the value of a secret that may be sent to a host.
func (h *toolHost) Secret(name, host string) (string, error) {
	return h.e.tools.secrets.value(name, host)
}

// Hide returns a text without the values of the turn's secrets.
func (h *toolHost) Hide(text string) string { return h.e.tools.secrets.scrubText(text) }

// AddSource notes a page that the call has used. Its row is written with the call.
func (h *toolHost) AddSource(url, title string) {
	s := h.e.tools.secrets
	h.sources = append(h.sources, store.Source{ID: store.NewID("src", h.at), URL: s.scrubText(url),
		Title: s.scrubText(title)})
}
