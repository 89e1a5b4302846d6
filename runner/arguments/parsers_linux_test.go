//go:build !race

// The race detector makes every parser slower by another factor.

package arguments_test

import (
	"encoding/json"
	"testing"

	"journeyman/runner/arguments"
	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	shapes := growthtest.JSON()
	shapes["commas"] = growthtest.Times(`{"a":[`, "1, ", "]}")
	shapes["commas and spaces"] = growthtest.Times(`{"a":[1`, ",        ", "]}")
	shapes["spaces"] = growthtest.Times(`{"a":[1,`, " ", "],}")
	shapes["marks"] = growthtest.Times(`{`, `'a':'b',`, "}")
	shapes["words"] = growthtest.Times(`{`, `a:True,`, "}")
	shapes["one word"] = growthtest.Times(`{`, `a`, ":1}")
	shapes["fences"] = growthtest.Times("", "```\n", "")
	shapes["encoded"] = growthtest.Times(`"`, `\"`, `"`)
	shapes["patterns"] = growthtest.Times(`{"a":"`, `\d`, `"}`)
	shapes["raw breaks"] = growthtest.Times(`{"a":"`, "\n", `"}`)
	schema := json.RawMessage(`{"properties":{"a":{"type":"array","items":{"type":"integer"}},"s":{"type":"string"}}}`)
	growthtest.Check(t, []growthtest.Parser{{Name: "arguments", Fuzz: []string{"FuzzObject"}, Shapes: shapes,
		Read: func(in []byte) {
			if object, err := arguments.Object(in); err == nil {
				arguments.Fit(schema, object)
			}
		}}})
}
