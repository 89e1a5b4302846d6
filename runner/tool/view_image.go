package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"journeyman/store/visible"
)

type viewImage struct{ docs Documents }

// Spec describes view_image.
func (viewImage) Spec() Spec {
	return Spec{
		Name:        "view_image",
		Description: `Look at an image of the workspace: PNG, JPEG, GIF or WebP, up to 3.75 MB and 8000 pixels a side.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "Path of the image"}`,
			"path"),
		Repeatable: true,
		Parallel:   true,
	}
}

// Run shows an image.
func (v viewImage) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	path := a.path()
	if err := a.err(); err != nil {
		return nil, err
	}
	f, err := v.docs.open(ctx, host.Workspace(), path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
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
