package picture

import (
	"bytes"
	"encoding/binary"
	"image"
)

// An orientation says how a picture must be turned so that people see it upright. Its values are those of EXIF:
// from 1 to 8.
type orientation uint16

const upright orientation = 1

// swaps reports whether the turned picture is as wide as the stored one is high.
func (o orientation) swaps() bool { return o >= 5 }

// apply returns the upright picture.
func (o orientation) apply(m *image.RGBA) *image.RGBA {
	if o == upright {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if o.swaps() {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			toX, toY := o.place(x, y, w, h)
			copy(out.Pix[out.PixOffset(toX, toY):][:4], m.Pix[m.PixOffset(x, y):][:4])
		}
	}
	return out
}

// place returns the upright place of a pixel in a stored picture of w x h pixels.
func (o orientation) place(x, y, w, h int) (toX, toY int) {
	switch o {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return h - 1 - y, x
	case 7:
		return h - 1 - y, w - 1 - x
	case 8:
		return y, w - 1 - x
	}
	return x, y
}

// orientationOf returns the orientation of a picture. It is upright if the picture states none.
func orientationOf(f format, data []byte) orientation {
	exif := f.exif(data)
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(exif) < 8:
		return upright
	case string(exif[:2]) == "MM":
		order = binary.BigEndian
	case string(exif[:2]) != "II":
		return upright
	}
	const entrySize, tagOrientation, typeShort = 12, 0x0112, 3
	at := int64(order.Uint32(exif[4:]))
	if at+2 > int64(len(exif)) {
		return upright
	}
	entries := exif[at+2:]
	for n := order.Uint16(exif[at:]); n > 0 && len(entries) >= entrySize; n-- {
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			if o := orientation(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			return upright
		}
		entries = entries[entrySize:]
	}
	return upright
}

func noExif([]byte) []byte { return nil }

// wholeFile returns a TIFF file, whose directory has the form of EXIF data.
func wholeFile(data []byte) []byte { return data }

// exifMark is in front of the EXIF data of JPEG pictures, and of some WebP pictures.
const exifMark = "Exif\x00\x00"

func jpegExif(data []byte) (exif []byte) {
	jpegSegments(data, func(marker byte, segment []byte) bool {
		if marker == 0xe1 && bytes.HasPrefix(segment, []byte(exifMark)) {
			exif = segment[len(exifMark):]
		}
		return exif == nil
	})
	return exif
}

func webpExif(data []byte) []byte { return bytes.TrimPrefix(riffChunk(data, "EXIF"), []byte(exifMark)) }

func pngExif(data []byte) []byte {
	for at := 8; at+12 <= len(data); {
		length := int(binary.BigEndian.Uint32(data[at:]))
		body := data[at+8:]
		if length > len(body) {
			return nil
		}
		if string(data[at+4:at+8]) == "eXIf" {
			return body[:length]
		}
		at += 12 + length
	}
	return nil
}
