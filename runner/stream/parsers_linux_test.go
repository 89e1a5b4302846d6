//go:build !race

// The race detector makes every parser slower by another factor.

package stream

import (
	"testing"

	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/growthtest"
)

// inPieces adds a text to a part in pieces of some bytes.
func inPieces(kind store.PartType) func(in []byte) {
	return func(in []byte) {
		p, g := store.Part{Type: kind}, &partBuilder{}
		for text := string(in); text != ""; {
			n := min(len(text), 64)
			g.add(&p, text[:n])
			text = text[n:]
		}
		g.end(&p)
	}
}

func TestParsersGrowSlowly(t *testing.T) {
	texts := map[string]growthtest.Shape{
		"letters": growthtest.Times("", "a", ""), "wrong bytes": growthtest.Times("", "\xff", ""), "half letters": growthtest.Times("", "\xe2\x82", "")}
	growthtest.Check(t, []growthtest.Parser{
		{Name: "pieces of arguments", Fuzz: []string{"FuzzArguments"}, Read: inPieces(store.PartToolCall), Shapes: growthtest.JSON()},
		{Name: "pieces of a text", Fuzz: []string{"FuzzText"}, Read: inPieces(store.PartText), Shapes: texts},
		{Name: "arguments", Read: func(in []byte) { view.InputText(view.CleanInput(in)) }, Shapes: growthtest.JSON()},
		{
			Name: "position", Fuzz: []string{"FuzzPosition"},
			Read: func(in []byte) { parsePosition(string(in)) }, Shapes: map[string]growthtest.Shape{
				"dots": growthtest.Times("1", ".1", ""), "digits": growthtest.Times("1.", "1", ".1.1"), "marks": growthtest.Times("", "~", "")}},
	})
}
