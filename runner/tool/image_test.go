package tool

import (
	"bytes"
	"compress/zlib"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/tool/picture"
	"journeyman/store/ordertest"
)

// testPicture returns a PNG image of the given size.
func testPicture(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	is.New(t).NoErr(png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// testPhoto returns a JPEG picture with noise, as large as that of a phone's camera.
func testPhoto(t testing.TB, width, height int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	r := rand.NewChaCha8([32]byte{})
	_, err := r.Read(m.Pix)
	is.New(t).NoErr(err)
	for i := range m.Pix { // noise of few bits: photos are smoother than chance
		m.Pix[i] = m.Pix[i]&0x3f | 0x40
	}
	var b bytes.Buffer
	is.New(t).NoErr(jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}))
	return b.Bytes()
}

// TestPicturesAreFitted checks the confined process. The formats have their tests in package picture.
func TestPicturesAreFitted(t *testing.T) {
	t.Parallel()
	photo := testPhoto(t, 4032, 3024)
	if len(photo) < 6_000_000 {
		t.Fatalf("the photo has only %d bytes", len(photo))
	}
	for name, tt := range map[string]struct {
		data    []byte
		refused string
		w, h    int
	}{
		"a small picture":          {data: testPicture(t, 3, 2), w: 3, h: 2},
		"a photo of 12 megapixels": {data: photo, w: 2000, h: 1500},
		"a large scan":             {data: testPicture(t, 9000, 9000), w: 2000, h: 2000}, // more than the usual memory
		"damaged":                  {data: photo[:2_000_000], refused: "it is a damaged JPEG file"},
		"a text":                   {data: []byte("hello"), refused: "it is no picture"},
		"too many bytes":           {data: make([]byte, MaxPictureSource+1), refused: "it has 52428801 bytes, and pictures of up to 52428800"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p, err := testDocuments.Picture(t.Context(), tt.data)
			if tt.refused != "" {
				is.True(err != nil && strings.HasPrefix(err.Error(), tt.refused))
				return
			}
			is.NoErr(err)
			is.Equal(p.Width, tt.w)
			is.Equal(p.Height, tt.h)
			ordertest.AtMost(is, len(p.Data), picture.MaxBytes)
			again, err := testDocuments.Picture(t.Context(), tt.data)
			is.NoErr(err)
			is.True(bytes.Equal(again.Data, p.Data)) // equal files give equal pictures
		})
	}
}

// TestPagesAreCounted checks the number of pages that estimates use.
func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for n := range 4 {
		pages := make([]string, n+1)
		got, err := testDocuments.Pages(t.Context(), []byte(makePDF(pages...)))
		is.NoErr(err)
		is.Equal(got, n+1)
	}
	got, err := testDocuments.Pages(t.Context(), []byte("%PDF-1.7 encrypted"))
	is.NoErr(err)
	is.Equal(got, 0)
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err = w.Write([]byte(strings.Repeat("<</Type/Page/Parent 1 0 R>>", 7) + "<</Type /Pages/Count 7>>"))
	is.NoErr(err)
	is.NoErr(w.Close())
	got, err = testDocuments.Pages(t.Context(), []byte("%PDF-1.5\n4 0 obj\n<</Type/ObjStm/N 8/Filter/FlateDecode>>\nstream\r\n"+
		packed.String()+"\nendstream\nendobj\n"))
	is.NoErr(err)
	is.Equal(got, 7) // in an object stream, as newer programs write
}

func FuzzPages(f *testing.F) {
	f.Add([]byte("1 0 obj <</Type/ObjStm>> stream\n/Type/Page "))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := countPages(data); err != nil {
			t.Error(err)
		}
	})
}
