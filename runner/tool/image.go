package tool

import (
	"bytes"
	"encoding/binary"
	"image"
	_ "image/gif"  // for DecodeConfig
	_ "image/jpeg" // for DecodeConfig
	_ "image/png"  // for DecodeConfig
	"net/http"
)

// Limits of an image in the result of a call. Providers reject larger images.
const (
	MaxImages     = 5       // images per call
	MaxImageBytes = 3750000 // 5 MB in base64, the encoding in a request
	maxImageSide  = 8000    // pixels
)

// ImageType returns the media type of an image that models accept: PNG, JPEG, GIF or WebP. It
// checks the contents, not a name. It returns an *Error for other data, and for an image that
// is larger than providers accept.
func ImageType(data []byte) (mediaType string, err error) {
	if len(data) > MaxImageBytes {
		return "", Errorf("the image has %d bytes; a model can be shown images of up to %d bytes: make it smaller",
			len(data), MaxImageBytes)
	}
	width, height := 0, 0
	switch mediaType = http.DetectContentType(data); mediaType {
	case "image/png", "image/jpeg", "image/gif":
		// Decode only the header: a picture of millions of pixels may have few bytes.
		config, _, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return "", Errorf("the image is damaged")
		}
		width, height = config.Width, config.Height
	case "image/webp":
		// The standard library has no decoder for WebP.
		width, height = webpSize(data)
	default:
		return "", Errorf("this is no image that a model can be shown: it must be PNG, JPEG, GIF or WebP")
	}
	switch {
	case width < 1 || height < 1:
		return "", Errorf("the image is damaged")
	case width > maxImageSide || height > maxImageSide:
		return "", Errorf("the image has %d x %d pixels; a model can be shown up to %d on each side: make it smaller",
			width, height, maxImageSide)
	}
	return mediaType, nil
}

// webpSize returns the width and height of a WebP image in pixels. It reads them from the
// first chunk (RFC 9649, section 2). It returns zeros for a damaged image.
func webpSize(data []byte) (width, height int) {
	const header = 20 // "RIFF", size, "WEBP", name of the chunk, size of the chunk
	if len(data) < header+10 {
		return 0, 0
	}
	// The three kinds of chunk contain the size in different places. Numbers are little-endian.
	chunk := data[header:]
	switch string(data[12:16]) {
	case "VP8 ": // a key frame: three bytes of tag, three of start code, then 14 bits per dimension
		return int(binary.LittleEndian.Uint16(chunk[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(chunk[8:]) & 0x3fff)
	case "VP8L": // one byte of signature, then 14 bits per dimension, minus one
		bits := binary.LittleEndian.Uint32(chunk[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	case "VP8X": // four bytes of flags, then 24 bits per dimension, minus one
		return int(binary.LittleEndian.Uint32(chunk[4:])&0xffffff) + 1,
			int(binary.LittleEndian.Uint32(chunk[6:])>>8) + 1
	}
	return 0, 0
}
