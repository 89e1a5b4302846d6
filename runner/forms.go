package runner

import (
	"context"
	"errors"
	"sync"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/store"
)

// Limits of a formCache. It is used again at each step of a turn.
const (
	maxForms     = 4096
	maxFormBytes = 32 << 20
)

// A formCache holds what model calls need to know about files: pictures in the form that providers take, and the
// number of pages of PDF files. Confined processes compute them, and equal files give equal forms. The zero value is
// ready to use.
type formCache struct {
	mu    sync.Mutex // guards the fields below
	forms map[string]*form
	bytes int   // of all pictures
	uses  int64 // number of calls of entry
}

// A form is an entry of a formCache.
type form struct {
	used  int64 // value of uses at the last use
	bytes int   // guarded by the cache's lock, as used is

	one     chan struct{} // guards the fields below; full while they are computed, so that it is done only once
	known   bool
	picture model.Picture
	pages   int
	reason  error // why there is no picture
}

// entry returns the form with a key.
func (c *formCache) entry(key string) *form {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.forms[key]
	if !ok {
		if c.forms == nil || len(c.forms) >= maxForms {
			c.forms, c.bytes = map[string]*form{}, 0
		}
		x = &form{one: make(chan struct{}, 1)}
		c.forms[key] = x
	}
	c.uses++
	x.used = c.uses
	return x
}

// lock waits until nobody else computes or reads the form, at most until ctx ends: the other one may wait long for
// its confined process.
func (x *form) lock(ctx context.Context) error {
	select {
	case x.one <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *form) unlock() { <-x.one }

// grow records the bytes of a new form, and drops the forms that were not used for the longest time.
func (c *formCache) grow(key string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.forms[key]
	if !ok {
		return // dropped meanwhile
	}
	x.bytes = bytes
	for c.bytes += bytes; c.bytes > maxFormBytes && len(c.forms) > 1; {
		oldest := key
		for k, f := range c.forms {
			if f.bytes > 0 && k != key && (oldest == key || f.used < c.forms[oldest].used) {
				oldest = k
			}
		}
		if oldest == key {
			return
		}
		c.bytes -= c.forms[oldest].bytes
		delete(c.forms, oldest)
	}
}

// errUnreadable is the reason for a file that this machine cannot read at present.
var errUnreadable = errors.New("it cannot be read now")

// picture returns a stored picture in the form that providers take. Its error is a reason for the model.
func (r *Runner) picture(ctx context.Context, f store.File) (model.Picture, error) {
	if f.Size > tool.MaxPictureSource {
		return model.Picture{}, tool.PictureTooLarge(f.Size)
	}
	key := "picture " + f.SHA256
	x := r.forms.entry(key)
	if x.lock(ctx) != nil {
		return model.Picture{}, errUnreadable
	}
	defer x.unlock()
	if x.known {
		return x.picture, x.reason
	}
	data, err := r.readFile(ctx, f)
	var p tool.Picture
	if err == nil {
		p, err = r.cfg.Documents.Picture(ctx, data)
	}
	_, refused := errors.AsType[*tool.Error](err)
	if err != nil && !refused {
		r.logUnreadable(ctx, f, err)
		return model.Picture{}, errUnreadable // the next call tries again
	}
	x.picture, x.reason = model.Picture{MediaType: p.MediaType, Width: p.Width, Height: p.Height, Data: p.Data}, err
	x.known = true
	r.forms.grow(key, len(p.Data))
	return x.picture, x.reason
}

// pages returns the number of pages of a PDF file, 0 if it is unknown.
func (r *Runner) pages(ctx context.Context, f store.File) int {
	x := r.forms.entry("pages " + f.SHA256)
	if x.lock(ctx) != nil {
		return 0
	}
	defer x.unlock()
	if x.known {
		return x.pages
	}
	data, err := r.readFile(ctx, f)
	if err == nil {
		x.pages, err = r.cfg.Documents.Pages(ctx, data)
	}
	if err != nil {
		r.logUnreadable(ctx, f, err)
		return 0
	}
	x.known = true
	return x.pages
}

func (r *Runner) logUnreadable(ctx context.Context, f store.File, err error) {
	if ctx.Err() == nil {
		r.cfg.Log.Warn("an attached file cannot be read for the model", "sha256", f.SHA256, "err", err)
	}
}

// filesOf returns the readers of files for the prompt of a turn.
func (r *Runner) filesOf(e *execution) prompt.Files {
	ctx := forAuthor(e.ctx, e.claim.Turn)
	files := prompt.Files{
		Open:    func(f store.File) ([]byte, error) { return r.readFile(ctx, f) },
		Picture: func(f store.File) (model.Picture, error) { return r.picture(ctx, f) },
		Pages:   func(f store.File) int { return r.pages(ctx, f) },
	}
	for _, m := range e.chain {
		takes := model.TakesOf(m.Model)
		takes.Pictures = m.Sees()
		files.Takes = append(files.Takes, takes)
	}
	return files
}

// blindness returns the reason why none of a turn's models sees pictures, "" if one does.
func (e *execution) blindness() string {
	for _, m := range e.chain {
		if m.Sees() {
			return ""
		}
	}
	return e.model.Blindness()
}
