package pdfwriter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // the formats of pictures
	"image/png"
	"slices"

	"codeberg.org/go-pdf/fpdf"

	"journeyman/runner/tool/picture"
)

// Limits of a picture.
const (
	maxPixels = 9_000_000  // of a PNG, which is decoded
	maxJPEG   = 60_000_000 // pixels of a JPEG, which is not decoded
	maxSide   = 2400       // pixels of a PNG in the document; larger ones are scaled
)

// lack adds a note.
func (w *writer) lack(format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if !slices.Contains(w.lacks, note) && len(w.lacks) < maxWanted {
		w.lacks = append(w.lacks, note)
	}
}

// known reports whether the input contains a picture. Otherwise its description is written instead.
func (w *writer) known(s span) bool {
	if _, ok := w.pictures[s.picture]; ok {
		return true
	}
	if !slices.Contains(w.wanted, s.picture) && len(w.wanted) < maxWanted {
		w.wanted = append(w.wanted, s.picture)
	}
	return false
}

// A registered is a picture that is in the document, or the reason why it is not.
type registered struct {
	width, height float64 // pixels
	turned        int     // degrees by which it is turned clockwise
	err           error
}

// picture draws a picture, at most as wide as the box and as high as a page.
func (w *writer) picture(address string, b box) {
	p, again := w.drawn[address]
	if !again {
		p.width, p.height, p.turned, p.err = w.register(address, w.pictures[address])
		w.drawn[address] = p
	}
	width, height, turned := p.width, p.height, p.turned
	if err := p.err; err != nil {
		w.lack("The picture %q is not shown: %s.", address, err)
		w.drawLines(w.fonts.breakLines([]span{{text: "[" + address + "]"}}, textSize, b.width), textSize, b)
		return
	}
	if turned == 90 || turned == 270 {
		width, height = height, width
	}
	const most = pageBottom - marginTop
	scale := min(0.75, b.width/width, most/height) // 96 pixels are an inch
	width, height = width*scale, height*scale
	w.room(height)
	if w.err != nil {
		return
	}
	w.drawMarkers(w.y + textSize)
	w.drawTurned(address, b.left, w.y, width, height, turned)
	w.y += height
}

// drawTurned draws a picture that fills a rectangle after it is turned clockwise by some degrees.
func (w *writer) drawTurned(name string, x, y, width, height float64, degrees int) {
	if degrees == 0 {
		w.pdf.ImageOptions(name, x, y, width, height, false, fpdf.ImageOptions{}, 0, "")
		return
	}
	own, across := width, height
	if degrees != 180 {
		own, across = height, width
	}
	middleX, middleY := x+width/2, y+height/2
	w.pdf.TransformBegin()
	w.pdf.TransformRotate(float64(-degrees), middleX, middleY) // counterclockwise
	w.pdf.ImageOptions(name, middleX-own/2, middleY-across/2, own, across, false, fpdf.ImageOptions{}, 0, "")
	w.pdf.TransformEnd()
}

// register adds a picture to the document. It returns its size in pixels, and the degrees by which it has to be turned
// clockwise.
func (w *writer) register(name string, data []byte) (width, height float64, turned int, err error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return 0, 0, 0, fmt.Errorf("it is neither a PNG nor a JPEG")
	}
	most := map[string]int{"png": maxPixels, "jpeg": maxJPEG}[format]
	switch config.ColorModel {
	case color.NRGBA64Model, color.RGBA64Model, color.Gray16Model: // twice the memory
		most /= 2
	}
	if config.Width < 1 || config.Height < 1 || config.Width > most/config.Height {
		return 0, 0, 0, fmt.Errorf("it has %d x %d pixels, more than %d", config.Width, config.Height, most)
	}
	kind := "JPG"
	if format == "png" {
		kind = "PNG"
		if data, err = opaque(data); err != nil {
			return 0, 0, 0, err
		}
	} else {
		turned = orientation(data)
	}
	w.pdf.RegisterImageOptionsReader(name, fpdf.ImageOptions{ImageType: kind}, bytes.NewReader(data))
	if err := w.pdf.Error(); err != nil {
		w.pdf.ClearError()
		return 0, 0, 0, err
	}
	return float64(config.Width), float64(config.Height), turned, nil
}

// opaque returns a PNG in the only form that the library stores without changes: 8 bits, not interlaced, and without
// transparency. The background is white.
func opaque(data []byte) ([]byte, error) {
	source, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if size := source.Bounds().Size(); max(size.X, size.Y) > maxSide {
		source = picture.Scale(source, source.Bounds(), maxSide)
	}
	flat := image.NewRGBA(image.Rectangle{Max: source.Bounds().Size()})
	draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), source, source.Bounds().Min, draw.Over)
	var b bytes.Buffer
	if err := png.Encode(&b, flat); err != nil {
		return nil, fmt.Errorf("it cannot be stored: %w", err)
	}
	return b.Bytes(), nil
}

// orientation returns the degrees by which viewers turn a JPEG clockwise, as its Exif data says. Mirrored pictures are
// only turned.
func orientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xff && data[at+1] != 0xda; {
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		segment := data[at+4 : min(len(data), at+2+max(length, 2))]
		if data[at+1] == 0xe1 && bytes.HasPrefix(segment, []byte("Exif\x00\x00")) {
			return exifTurn(segment[6:])
		}
		at += 2 + max(length, 2)
	}
	return 0
}

// exifTurn returns the degrees of the tag Orientation in Exif data, which has the form of a TIFF file.
func exifTurn(tiff []byte) int {
	if len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	start := int(order.Uint32(tiff[4:]))
	if start < 8 || start+2 > len(tiff) {
		return 0
	}
	const entry, orientationTag = 12, 0x0112
	for i := range int(order.Uint16(tiff[start:])) {
		at := start + 2 + i*entry
		if at+entry > len(tiff) {
			return 0
		}
		if order.Uint16(tiff[at:]) == orientationTag {
			return map[uint16]int{3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}[order.Uint16(tiff[at+8:])]
		}
	}
	return 0
}
