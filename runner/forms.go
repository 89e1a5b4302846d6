package runner

import (
	"context"
	"errors"

	"journeyman/runner/model"
	"journeyman/runner/prompt"
	"journeyman/runner/tool"
	"journeyman/store"
)

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
