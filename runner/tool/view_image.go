package tool

import (
	"context"
	"encoding/json"
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
		Description: `Look at an image of the workspace: PNG, JPEG, GIF or WebP, up to 3.75 MB and 8000 pixels a side. Of a PDF
document one page is shown, also of a scan without text.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "Path of the image or of the PDF document"},
    "page": {"type": "integer", "minimum": 1, "description": "Page of a PDF document; default 1"}`,
			"path"),
		Repeatable: true,
		Parallel:   true,
	}
}

// Run shows an image.
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
	if shown, err := v.showPage(ctx, host, f, page); shown || err != nil {
		if err != nil {
			return nil, err
		}
		return result(fmt.Sprintf("Page %d of %s is shown here.", max(page, 1), visible.Name(path)))
	}
	// Read one byte more than the limit, so that ShowImage recognizes a file that is too large.
	data, err := io.ReadAll(io.LimitReader(f, MaxImageBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	if err := host.ShowImage(path, data); err != nil {
		return nil, err
	}
	// The image itself is not part of this text: providers get it as a separate block.
	return result("The image " + visible.Name(path) + " is shown here.")
}

// showPage shows a page of the file, the first one if page is 0. shown is false if the file is no PDF document.
func (v viewImage) showPage(ctx context.Context, host Host, f *content, page int) (shown bool, err error) {
	if !slices.Contains(f.kind.types, pdfType) {
		if page > 0 {
			return false, Errorf("page is for PDF documents, and %q is none: leave it out", visible.Name(f.path))
		}
		return false, nil
	}
	document, err := f.bytes()
	if err != nil {
		return false, err
	}
	image, err := v.docs.pdfPage(ctx, document, max(page, 1))
	if err != nil {
		return false, err
	}
	// The workspace has no file with this image, so the result has no path.
	return true, host.ShowImage("", image)
}
