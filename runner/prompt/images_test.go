package prompt

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// withImages returns the prompt of a turn whose steps each have an image of size bytes.
func withImages(steps int, size int64) *Prompt {
	p := New(store.Claim{}, Files{Open: func(f store.File) ([]byte, error) { return []byte(f.SHA256), nil },
		Picture: func(store.File) (model.Picture, error) { return model.Picture{Width: 2000, Height: 1500}, nil }})
	p.AddInstruction(store.Turn{Input: "look"}, nil)
	for i := range steps {
		p.AddStep(store.Step{Seq: int64(i), Finish: "tool-calls",
			Parts: []store.Part{{Type: store.PartToolCall, CallID: fmt.Sprint("c", i), ToolName: "view_image", Input: []byte(`{}`)}},
			Calls: []store.Call{{Step: int64(i), State: store.CallCompleted, Output: []byte(`"seen"`),
				Images: []store.Image{{Path: fmt.Sprint(i, ".png"), MediaType: "image/png", Size: size, SHA256: fmt.Sprint(i)}}}}})
	}
	return p
}

// shown returns the contents of the images in a request.
func shown(t *testing.T, req model.Request) (contents []string) {
	t.Helper()
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			for _, image := range p.Images {
				if image.Open == nil {
					continue
				}
				data, err := image.Open()
				is.New(t).NoErr(err)
				contents = append(contents, string(data))
			}
		}
	}
	return contents
}

func TestImagesOfToolCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		steps int
		size  int64
		want  []string
	}{
		"few":             {3, 1000, []string{"0", "1", "2"}},
		"too many":        {21, 1000, []string{"11", "12", "13", "14", "15", "16", "17", "18", "19", "20"}},
		"too large":       {5, 3 << 20, []string{"3", "4"}},
		"one is as large": {1, 13 << 20, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := withImages(tt.steps, tt.size)
			is.Equal(shown(t, p.Request()), tt.want) // only the newest images
			ordertest.AtLeast(is, p.Estimate(), int64(1500*len(tt.want)))
			step := withImages(tt.steps, tt.size)
			for range 3 {
				step.Request() // rendered step by step or at once: the result is the same
			}
			is.Equal(asJSON(t, step.Request()), asJSON(t, p.Request()))
		})
	}
}

// TestCompactionDropsImages checks that images are dropped with the output of their calls.
func TestCompactionDropsImages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := withImages(10, 1000)
	made := compact(p, Window{Size: 16_000, MaxOutput: 1000})
	is.Equal(made[0].Kind, store.CompactionCut)
	is.Equal(made[0].Items, int64(9))
	is.Equal(shown(t, p.Request()), []string{"9"}) // the newest step keeps its image
	again := withImages(10, 1000)
	again.Restore(made[0])
	is.Equal(asJSON(t, again.Request()), asJSON(t, p.Request()))
}
