package tool

import (
	"bytes"
	"encoding/hex"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// picture returns a PNG image of the given size.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	is.New(t).NoErr(png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// webp returns the beginning of a WebP image.
func webp(t testing.TB, chunk, payload string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(payload)
	is.New(t).NoErr(err)
	return append([]byte("RIFF\x40\x00\x00\x00WEBP"+chunk+"\x30\x00\x00\x00"), append(raw, make([]byte, 40)...)...)
}

func TestImageType(t *testing.T) {
	t.Parallel()
	var jpg, anim bytes.Buffer
	small := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	is.New(t).NoErr(jpeg.Encode(&jpg, small, nil))
	is.New(t).NoErr(gif.Encode(&anim, small, nil))
	for name, tt := range map[string]struct {
		data []byte
		want string // media type, or text of the error
	}{
		"PNG":             {picture(t, 3, 2), "image/png"},
		"JPEG":            {jpg.Bytes(), "image/jpeg"},
		"GIF":             {anim.Bytes(), "image/gif"},
		"WebP lossy":      {webp(t, "VP8 ", "0000009d012a03000200"), "image/webp"},
		"WebP lossless":   {webp(t, "VP8L", "2f02400000"), "image/webp"},
		"WebP extended":   {webp(t, "VP8X", "00000000020000010000"), "image/webp"},
		"WebP too wide":   {webp(t, "VP8X", "00000000ffff00010000"), "65536 x 2 pixels"},
		"WebP unknown":    {webp(t, "VP9 ", "00000000ffff00010000"), "damaged"},
		"WebP cut off":    {webp(t, "VP8X", "")[:22], "damaged"},
		"PNG too high":    {picture(t, 1, 8001), "1 x 8001 pixels"},
		"PNG cut off":     {picture(t, 3, 2)[:20], "damaged"},
		"text":            {[]byte("hello"), "must be PNG, JPEG, GIF or WebP"},
		"PDF":             {[]byte("%PDF-1.7"), "must be PNG, JPEG, GIF or WebP"},
		"nothing":         {nil, "must be PNG, JPEG, GIF or WebP"},
		"more than fits":  {append(picture(t, 3, 2), make([]byte, MaxImageBytes)...), "make it smaller"},
		"picture of SVG ": {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "must be PNG"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := ImageType(tt.data)
			if err != nil {
				got = err.Error()
			}
			is.True(strings.Contains(got, tt.want)) // the type, or the reason
		})
	}
}

func FuzzImageType(f *testing.F) {
	f.Add(picture(f, 3, 2))
	f.Add(webp(f, "VP8X", "00000000020000010000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ImageType(data)
		if (err == nil) != strings.HasPrefix(got, "image/") {
			t.Errorf("type %q, error %v", got, err)
		}
	})
}
