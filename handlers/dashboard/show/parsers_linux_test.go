//go:build !race

// The race detector makes every parser slower by another factor.

package show

import (
	"encoding/json"
	"testing"

	"journeyman/handlers/dashboard/text"
	"journeyman/store/growthtest"
)

// parsers returns the readers of what pages show. The server parses it itself: Markdown that is long or deep, long
// code and long differences are shown as plain text.
func parsers() []growthtest.Parser {
	times, numbered := growthtest.Times, growthtest.Numbered
	p := Prose{text.English()}
	return []growthtest.Parser{
		{
			Name: "Markdown", Fuzz: []string{"FuzzMarkdown"}, Most: 32 << 10, // the limit of runner.CheapMarkdown
			Read: func(in []byte) { p.HTML(string(in)); p.Blocks(string(in), true) }, Shapes: map[string]growthtest.Shape{
				"stars":       times("", "*a **b ", ""),
				"brackets":    times("", "[", ""),
				"links":       times("", "[a](", ""),
				"pictures":    times("", "![a](b) ", ""),
				"backquotes":  numbered("", "`%d``", ""),
				"quotes":      times("", ">>>>>>>>>>>>>>>>>>>> x\n", ""),
				"lists":       times("", "- - - - - - - - - - x\n", ""),
				"tables":      times("|a|\n|-|\n", "|", "\n"),
				"references":  numbered("", "[%[1]d]: /x\n[%[1]d]\n", ""),
				"less":        times("", "<", ""),
				"tags":        times("", "<a href=x>", ""),
				"entities":    times("", "&amp;", ""),
				"addresses":   times("", "http://a.b/", ""),
				"strikes":     times("", "~~a ~", ""),
				"fences":      times("", "```go\nx\n", ""),
				"paragraphs":  times("", "a\n\n", ""),
				"underscores": times("", "a_", "")}},
		{
			Name: "long Markdown",
			Read: func(in []byte) { p.HTML(string(in)); p.Blocks(string(in), true) }, Shapes: map[string]growthtest.Shape{
				"paragraphs": times("", "a\n\n", ""), "quotes": times("", ">", "x"), "stars": times("", "*a **b ", "")}},
		{
			Name: "colours of code", Fuzz: []string{"FuzzHighlight"}, Most: maxHighlighted,
			Read: func(in []byte) {
				for _, lang := range []string{"go", "python", "html", "json", "sql", "sh"} {
					Highlight(lang, string(in))
				}
			}, Shapes: map[string]growthtest.Shape{
				"quotes": times("", `"`, ""), "comments": times("", "/*", ""), "words": numbered("", "w%d ", ""), "tags": times("", "<a b", ""),
				"escapes": times(`"`, `\"`, ""), "digits": times("", "1", ""), "signs": times("", "$", ""), "letters": times("", "a", ""),
				"page comments": times("", "<!--", ""), "backquotes": times("", "`", "")}},
		{
			Name: "table", Fuzz: []string{"FuzzReadTable"},
			Read: func(in []byte) { ReadTable(string(in)) }, Shapes: map[string]growthtest.Shape{
				"rows": times("", "a,b\n", ""), "commas": times("", ",", ""), "quotes": times("", `"`, ""), "open quote": times(`"`, "a\n", ""),
				"line ends": times("", "\r\n", "")}},
		{
			Name: "difference", Fuzz: []string{"FuzzDiff"},
			Read: func(in []byte) { ParseDiff(string(in), 4000); DiffOf(string(in), "x\n"+string(in), 4000) },
			Shapes: map[string]growthtest.Shape{
				"hunks": times("", "@@ -1 +1 @@\n-a\n+b\n", ""), "rows": times("@@ -1 +1 @@\n", "-a\n", ""),
				"long rows": times("@@ -1 +1 @@\n-", "a b ", "\n+x"), "lines": numbered("", "%d\n", "")}},
		{
			Name: "value", Fuzz: []string{"FuzzExcerpts"},
			Read: func(in []byte) { _ = ExcerptOf(string(in), 1000); _ = JSON(json.RawMessage(in)) }, Shapes: growthtest.JSON()},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
