//go:build !race

// The race detector makes every parser slower by another factor.

package offline

import (
	"testing"

	"journeyman/runner/model"
	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly gives instructions and documents to the stand-in for a model. Instructions have 256 KiB at
// most.
func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	const most = 256 << 10
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "script", Fuzz: []string{"FuzzScript"}, Most: most, Read: func(in []byte) { _, _ = parseScript(string(in)) },
			Shapes: map[string]growthtest.Shape{
				"says": times("", "say a\n", ""), "repeats": times("", "repeat 9\n", "say x"), "blank lines": times("", "\n", ""),
				"long line": times("say ", "{{", "")}},
		{
			Name: "fence", Fuzz: []string{"FuzzFence"}, Most: most, Read: func(in []byte) { cutScript(string(in)) },
			Shapes: map[string]growthtest.Shape{
				"fences": times("", "```offline\n", ""), "others": times("", "```\n", ""), "marks": times("", "`", "")}},
		{
			Name: "sentences", Fuzz: []string{"FuzzSummary"}, Most: most, Read: func(in []byte) { pickSentences(string(in), 5) },
			Shapes: map[string]growthtest.Shape{
				"sentences": numbered("", "Word %d is here. ", ""), "brackets": times("", "[", ""), "links": times("", "[a](", ""),
				"dots": times("", ".", ""), "less": times("", "<", ""), "quotes": times("", ">", " x")}},
		{
			Name: "instruction", Fuzz: []string{"FuzzPlain"}, Most: most,
			Read: func(in []byte) {
				turn := readTurn(&model.Request{Messages: []model.Message{user(string(in))}, Tools: offered(everyTool...)})
				turn.plain()
			}, Shapes: map[string]growthtest.Shape{
				"names": times("", "a.md ", ""), "quotes": times("", "\"", ""), "addresses": times("", "http://", ""), "to": times("", "to ", ""),
				"backquotes": times("", "`", ""), "letters": times("", "a", "")}},
		{
			Name: "values of a text", Fuzz: []string{"FuzzValue"}, Most: most,
			Read: func(in []byte) {
				schema := []byte(object(`"a":{"type":"string"},"n":{"type":"number"},"l":{"type":"array","items":{"type":"string"}}`))
				(&turn{req: &model.Request{OutputSchema: schema}, input: string(in)}).structured(string(in))
			}, Shapes: map[string]growthtest.Shape{
				"names": times("", "a: ", ""), "items": times("", "- b\n", ""), "digits": times("", "1", ""), "spaces": times("a", " ", ""),
				"letters": times("", "a", "")}},
	})
}
