package pdf

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"image/png"

	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/requests"
)

const (
	pointsPerInch = 72
	maxDPI        = 300 // a small page is not enlarged more
	jpegQuality   = 85
)

// Picture returns a page as a picture whose longer side has up to maxSide pixels: PNG, or JPEG if PNG takes more
// than maxBytes.
func (r *Reader) Picture(data []byte, page, maxSide, maxBytes int) ([]byte, error) {
	d, err := r.open(data)
	if err != nil {
		return nil, err
	}
	if page < 1 || page > d.pages {
		return nil, fmt.Errorf("it has %d pages, so there is no page %d", d.pages, page)
	}
	ref := requests.Page{ByIndex: &requests.PageByIndex{Document: d.ref, Index: page - 1}}
	size, err := d.pdfium.GetPageSize(&requests.GetPageSize{Page: ref})
	if err != nil {
		return nil, d.failure(err)
	}
	longest := max(size.Width, size.Height)
	if !(longest > 0) || min(size.Width, size.Height) <= 0 {
		return nil, fmt.Errorf("page %d has no size", page)
	}
	scale := min(float64(maxSide)/longest, maxDPI/pointsPerInch)
	side := max(int(longest*scale), 1)
	out, err := d.pdfium.RenderPageInPixels(&requests.RenderPageInPixels{Page: ref, Width: side, Height: side,
		RenderFlags: enums.FPDF_RENDER_FLAG_ANNOT, RenderForm: true, Document: &d.ref})
	if err != nil {
		return nil, d.failure(err)
	}
	defer out.Cleanup()
	var b bytes.Buffer
	if err := png.Encode(&b, out.Result.RenderedImage); err != nil {
		return nil, err
	}
	if b.Len() > maxBytes {
		b.Reset()
		if err := jpeg.Encode(&b, out.Result.RenderedImage, &jpeg.Options{Quality: jpegQuality}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
