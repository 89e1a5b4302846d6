//go:build !race

// The race detector makes every parser slower by another factor.

package charset

import (
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	growthtest.Check(t, []growthtest.Parser{{
		Name: "text of unknown encoding", Fuzz: []string{"FuzzGuess"},
		Read: func(in []byte) {
			Text(in, "")
			GuessNames(in)
		}, Shapes: map[string]growthtest.Shape{
			"one letter": times("", "\xe9", ""), "two bytes": times("", "\x82\xa0", ""), "words": times("", "gr\xfc\xdfe ", ""),
			"lines": times("", "\xe9\n", ""), "late": times("", "a\n", "\xe9"), "escapes": times("\xe9", "\x1b$B", ""),
			"wide": times("", "a\x00", ""), "numbers": numbered("\xe9", "%d\n", "")}}})
}
