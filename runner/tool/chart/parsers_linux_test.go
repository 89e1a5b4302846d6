//go:build !race

// The race detector makes every parser slower by another factor.

package chart

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/growthtest"
)

// parsers returns the reader of tables with the drawing of the kinds, whose number of values has a limit.
func parsers(t *testing.T) []growthtest.Parser {
	table := func(kind string) func([]byte) {
		return func(in []byte) {
			input, err := json.Marshal(Input{Kind: kind, Format: "png", Table: string(in), Title: "x"})
			is.New(t).NoErr(err)
			_, _ = Write(input)
		}
	}
	times, numbered := growthtest.Times, growthtest.Numbered
	shapes := map[string]growthtest.Shape{
		"rows": numbered("a,b\n", "%d,1\n", ""), "columns": numbered("a", ",%d", "\n"),
		"quotes": times("a,b\n", `"`, ""), "long label": times("a,b\n", "x", ",1\n"),
		"long name": times("a,", "b", "\nx,1\n"), "long number": times("a,b\nx,", "1", "\n"),
		"commas": times("a,b\n", ",", "\n"), "lines": times("a,b\n", "\n", "x,1"), "NUL": times("a,b\n", "\x00", ",1\n")}
	// As many values as a kind can have.
	full := func(kind string) growthtest.Shape {
		return func(n int) string {
			var b strings.Builder
			b.WriteString("label" + strings.Repeat(",漢 series with a long name", maxSeries) + "\n")
			for i := range min(mostLabels[kind]/map[bool]int{true: maxSeries, false: 1}[kind == scatter], n/50) {
				fmt.Fprintf(&b, "%d%s\n", i, strings.Repeat(fmt.Sprintf(",%d", i*7%1000), maxSeries))
			}
			return b.String()
		}
	}
	var all []growthtest.Parser
	for _, kind := range Kinds() {
		p := growthtest.Parser{Name: "chart " + kind, Fuzz: []string{"FuzzWrite"}, Most: 512 << 10, Confined: true,
			Read: table(kind), Shapes: map[string]growthtest.Shape{"full": full(kind)}}
		if kind == lines {
			p.Shapes = shapes
			p.Shapes["full"] = full(kind)
		}
		all = append(all, p)
	}
	return all
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
