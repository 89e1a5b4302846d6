package picture

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
)

// encode returns a picture with at most MaxBytes. Photos become JPEG, other pictures PNG if that is small enough.
// If no JPEG is small enough, encode halves the picture.
func encode(m **image.RGBA, photo bool) (mediaType string, data []byte, err error) {
	if !photo || !(*m).Opaque() {
		if data, err = encodePNG(*m); err != nil || len(data) <= MaxBytes {
			return "image/png", data, err
		}
		*m = onWhite(*m) // JPEG knows no transparency
	}
	for (*m).Rect.Dx() > 1 || (*m).Rect.Dy() > 1 {
		for _, quality := range []int{85, 70, 50} {
			var b bytes.Buffer
			if err := jpeg.Encode(&b, *m, &jpeg.Options{Quality: quality}); err != nil {
				return "", nil, err
			}
			if b.Len() <= MaxBytes {
				return "image/jpeg", b.Bytes(), nil
			}
		}
		*m = Scale(*m, (*m).Rect, max((*m).Rect.Dx(), (*m).Rect.Dy())/2)
	}
	return "", nil, errors.New("the picture cannot be made small enough")
}

// encodePNG returns a picture without loss. A gray picture takes a third of the bytes.
func encodePNG(m *image.RGBA) ([]byte, error) {
	var b bytes.Buffer
	var source image.Image = m
	if gray := grayOf(m); gray != nil {
		source = gray
	}
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, source)
	return b.Bytes(), err
}

// grayOf returns a picture without color and transparency as gray. It returns nil for other pictures.
func grayOf(m *image.RGBA) *image.Gray {
	gray := image.NewGray(m.Rect)
	for i := range gray.Pix {
		p := m.Pix[4*i : 4*i+4]
		if p[0] != p[1] || p[1] != p[2] || p[3] != 0xff {
			return nil
		}
		gray.Pix[i] = p[0]
	}
	return gray
}

// onWhite returns a picture in front of a white background.
func onWhite(m *image.RGBA) *image.RGBA {
	out := image.NewRGBA(m.Rect)
	draw.Draw(out, out.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, m, m.Rect.Min, draw.Over)
	return out
}
