//go:build !race

// The race detector makes every parser slower by another factor.

package thinking

import (
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly reads answers of models.
func TestParsersGrowSlowly(t *testing.T) {
	times := growthtest.Times
	shapes := map[string]growthtest.Shape{
		"letters": times("", "a", ""), "openings": times("", "<think>", ""), "closings": times("", "</think>", ""),
		"mentions": times("", "a </think> b ", ""), "half marks": times("", "</thin", ""), "spaces": times("<think>", " ", ""),
		"spaces after a mention": times("a </think>", " ", ""), "fences": times("", "```\n</think>\n", ""), "ends": times("", "<|return|>", ""),
		"quoted": times("", "`</think>` ", ""), "words": times("<think>", "word ", "")}
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "thinking in a text", Fuzz: []string{"FuzzSplit"},
			Read: func(in []byte) { Split(string(in), false, false) }, Shapes: shapes},
		{
			Name: "thinking in pieces of a text",
			Read: func(in []byte) {
				var s Splitter
				for len(in) > 0 {
					n := min(3, len(in))
					s.Write(string(in[:n]))
					in = in[n:]
				}
				s.Close(false)
			}, Shapes: shapes},
	})
}
