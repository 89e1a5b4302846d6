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
	values := growthtest.JSON()
	values["quotes"] = growthtest.Times("[", "'", "]")
	values["triple quotes"] = growthtest.Times("[", "''' ", "]")
	values["open quotes"] = growthtest.Times("[", `"""`, "")
	values["Gemma's quotes"] = growthtest.Times("[", "<escape>", "")
	values["escapes"] = growthtest.Times("['", `\n`, "']")
	values["halves"] = growthtest.Times("['", `\ud83d`, "']")
	values["open calls"] = growthtest.Times("(a=", "(", "")
	values["names"] = growthtest.Times("(", "a=1,", ")")
	values["keys"] = growthtest.Times("{", "a:1,", "}")
	growthtest.Check(t, []growthtest.Parser{{Name: "arguments", Fuzz: []string{"FuzzObject"}, Shapes: shapes,
		Read: func(in []byte) {
			if object, err := arguments.Object(in); err == nil {
				arguments.Fit(schema, object)
			}
		}}, {Name: "values", Fuzz: []string{"FuzzValue"}, Shapes: values,
		Read: func(in []byte) {
			arguments.Value(string(in))
			arguments.Named(string(in))
		}}})
}
