package runner_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// phonePhoto returns a JPEG picture of 4032 x 3024 pixels and more than 6 MB, as phones take it.
var phonePhoto = sync.OnceValue(func() []byte { return turnedPhoto(4032, 3024) })

// smallPhoto returns a smaller picture, which takes less time.
var smallPhoto = sync.OnceValue(func() []byte { return turnedPhoto(2400, 1800) })

// turnedPhoto returns a JPEG picture that its EXIF data turns by 90 degrees. The upper half of the upright picture is
// red.
func turnedPhoto(width, height int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	_, _ = rand.NewChaCha8([32]byte{}).Read(m.Pix) // never fails
	for i := 0; i < len(m.Pix); i += 4 {
		hue := color.RGBA{180, 0, 0, 255}
		if i/4%width >= width/2 {
			hue = color.RGBA{0, 0, 180, 255}
		}
		for c, v := range []byte{hue.R, hue.G, hue.B} {
			m.Pix[i+c] = v + m.Pix[i+c]&0x3f
		}
	}
	var b bytes.Buffer
	_ = jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}) // a buffer returns no error
	exif := "\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"
	return append([]byte("\xff\xd8"+exif), b.Bytes()[2:]...)
}

// jpegs matches JPEG pictures in base64.
var jpegs = regexp.MustCompile(`/9j/[A-Za-z0-9+/]{100,}={0,2}`)

// sentPictures returns the JPEG pictures of a request.
func sentPictures(t *testing.T, a asked) (pictures []image.Image, encoded []string) {
	t.Helper()
	is := is.New(t)
	for _, raw := range jpegs.FindAll(a.raw, -1) {
		data, err := base64.StdEncoding.DecodeString(string(raw))
		is.NoErr(err)
		m, err := jpeg.Decode(bytes.NewReader(data))
		is.NoErr(err)
		pictures, encoded = append(pictures, m), append(encoded, string(raw))
	}
	return pictures, encoded
}

// attach starts a turn with attached files.
func (f *fixture) attach(input string, files map[string][]byte) store.Turn {
	f.t.Helper()
	is := is.New(f.t)
	var kept []store.File
	for name, data := range files {
		file, err := f.Keep(f.ctx(), f.owner.OrganizationID, name, bytes.NewReader(data), 25<<20)
		is.NoErr(err)
		kept = append(kept, file)
	}
	n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: input, Budget: store.BudgetStandard}
	is.NoErr(f.Attach(f.ctx(), &n, kept))
	return f.wait(f.acceptTurn(n))
}

// TestPhotosAreSeen attaches a photo of a phone and looks at it again with view_image.
func TestPhotosAreSeen(t *testing.T) {
	t.Parallel()
	if n := len(phonePhoto()); n < 6<<20 {
		t.Fatalf("the photo has only %d bytes", n)
	}
	for name, tt := range map[string]struct {
		photo []byte
		size  string
	}{
		"anthropic:claude-test": {phonePhoto(), "3024 x 4032"},
		"openai:gpt-test":       {smallPhoto(), "1800 x 2400"},
		"responses:gpt-test":    {smallPhoto(), "1800 x 2400"},
		"ollama:test":           {smallPhoto(), "1800 x 2400"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := newWire(t, func(a asked) said {
				if a.number == 0 {
					return said{calls: []saidCall{{"call00001", "view_image", `{"path":"photo.jpg"}`}}}
				}
				return said{text: "Red and blue."}
			})
			f := newFixture(t, withModel(p.openModel(t, name)))
			turn := f.attach("What is it?", map[string][]byte{"photo.jpg": tt.photo,
				"phone.heic": []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic")})
			is.Equal(turn.OutputText, "Red and blue.")
			requests := p.seen()
			first, attached := sentPictures(t, requests[0])
			is.Equal(len(first), 1)
			is.Equal(first[0].Bounds().Size(), image.Pt(1500, 2000)) // scaled, and upright
			red, _, blue, _ := first[0].At(750, 100).RGBA()
			ordertest.Above(is, red, 2*blue)
			is.True(requests[0].has("phone.heic"))
			is.True(requests[0].has("HEIC pictures cannot be read here: save the picture as JPEG or PNG"))
			_, both := sentPictures(t, requests[1])
			is.Equal(both, []string{attached[0], attached[0]}) // the same bytes, and again as the result of the call
			is.True(requests[1].has("The picture photo.jpg: JPEG, " + tt.size + " pixels, scaled to 1500 x 2000."))
			is.True(!strings.Contains(string(requests[1].raw), "photo.jpg (image/jpeg")) // no note says that it is missing
		})
	}
}

// TestDamagedPictures checks that pictures which no model takes are named with the reason, and do not fail the turn.
func TestDamagedPictures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newWire(t, func(asked) said { return said{text: "ok"} })
	f := newFixture(t, withModel(p.openModel(t, "anthropic:claude-test")))
	bomb := "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\xc3\x50\x00\x00\xc3\x50\x08\x06\x00\x00\x00\xd6\xe6\x38\x1c"
	turn := f.attach("What is it?", map[string][]byte{"half.jpg": smallPhoto()[:100_000], "text.png": []byte("hello"), "bomb.png": []byte(bomb)})
	is.Equal(turn.OutputText, "ok")
	sent := p.seen()[0]
	is.True(sent.has("File half.jpg (image/jpeg, 100000 bytes) lies in the workspace; its content is not shown here: it is a damaged JPEG file."))
	is.True(sent.has("File text.png (image/png, 5 bytes) lies in the workspace; its content is not shown here: it is no picture that can be shown"))
	is.True(sent.has("bomb.png"))
	is.Equal(sent.images, 0)
}

// TestModelsThatDoNotSee checks what models without vision are told about pictures.
func TestModelsThatDoNotSee(t *testing.T) {
	t.Parallel()
	looks := func(name string, can model.Capabilities) *describing {
		m := &describing{fakeModel: named(name), describe: func(context.Context) (model.Capabilities, error) { return can, nil }}
		m.fn = func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
			if req.Messages[len(req.Messages)-1].Role == model.RoleTool {
				return answer(emit, "done"), nil
			}
			return calls(emit, 0, "view_image", `{"path":"photo.jpg"}`), nil
		}
		return m
	}
	blind := looks("blind", model.Capabilities{ContextWindow: 32_768, Tools: true})
	seeing := looks("seeing", model.Capabilities{ContextWindow: 32_768, Tools: true, Vision: true})
	for name, tt := range map[string]struct {
		chain   []model.Model
		offered bool
		says    string // part of the result of view_image
	}{
		"a model that sees":               {[]model.Model{seeing}, true, "The picture photo.jpg: JPEG, 1800 x 2400 pixels"},
		"a model that does not see":       {[]model.Model{blind}, false, "no picture can be shown: the model blind takes no pictures."},
		"the second model of a chain":     {[]model.Model{blind, seeing}, true, `The picture photo.jpg cannot be shown: the model blind takes no pictures.`},
		"the first model of a chain sees": {[]model.Model{seeing, blind}, true, "The picture photo.jpg: JPEG, 1800 x 2400 pixels"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			f := newFixture(t, func(c *runner.Config) { c.Model, c.Fallbacks = tt.chain[0], tt.chain[1:] })
			asked := tt.chain[0].(*describing)
			before := len(asked.seen())
			f.attach("Look", map[string][]byte{"photo.jpg": smallPhoto()})
			requests := asked.seen()[before:]
			offered := false
			for _, spec := range requests[0].Tools {
				offered = offered || spec.Name == "view_image"
			}
			is.Equal(offered, tt.offered)
			result := requests[1].Messages[len(requests[1].Messages)-1].Parts[0]
			is.True(strings.Contains(result.Text, tt.says))
			is.Equal(len(result.Images) > 0, !result.IsError) // shown, or the reason; never both
		})
	}
}

// TestBlindModelsAreNamed checks the note on an attached picture for a model that does not see.
func TestBlindModelsAreNamed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newWire(t, func(a asked) said {
		if strings.Contains(string(a.raw), "image_url") {
			return said{status: 400, body: `{"error":{"message":"this model does not support image input"}}`}
		}
		return said{text: "I cannot see it."}
	})
	f := newFixture(t, withModel(p.openModel(t, "openai:text")))
	is.Equal(f.attach("What is it?", map[string][]byte{"photo.jpg": smallPhoto()}).OutputText, "I cannot see it.")
	is.True(p.seen()[1].has("not shown here: the model openai:text takes no pictures. A model that takes pictures is needed to see it."))
}
