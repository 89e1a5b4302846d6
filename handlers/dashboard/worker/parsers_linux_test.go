//go:build !race

// The race detector makes every parser slower by another factor.

package worker

import (
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "schema field", Fuzz: []string{"FuzzParseSchema"}, Most: 256 << 10,
			Read: func(in []byte) {
				if _, err := parseSchema(string(in)); err == nil {
					_ = checkSchemaText(string(in))
				}
			}, Shapes: map[string]growthtest.Shape{
				"nested": nested("", `{"not":`, "{}", "}"), "properties": numbered(`{"properties":{"a":{}`, `,"k%d":{}`, "}}"),
				"lines": times("{", "\n", "x")}},
	})
}
