//go:build !race

// The race detector makes every parser slower by another factor.

package command

import (
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly reads the configuration of the operator.
func TestParsersGrowSlowly(t *testing.T) {
	growthtest.Check(t, []growthtest.Parser{{
		Name: "configuration file", Fuzz: []string{"FuzzParseConfig"}, Most: 32 << 10,
		Read: func(in []byte) { _, _ = parseConfig(in) }, Shapes: map[string]growthtest.Shape{
			"entries": growthtest.Numbered("", "a%d: 1\n", ""), "items": growthtest.Times("a:\n", "  - 1\n", ""),
			"comments": growthtest.Times("", "# a\n", "a: 1\n"), "long": growthtest.Times("a: ", "b", "\n")}}})
}
