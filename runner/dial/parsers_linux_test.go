//go:build !race

// The race detector makes every parser slower by another factor.

package dial

import (
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	growthtest.Check(t, []growthtest.Parser{{
		Name: "host", Fuzz: []string{"FuzzCheckHost"}, Read: func(in []byte) { _ = Guard{}.CheckHost(string(in)) },
		Shapes: map[string]growthtest.Shape{
			"folders": growthtest.Times("a", "/a", ""), "dots": growthtest.Times("a", "/..", ""), "slashes": growthtest.Times("a", "/", "b"),
			"letters": growthtest.Times("", "a", ""), "marks": growthtest.Times("a", "\u0301", ""), "wrong bytes": growthtest.Times("", "\xff", ""),
			"labels": growthtest.Times("a", ".a", ""), "spaces": growthtest.Times("a", " ", "")}}})
}
