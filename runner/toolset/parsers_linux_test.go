//go:build !race

// The race detector makes every parser slower by another factor.

package toolset

import (
	"encoding/json"
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly reads outputs of tools.
func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	hidden := Secrets{{Name: "A", Value: "aaaaaaaaaaaaaaab"}, {Name: "B", Value: "1234567890"}, {Name: "C",
		Value: "x y-z_longer.value/with=signs"}}
	outputs := growthtest.JSON()
	for name, shape := range map[string]growthtest.Shape{
		"letters": times("", "a", ""), "digits": times("", "61", ""), "spaced": times("", "a ", ""), "base64": times("",
			"YWFhYWFh", ""),
		"values": times("", "1234567890", ""), "escapes": times("", `\u0061`, ""), "percent": times("", "%61",
			""), "words": numbered("", "w%d ", "")} {
		outputs["text of "+name] = func(n int) string { return `"` + shape(n) + `"` }
	}
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "values of secrets", Fuzz: []string{"FuzzScrub"},
			Read: func(in []byte) { hidden.Scrub(json.RawMessage(in)) }, Shapes: outputs},
		{
			Name: "values in a text",
			Read: func(in []byte) { hidden.ScrubText(string(in)) }, Shapes: outputs},
	})
}
