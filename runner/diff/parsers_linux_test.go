//go:build !race

// The race detector makes every parser slower by another factor.

package diff

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	growthtest.Check(t, []growthtest.Parser{{
		Name: "diff", Most: 128 << 10,
		Read: func(in []byte) {
			lines := strings.Split(string(in), "\n")
			Lines(lines, append([]string{"x"}, lines...))
			Lines(lines, strings.Split(strings.ReplaceAll(string(in), "1", "2"), "\n"))
		}, Shapes: map[string]growthtest.Shape{
			"lines":           growthtest.Times("", "a\n", ""),
			"different lines": growthtest.Numbered("", "%d\n", ""),
			"every second":    growthtest.Times("", "1\n\n", ""),
			"long line":       growthtest.Times("", "a", "")}}})
}
