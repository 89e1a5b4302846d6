// Package picture brings pictures into a form that every provider of models takes: PNG or JPEG
// with 8 bits per color, upright, and within MaxSide and MaxBytes. Equal pictures give equal
// bytes on every machine.
//
// Decoders of pictures can use any amount of memory and time. So this package runs only in a
// confined process, and imports nothing of this module.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
)

// Limits of a fitted picture. Anthropic takes 2000 pixels a side in requests with many pictures, and
// 8000 in others. OpenAI reduces pictures to 2048 pixels, and Ollama to less. Some providers take only
// 4 MB per picture in base64.
const (
	MaxSide  = 2000
	MaxBytes = 3_000_000
)

// MaxSource limits the pictures that Fit reads, in bytes. Larger files are rarely pictures.
const MaxSource = 50 << 20

// Memory for the decoded picture, in MiB.
const (
	Room    = 40  // in a process with the usual memory
	MaxRoom = 288 // in any process
)

// A Fitted is a picture that every provider takes.
type Fitted struct {
	MediaType string `json:"mediaType"` // image/png or image/jpeg
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Data      []byte `json:"-"`

	// The picture as it was, in the orientation in which people see it.
	Format       string `json:"format"` // such as "JPEG"
	SourceWidth  int    `json:"sourceWidth"`
	SourceHeight int    `json:"sourceHeight"`
}

// A RoomError says that the decoded picture takes more memory than Fit may use.
type RoomError struct{ Needed int } // MiB

// Error returns the reason.
func (e *RoomError) Error() string {
	return fmt.Sprintf("it takes %d MiB of memory to decode", e.Needed)
}

// Fit returns a picture in the form that providers take. It decodes the whole picture, so a damaged one
// is an error. It returns a *RoomError if the decoded picture takes more than room MiB, and at most
// MaxRoom. Of an animation it returns the first frame. It may panic for a hostile picture.
func Fit(data []byte, room int) (Fitted, error) {
	f := formatOf(data)
	if f.refusal != "" {
		return Fitted{}, errors.New(f.refusal)
	}
	// Decode only the header before the memory is known: few bytes can hold millions of pixels.
	config, err := f.config(data)
	if err != nil {
		return Fitted{}, damaged(f)
	}
	width, height := config.Width, config.Height
	if width < 1 || height < 1 {
		return Fitted{}, damaged(f)
	}
	if err := checkRoom(f, data, config, room); err != nil {
		return Fitted{}, err
	}
	source, err := f.decode(data)
	if err != nil {
		return Fitted{}, damaged(f)
	}
	turn := orientationOf(f, data)
	out := Fitted{Format: f.name, SourceWidth: width, SourceHeight: height}
	if turn.swaps() {
		out.SourceWidth, out.SourceHeight = height, width
	}
	if turn == upright && f.mediaType != "" && width <= MaxSide && height <= MaxSide && len(data) <= MaxBytes &&
		isPlain(source) {
		out.MediaType, out.Width, out.Height, out.Data = f.mediaType, width, height, bytes.Clone(data)
		return out, nil
	}
	fitted := Scale(source, image.Rect(0, 0, width, height).Add(origin(source)), MaxSide)
	fitted = turn.apply(fitted)
	out.MediaType, out.Data, err = encode(&fitted, f.photo(source))
	out.Width, out.Height = fitted.Rect.Dx(), fitted.Rect.Dy()
	return out, err
}

// origin returns the point of a decoded picture that is its upper left corner. A frame of a GIF
// may begin within the picture.
func origin(m image.Image) image.Point {
	if _, ok := m.(*image.Paletted); ok {
		return image.Point{}
	}
	return m.Bounds().Min
}

func damaged(f format) error { return fmt.Errorf("it is a damaged %s file", f.name) }

// isPlain reports whether the pixels of a decoded picture have a form that all providers decode. CMYK and 16
// bits per color are not.
func isPlain(m image.Image) bool {
	switch m.(type) {
	case *image.YCbCr, *image.Gray, *image.RGBA, *image.NRGBA, *image.Paletted:
		return true
	}
	return false
}

// checkRoom returns an error if the decoded picture takes more than room MiB.
func checkRoom(f format, data []byte, config image.Config, room int) error {
	pixels := int64(config.Width) * int64(config.Height)
	perPixel := f.memory(data, config.ColorModel)
	needed := pixels*int64(perPixel)>>20 + 1
	if needed > MaxRoom {
		return fmt.Errorf("it is a %s file of %d x %d pixels; up to %d million pixels of this kind can be read: "+
			"make it smaller", f.name, config.Width, config.Height, MaxRoom<<20/int64(perPixel)/1_000_000)
	}
	if needed > int64(room) {
		return &RoomError{int(needed)}
	}
	return nil
}
