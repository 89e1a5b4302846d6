package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// red and blue are the colors of the halves of the test pictures.
var red, blue = color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}

// halves returns a picture whose left half is red, and whose right half is blue.
func halves(width, height int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(m, m.Rect, image.NewUniform(red), image.Point{}, draw.Src)
	draw.Draw(m, image.Rect(width/2, 0, width, height), image.NewUniform(blue), image.Point{}, draw.Src)
	return m
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	is.New(t).NoErr(png.Encode(&b, m))
	return b.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	is.New(t).NoErr(jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}))
	return b.Bytes()
}

// turned returns a JPEG picture with an orientation, as cameras write it.
func turned(picture []byte, o uint16) []byte {
	exif := []byte(exifMark + "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01")
	exif = append(binary.BigEndian.AppendUint16(exif, o), 0, 0, 0, 0, 0, 0)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return bytes.Join([][]byte{picture[:2], segment, exif, picture[2:]}, nil)
}

// corners returns the colors near the upper left and the lower right corner: r, b or ?.
func corners(t *testing.T, data []byte) string {
	t.Helper()
	m, _, err := image.Decode(bytes.NewReader(data))
	is.New(t).NoErr(err)
	r := m.Bounds()
	name := func(x, y int) string {
		red, green, blue, _ := m.At(x, y).RGBA()
		switch {
		case red > 0x9000 && green < 0x4000 && blue < 0x4000:
			return "r"
		case blue > 0x9000 && green < 0x4000 && red < 0x4000:
			return "b"
		}
		return "?"
	}
	return name(r.Min.X+1, r.Min.Y+1) + name(r.Max.X-2, r.Max.Y-2)
}

// TestFit fits pictures of all formats. Other programs have written those in testdata.
func TestFit(t *testing.T) {
	t.Parallel()
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		is.New(t).NoErr(err)
		return data
	}
	gray16 := image.NewGray16(image.Rect(0, 0, 30, 20))
	deep := image.NewNRGBA64(image.Rect(0, 0, 48, 32))
	draw.Draw(deep, deep.Rect, halves(48, 32), image.Point{}, draw.Src)
	for name, tt := range map[string]struct {
		data      []byte
		mediaType string
		w, h      int
		corners   string
		same      bool // the bytes are sent as they are
	}{
		"PNG":                    {pngOf(t, halves(48, 32)), "image/png", 48, 32, "rb", true},
		"PNG with a palette":     {file("palette.png"), "image/png", 48, 32, "rb", true},
		"PNG of 16 bits":         {pngOf(t, deep), "image/png", 48, 32, "rb", false},
		"PNG, gray of 16 bits":   {pngOf(t, gray16), "image/png", 30, 20, "??", false},
		"PNG, turned":            {file("turned.png"), "image/png", 32, 48, "rb", false},
		"JPEG":                   {jpegOf(t, halves(48, 32)), "image/jpeg", 48, 32, "rb", true},
		"JPEG in CMYK":           {file("cmyk.jpg"), "image/jpeg", 48, 32, "rb", false},
		"JPEG, progressive":      {file("progressive.jpg"), "image/jpeg", 48, 32, "rb", true},
		"JPEG, turned":           {file("turned.jpg"), "image/jpeg", 32, 48, "rb", false},
		"JPEG, turned twice":     {turned(jpegOf(t, halves(48, 32)), 3), "image/jpeg", 48, 32, "br", false},
		"JPEG, wrongly turned":   {turned(jpegOf(t, halves(48, 32)), 9), "image/jpeg", 48, 32, "rb", true},
		"GIF, animated":          {file("animated.gif"), "image/png", 48, 32, "rb", false},
		"WebP, lossy":            {file("lossy.webp"), "image/jpeg", 48, 32, "rb", false},
		"WebP, lossless":         {file("lossless.webp"), "image/png", 48, 32, "rb", false},
		"WebP, alpha":            {file("alpha.webp"), "image/png", 48, 32, "rb", false},
		"WebP, animated":         {file("animated.webp"), "image/png", 48, 32, "rb", false},
		"WebP, animated, alpha":  {file("animated-alpha.webp"), "image/png", 48, 32, "rb", false},
		"WebP, turned":           {file("turned.webp"), "image/png", 32, 48, "rb", false},
		"BMP":                    {file("plain.bmp"), "image/png", 48, 32, "rb", false},
		"TIFF":                   {file("lzw.tif"), "image/png", 48, 32, "rb", false},
		"TIFF, turned":           {file("turned.tif"), "image/png", 32, 48, "rb", false},
		"a panorama":             {jpegOf(t, halves(20000, 500)), "image/jpeg", 2000, 50, "rb", false},
		"a line":                 {pngOf(t, halves(9000, 3)), "image/png", 2000, 1, "??", false},
		"one pixel too wide":     {pngOf(t, halves(2001, 40)), "image/png", 2000, 40, "rb", false},
		"a photo, turned by 90°": {turned(jpegOf(t, halves(4032, 3024)), 6), "image/jpeg", 1500, 2000, "rb", false},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Fit(tt.data, MaxRoom)
			is.NoErr(err)
			is.Equal(got.MediaType, tt.mediaType)
			is.Equal(got.Width, tt.w)
			is.Equal(got.Height, tt.h)
			is.Equal(bytes.Equal(got.Data, tt.data), tt.same)
			config, _, err := image.DecodeConfig(bytes.NewReader(got.Data))
			is.NoErr(err)
			is.Equal(config.Width, tt.w)
			is.Equal(config.Height, tt.h)
			if tt.h > 2 {
				is.Equal(corners(t, got.Data), tt.corners)
			}
			again, err := Fit(got.Data, Room)
			is.NoErr(err)
			is.True(bytes.Equal(again.Data, got.Data)) // a fitted picture stays as it is
		})
	}
}

// TestOrientations checks all orientations against the corner at which the first stored pixel is seen.
func TestOrientations(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := image.NewRGBA(image.Rect(0, 0, 3, 2))
	m.SetRGBA(0, 0, red)
	m.SetRGBA(1, 0, blue) // beside it in the first stored row
	for o, want := range map[orientation][2]image.Point{
		1: {{0, 0}, {1, 0}}, 2: {{2, 0}, {1, 0}}, 3: {{2, 1}, {1, 1}}, 4: {{0, 1}, {1, 1}},
		5: {{0, 0}, {0, 1}}, 6: {{1, 0}, {1, 1}}, 7: {{1, 2}, {1, 1}}, 8: {{0, 2}, {0, 1}},
	} {
		got := o.apply(m)
		is.Equal(got.RGBAAt(want[0].X, want[0].Y), red)
		is.Equal(got.RGBAAt(want[1].X, want[1].Y), blue)
	}
}

// bomb returns a PNG whose header states a size, with few bytes of pixels.
func bomb(width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
	header = append(binary.BigEndian.AppendUint32(header, height), 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(header))
	return append(out, "\x00\x00\x00\x04IDATxxxx"...)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	noise := image.NewRGBA(image.Rect(0, 0, 64, 64))
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise.Pix)
	photo := jpegOf(t, noise)
	drawing := pngOf(t, noise)
	animation := append([]byte("RIFF\x40\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00"), make([]byte, 40)...)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"a bomb":                 {bomb(50000, 50000), "it is a PNG file of 50000 x 50000 pixels; up to 75 million pixels"},
		"a wide bomb":            {bomb(0x7fffffff, 1), "it is a PNG file of 2147483647 x 1 pixels"},
		"a JPEG that is cut off": {photo[:len(photo)/2], "it is a damaged JPEG file"},
		"a PNG that is cut off":  {drawing[:len(drawing)/2], "it is a damaged PNG file"},
		"a JPEG without pixels":  {photo[:3], "it is a damaged JPEG file"},
		"a PNG without a size":   {bomb(0, 5), "it is a damaged PNG file"},
		"a WebP without a frame": {animation, "it is a damaged WebP file"},
		"a GIF without a frame":  {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "it is a damaged GIF file"},
		"a HEIC":                 {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), "HEIC pictures cannot be read here: save"},
		"an AVIF":                {[]byte("\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf"), "AVIF pictures cannot be read here: save"},
		"a video":                {[]byte("\x00\x00\x00\x18ftypisom\x00\x00\x00\x00mp41isom"), "it is no picture"},
		"a text":                 {[]byte("hello"), "it is no picture"},
		"nothing":                {nil, "it is no picture that can be shown: it must be JPEG, PNG"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := Fit(tt.data, MaxRoom)
			is.True(err != nil && strings.HasPrefix(err.Error(), tt.want)) // the reason
		})
	}
}

// TestRoom checks that a picture that takes more memory is not decoded.
func TestRoom(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	large := pngOf(t, image.NewGray(image.Rect(0, 0, 9000, 9000)))
	_, err := Fit(large, Room)
	needed, ok := errors.AsType[*RoomError](err)
	is.True(ok)
	is.Equal(needed.Needed, 78)
	got, err := Fit(large, needed.Needed)
	is.NoErr(err)
	is.Equal([]int{got.Width, got.SourceWidth}, []int{2000, 9000})
}

// TestMaxBytes checks that a picture of noise is reduced until it is small enough.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := image.NewNRGBA(image.Rect(0, 0, 2000, 2000))
	_, err := rand.NewChaCha8([32]byte{}).Read(m.Pix)
	is.NoErr(err)
	got, err := Fit(pngOf(t, m), MaxRoom)
	is.NoErr(err)
	is.Equal(got.MediaType, "image/jpeg")
	ordertest.AtMost(is, len(got.Data), MaxBytes)
	ordertest.AtLeast(is, got.Width, 1000)
}

// TestScale compares the result with means that are computed in another way.
func TestScale(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := image.NewRGBA(image.Rect(0, 0, 12, 9))
	for i := range m.Pix {
		m.Pix[i] = byte(i * 7)
	}
	out := Scale(m, m.Rect, 4)
	is.Equal(out.Rect, image.Rect(0, 0, 4, 3))
	for y := range 3 {
		for x := range 4 {
			for c := range 4 {
				sum := 0
				for i := range 9 {
					sum += int(m.Pix[m.PixOffset(3*x+i%3, 3*y+i/3)+c])
				}
				is.Equal(out.Pix[out.PixOffset(x, y)+c], byte((2*sum+9)/18))
			}
		}
	}
}

func FuzzFit(f *testing.F) {
	for _, name := range []string{"cmyk.jpg", "turned.jpg", "animated.webp", "alpha.webp", "animated.gif", "lzw.tif", "plain.bmp", "palette.png"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer func() { _ = recover() }() // the confined process would end
		got, err := Fit(data, 1)
		if err == nil && (got.Width < 1 || got.Width > MaxSide || got.Height > MaxSide || len(got.Data) > MaxBytes) {
			t.Errorf("%+v", got)
		}
	})
}
