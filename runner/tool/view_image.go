package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"journeyman/store/visible"
)

type viewImage struct{ docs Documents }

// Spec describes view_image.
func (viewImage) Spec() Spec {
	return Spec{
		Name: "view_image",
		Description: `Look at a picture of the workspace: JPEG, PNG, GIF, WebP, BMP or TIFF. Large ones are scaled. Of a PDF
document, one page is shown, also of a scan without text.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "A picture or PDF"},
    "page": {"type": "integer", "minimum": 1, "description": "Of a PDF; default 1"}`,
			"path"),
		Repeatable: true,
		Parallel:   true,
	}
}

// Run shows a picture, or a page of a document.
func (v viewImage) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	path, page := a.path(), a.number("page", 0, 1)
	if err := a.err(); err != nil {
		return nil, err
	}
	f, err := v.docs.open(ctx, host.Workspace(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	isPDF := slices.Contains(f.kind.types, pdfType)
	switch {
	case isPDF:
		return v.showPage(ctx, host, f, max(page, 1))
	case page > 0:
		return nil, Errorf("page is for PDF documents, and %q is none: leave it out", visible.Name(path))
	}
	data, err := pictureFile(f)
	if err != nil {
		return nil, err
	}
	return showPicture(ctx, host, path, "The picture "+visible.Name(path), data)
}

// pictureFile returns the contents of a file.
func pictureFile(f *content) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, MaxPictureSource+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", f.path, err)
	}
	if len(data) > MaxPictureSource {
		return nil, Errorf("%q has more than %d bytes, and larger pictures cannot be read: make it smaller", f.path,
			MaxPictureSource)
	}
	return data, nil
}

// showPicture adds a picture to the result of a call. label names the picture in the text of the result. The text does
// not say that the model sees the picture: providers get the picture as a separate block, and if they get none, a
// note with the reason stands in its place.
func showPicture(ctx context.Context, host Host, path, label string, data []byte) (json.RawMessage, error) {
	p, err := host.ShowImage(ctx, path, data)
	if refused, ok := errors.AsType[*Error](err); ok {
		return nil, Errorf("%s cannot be shown: %s", label, refused.Message)
	}
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s: %s, %d x %d pixels", label, p.Format, p.SourceWidth, p.SourceHeight)
	if p.Width != p.SourceWidth || p.Height != p.SourceHeight {
		text += fmt.Sprintf(", scaled to %d x %d", p.Width, p.Height)
	}
	return result(text + ".")
}

// showPage shows a page of a PDF document.
func (v viewImage) showPage(ctx context.Context, host Host, f *content, page int) (json.RawMessage, error) {
	document, err := f.bytes()
	if err != nil {
		return nil, err
	}
	image, err := v.docs.pdfPage(ctx, document, page)
	if err != nil {
		return nil, err
	}
	// The fragment is that of RFC 8118. It tells pages apart, for the notes on those that are not sent any more.
	path := fmt.Sprintf("%s#page=%d", f.path, page)
	return showPicture(ctx, host, path, fmt.Sprintf("Page %d of %s", page, visible.Name(f.path)), image)
}
