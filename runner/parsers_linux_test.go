//go:build !race

// The race detector makes every parser slower by another factor.

package runner

import (
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly reads answers of models.
func TestParsersGrowSlowly(t *testing.T) {
	times := growthtest.Times
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "JSON in an answer",
			Read: func(in []byte) { jsonText(string(in)); _, _ = parseDescription(string(in)) }, Shapes: map[string]growthtest.Shape{
				"fences": times("", "```\n", ""), "braces": times("", "{", ""), "lines": times("", "a\n", ""), "brackets": times("", "}{", "")}},
		{
			Name: "limits of Markdown",
			Read: func(in []byte) { CheapMarkdown(string(in)) }, Shapes: map[string]growthtest.Shape{
				"marks": times("", "> ", "x"), "bars": times("|-|\n", "|", ""), "lines": times("", "a\n", "")}},
	})
}
