package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// A format is a file format of pictures.
type format struct {
	name      string
	mediaType string // if providers take the format as it is
	refusal   string // if this package cannot read the format, the reason

	config func([]byte) (image.Config, error)
	decode func([]byte) (image.Image, error)
	memory func([]byte, color.Model) int // bytes per pixel while decoding
	exif   func([]byte) []byte           // returns the EXIF data, nil for none
}

// unknownFormat is the reason for files that are no pictures, and for pictures such as SVG.
const unknownFormat = "it is no picture that can be shown: it must be JPEG, PNG, GIF, WebP, BMP or TIFF"

// formatOf returns the format of a picture, by its first bytes.
func formatOf(data []byte) format {
	starts := func(magic string) bool { return bytes.HasPrefix(data, []byte(magic)) }
	switch {
	case starts("\xff\xd8"):
		return format{"JPEG", "image/jpeg", "", configBy(jpeg.DecodeConfig), by(jpeg.Decode), jpegMemory, jpegExif}
	case starts("\x89PNG\r\n\x1a\n"):
		return format{"PNG", "image/png", "", configBy(png.DecodeConfig), by(png.Decode), modelMemory, pngExif}
	case starts("GIF87a"), starts("GIF89a"): // gif.Decode stops after the first frame
		return format{"GIF", "", "", configBy(gif.DecodeConfig), by(gif.Decode), modelMemory, noExif}
	case starts("RIFF") && len(data) >= 16 && string(data[8:12]) == "WEBP":
		return format{"WebP", "", "", webpConfig, webpDecode, webpMemory, webpExif}
	case starts("BM"):
		return format{"BMP", "", "", configBy(bmp.DecodeConfig), by(bmp.Decode), modelMemory, noExif}
	case starts("II*\x00"), starts("MM\x00*"):
		return format{"TIFF", "", "", configBy(tiff.DecodeConfig), by(tiff.Decode), tiffMemory, wholeFile}
	case len(data) >= 12 && string(data[4:8]) == "ftyp":
		return format{refusal: isoRefusal(data)}
	}
	return format{refusal: unknownFormat}
}

// isoRefusal returns the reason why a file in the ISO base media format cannot be shown. The format holds
// HEIC and AVIF pictures, and videos.
func isoRefusal(data []byte) string {
	const wayOut = " pictures cannot be read here: save the picture as JPEG or PNG"
	brands := data[8:min(len(data), 8+int(min(binary.BigEndian.Uint32(data), 256)))]
	has := func(brand string) bool { return bytes.Contains(brands, []byte(brand)) }
	switch {
	case has("avif"), has("avis"):
		return "AVIF" + wayOut
	case has("hei"), has("hev"), has("mif1"):
		return "HEIC" + wayOut + " (an iPhone takes JPEG pictures with the camera format \"Most Compatible\")"
	}
	return unknownFormat
}

func by(decode func(io.Reader) (image.Image, error)) func([]byte) (image.Image, error) {
	return func(data []byte) (image.Image, error) { return decode(bytes.NewReader(data)) }
}

func configBy(decode func(io.Reader) (image.Config, error)) func([]byte) (image.Config, error) {
	return func(data []byte) (image.Config, error) { return decode(bytes.NewReader(data)) }
}

// photo reports whether JPEG suits a picture better than PNG.
func (f format) photo(m image.Image) bool {
	_, lossy := m.(*image.YCbCr)
	return lossy || f.name == "JPEG"
}

// modelMemory returns the bytes per pixel of a decoded picture. An interlaced PNG needs a second copy.
func modelMemory(data []byte, m color.Model) int {
	n := 4
	switch m {
	case color.GrayModel:
		n = 1
	case color.Gray16Model:
		n = 2
	case color.RGBA64Model, color.NRGBA64Model:
		n = 8
	default:
		if _, ok := m.(color.Palette); ok {
			n = 1
		}
	}
	const interlace = 28 // place of the byte in the header of a PNG
	if len(data) > interlace && data[0] == 0x89 && data[interlace] != 0 {
		n *= 2
	}
	return n
}

// tiffMemory adds the memory for the uncompressed strips. One strip may hold the whole picture.
func tiffMemory(data []byte, m color.Model) int { return 2 * modelMemory(data, m) }

// webpMemory returns the bytes per pixel of a WebP picture. Lossless pictures have several copies while they
// are decoded.
func webpMemory(_ []byte, m color.Model) int {
	if m == color.YCbCrModel {
		return 3
	}
	return 12
}

// jpegMemory returns the bytes per pixel of a JPEG picture, by the header of its frame. A progressive picture
// needs four bytes more for each sample.
func jpegMemory(data []byte, _ color.Model) int {
	const most = 4 * 6 // CMYK, progressive, and a copy
	memory := most
	jpegSegments(data, func(marker byte, segment []byte) bool {
		isFrame := marker >= 0xc0 && marker <= 0xc2
		if !isFrame || len(segment) < 6 {
			return !isFrame
		}
		components := int(segment[5])
		if components == 1 || components == 3 {
			memory = samplesPerPixel(segment[6:], components)
			if marker == 0xc2 {
				memory *= 5
			}
		}
		return false
	})
	return memory
}

// samplesPerPixel returns the number of samples per pixel, rounded up, from the sampling factors of a frame.
func samplesPerPixel(factors []byte, components int) int {
	sum, largest := 0, 1
	for i := range components {
		if 3*i+1 >= len(factors) {
			return components
		}
		n := int(factors[3*i+1]>>4) * int(factors[3*i+1]&15)
		sum, largest = sum+n, max(largest, n)
	}
	return (sum + largest - 1) / largest
}

// jpegSegments calls visit with the segments before the pixels of a JPEG picture, until it returns false.
func jpegSegments(data []byte, visit func(marker byte, segment []byte) bool) {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker := data[at+1]
		if marker == 0xff { // a byte that only fills
			at++
			continue
		}
		if marker == 0xda || marker == 0xd9 { // the pixels, or the end
			return
		}
		length := int(binary.BigEndian.Uint16(data[at+2:]))
		if length < 2 || at+2+length > len(data) || !visit(marker, data[at+4:at+2+length]) {
			return
		}
		at += 2 + length
	}
}

var errNoFrame = errors.New("the animation has no frame")

// webpConfig returns the size of a WebP picture.
func webpConfig(data []byte) (image.Config, error) {
	still, err := firstFrame(data)
	if err != nil {
		return image.Config{}, err
	}
	return webp.DecodeConfig(bytes.NewReader(still))
}

// webpDecode decodes a WebP picture.
func webpDecode(data []byte) (image.Image, error) {
	still, err := firstFrame(data)
	if err != nil {
		return nil, err
	}
	return webp.Decode(bytes.NewReader(still))
}

// firstFrame returns the first frame of an animated WebP picture as a file of its own, because the decoder
// knows no animations. Other pictures remain as they are (RFC 9649, section 2.7).
func firstFrame(data []byte) ([]byte, error) {
	const flags, animated = 20, 0x02
	if len(data) < 30 || string(data[12:16]) != "VP8X" || data[flags]&animated == 0 {
		return data, nil
	}
	const header = 16 // place, size, duration and flags of a frame, before its chunks
	frame := riffChunk(data, "ANMF")
	if len(frame) < header {
		return nil, errNoFrame
	}
	// The extended header of the file has the flags and the size of this frame: with alpha, unless the frame has none.
	chunks := frame[header:]
	extended := make([]byte, 10)
	if bytes.HasPrefix(chunks, []byte("ALPH")) {
		extended[0] = 0x10
	}
	copy(extended[4:], frame[6:12]) // width and height, minus one
	body := append([]byte("WEBP"), riffOf("VP8X", extended)...)
	body = append(body, chunks...)
	if !bytes.HasPrefix(chunks, []byte("ALPH")) {
		body = append([]byte("WEBP"), chunks...)
	}
	return riffOf("RIFF", body), nil
}

// riffOf returns a chunk of the container format RIFF.
func riffOf(name string, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body)))
	return append(out, body...)
}

// riffChunk returns the contents of the first chunk with that name in a WebP file, nil if there is none.
func riffChunk(data []byte, name string) []byte {
	for at := 12; at+8 <= len(data); {
		length := int(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+8:]
		if string(data[at:at+4]) == name {
			return body[:min(length, len(body))]
		}
		at += 8 + length + length&1
	}
	return nil
}
