//go:build !race

// The race detector makes every parser slower by another factor.

package workspace

import (
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	paths := map[string]growthtest.Shape{
		"folders": growthtest.Times("a", "/a", ""), "dots": growthtest.Times("a", "/..", ""), "slashes": growthtest.Times("a", "/", "b"),
		"letters": growthtest.Times("", "a", ""), "marks": growthtest.Times("a", "\u0301", ""), "wrong bytes": growthtest.Times("", "\xff", ""),
		"labels": growthtest.Times("a", ".a", ""), "spaces": growthtest.Times("a", " ", "")}
	growthtest.Check(t, []growthtest.Parser{
		{Name: "path", Fuzz: []string{"FuzzSafePath"}, Read: func(in []byte) { _, _ = SafePath(string(in)) }, Shapes: paths},
		{Name: "name of a file", Fuzz: []string{"FuzzPlaceName"}, Read: func(in []byte) { PlaceName(string(in)) }, Shapes: paths},
	})
}
