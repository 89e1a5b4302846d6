package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
)

// withPages returns the prompt of a turn that has looked at pages of a PDF document. The first ones are larger.
func withPages(pages int) *Prompt {
	p := New(store.Claim{}, Files{Open: func(f store.File) ([]byte, error) { return []byte(f.SHA256), nil },
		Takes: []model.Takes{{Pictures: true}},
		Picture: func(f store.File) (model.Picture, error) {
			if f.Size > 1000 {
				return model.Picture{Width: 1500, Height: 2000}, nil
			}
			return model.Picture{Width: 700, Height: 700}, nil
		}})
	p.AddInstruction(store.Turn{Seq: 1, Input: "look"}, nil)
	step := store.Step{Seq: 0, Finish: "tool-calls"}
	for i := range pages {
		step.Parts = append(step.Parts, store.Part{Type: store.PartToolCall, CallID: fmt.Sprint("c", i), ToolName: "view_image", Input: []byte(`{}`)})
		size := int64(1000)
		if i < 2 {
			size = 2000
		}
		step.Calls = append(step.Calls, store.Call{Seq: int64(i), State: store.CallCompleted, Output: []byte(`"seen"`),
			Images: []store.Image{{Path: fmt.Sprintf("scan.pdf#page=%d", i+1), MediaType: "image/png", Size: size, SHA256: fmt.Sprint(i + 1)}}})
	}
	p.AddStep(step)
	return p
}

// TestLargestPagesGoFirst checks that only some of the pages that a turn has looked at are left out.
func TestLargestPagesGoFirst(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := withPages(6)
	before := p.Estimate()
	c := &Compactor{prompt: p, target: before - 2500}
	proposal, ok := c.dropAttachments(p.conversation.passages[0].turn, c.target)
	is.True(ok)
	var paths []string
	for _, f := range proposal.Compaction.Files {
		paths = append(paths, f.Path)
	}
	is.Equal(strings.Join(paths, " "), "scan.pdf#page=1 scan.pdf#page=2")
}
