//go:build !race

// The race detector makes every parser slower by another factor.

package schema

import (
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly compiles schemas of callers and tool servers, and checks values. The server does this
// itself: a schema has a maximum size and depth, and a pattern that the linear engine does not know has a time
// limit.
func TestParsersGrowSlowly(t *testing.T) {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	check := func(schema string) func(in []byte) {
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		return func(in []byte) { _ = s.CheckObject(in) }
	}
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "schema", Fuzz: []string{"FuzzSchema"}, Most: MaxSize,
			Read: func(in []byte) { _, _ = Compile(in); _, _ = CompileForObjects(in) },
			Shapes: map[string]growthtest.Shape{
				"nested":      nested("", `{"not":`, "{}", "}"),
				"properties":  numbered(`{"properties":{"a":{}`, `,"k%d":{}`, "}}"),
				"patterns":    numbered(`{"patternProperties":{"a":{}`, `,"k%d":{}`, "}}"),
				"pattern":     times(`{"pattern":"`, "(a|b)*", `"}`),
				"groups":      nested(`{"pattern":"`, "(?=a", "", ")"),
				"enum":        numbered(`{"enum":[0`, `,"%d"`, "]}"),
				"equal enum":  times(`{"enum":[0`, `,[1]`, "]}"),
				"required":    numbered(`{"required":["a"`, `,"%d"`, "]}"),
				"any":         times(`{"anyOf":[{}`, `,{}`, "]}"),
				"definitions": numbered(`{"definitions":{"a":{}`, `,"d%d":{"$ref":"#/definitions/a"}`, "}}"),
				"chain": func(n int) string {
					return numbered(`{"definitions":{"a":{}`, `,"d%[1]d":{"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}]}`, "}}")(n)
				},
				"ids": numbered(`{"definitions":{"a":{}`, `,"d%[1]d":{"$id":"x%[1]d"}`, "}}")}},
		{
			Name: "schema of a tool", Most: MaxSize,
			Read: func(in []byte) { _ = CheckForeign(in, MaxDepth) }, Shapes: growthtest.JSON()},
		{
			Name: "value",
			Read: check(`{"type":"object","uniqueItems":true,"propertyNames":{"pattern":"^[a-z]"},
				"additionalProperties":{"uniqueItems":true,"anyOf":[{"type":"array"},{"type":"object"}]}}`),
			Shapes: growthtest.Within(`{"a":`, "}", growthtest.JSON())},
		{
			Name: "different items", Most: 256 << 10,
			Read: check(`{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}`),
			Shapes: growthtest.Within(`{"a":[0`, "]}", map[string]growthtest.Shape{
				"numbers": numbered("", ",%d", ""), "texts": numbered("", `,"%d"`, ""), "objects": numbered("", `,{"a":%d}`, "")})},
		{
			Name: "text of a pattern", Most: 256 << 10,
			Read: check(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=a)(a+)+$"}}}`),
			Shapes: growthtest.Within(`{"a":"`, `"}`, map[string]growthtest.Shape{
				"repeated": times("", "a", "b")})},
	})
}
