//go:build !race

// The race detector makes every parser slower by another factor.

package textcall

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

// TestParsersGrowSlowly reads answers of models.
func TestParsersGrowSlowly(t *testing.T) {
	times := growthtest.Times
	shapes := map[string]growthtest.Shape{
		"letters": times("", "a", ""), "marks": times("", "<tool_call>", ""), "objects": times("", "{", ""), "lists": times("", "[", ""),
		"lines of marks": times("", "a\n<tool_call>\n", ""), "lines of JSON": times("", "a\n{\n", ""), "names": times("<tool_call>", "f(", ""),
		"calls":      times("", `<tool_call>{"name":"f","arguments":{}}</tool_call>`, ""),
		"parameters": times("<function=f>", "<parameter=a>b", ""), "open calls": times("", "<function=f>", ""),
		"pairs": times("<tool_call>f", "<arg_key>a</arg_key><arg_value>", ""), "quotes": times("[f(a=", "'", ""),
		"triple quotes": times("[f(a=[", `''' `, ""), "escapes": times("[f(a='", `\n`, ""), "words": times("", "word ", ""), "fences": times("", "```\n", ""),
		"marks in code": times("`", "<tool_call>", ""), "fences of calls": times("", "```tool_call\n{\n```\n", ""),
		"objects in a line": func(n int) string { return "a\n" + strings.Repeat(" ", n/2) + strings.Repeat("{", n/2) },
		"namespaces":        times("<tool_call>{\"name\":\"", "to=", "f:0\"}"), "long names": times("[f", ":f", "(a=1)]"),
		"elements": times("<f>", "<a>", ""), "pairs of elements": times("<f>", "<a></a>", "</f>")}
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "calls in a text", Fuzz: []string{"FuzzFind"},
			Read: func(in []byte) {
				Find(string(in), []Tool{{Name: "f"}})
			}, Shapes: shapes},
		{
			Name: "a text that grows", Fuzz: []string{"FuzzKeeper"},
			Read: func(in []byte) {
				var k Keeper
				for n := 0; n < len(in); n += 1 + len(in)/64 {
					k.Shown(string(in[:n]))
				}
				k.Shown(string(in))
			}, Shapes: shapes},
		{
			Name: "a text that grows by bytes", Fuzz: []string{"FuzzKeeper"},
			Read: func(in []byte) {
				k, text := Keeper{}, string(in)
				for n := range text {
					k.Shown(text[:n])
				}
			}, Shapes: map[string]growthtest.Shape{
				"spaces": times("", " ", ""), "lines": times("", "\n", ""), "spaces in a line": times("a\n", " ", ""), "words": times("", "word ", ""),
				"spaces in a fence": times("```\n", " ", ""), "spaces after a fence": times("\n```\n\n", "\n", ""), "ticks": times("", "`", ""),
				"names": times("{", `"name":"a",`, ""), "lines of names": times("", `{"name":"Ada","type":"cat"}`+"\n", ""),
				"spaces in JSON": times("[{", " ", ""), "spaces before a value": times(`{"name": `, " ", ""), "long key": times(`{"`, "a", ""),
				"a long text": times(`{"name":"`, `\"`, ""), "marks": times("", "<tool", ""), "elements": times("", "<a ", "")}},
	})
}
