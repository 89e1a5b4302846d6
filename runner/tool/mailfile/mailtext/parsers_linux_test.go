//go:build !race

// The race detector makes every parser slower by another factor.

package mailtext

import (
	"testing"

	"journeyman/store/growthtest"
)

// parsers returns the readers of fields and texts. They run in the server, and take linear time.
func parsers() []growthtest.Parser {
	times, numbered := growthtest.Times, growthtest.Numbered
	return []growthtest.Parser{
		{
			Name: "parameters", Fuzz: []string{"FuzzParams"},
			Read: func(in []byte) { _, _ = Params(string(in)) }, Shapes: map[string]growthtest.Shape{
				"many":     numbered("text/plain", "; p%d=x", ""),
				"pieces":   numbered("a; p*0=x", "; p*%d*=x", ""),
				"one":      times("a", "; a=b", ""),
				"quotes":   times(`a; b="`, `\"`, ""),
				"signs":    times("a", ";=", ""),
				"encoded":  times("a; b*=utf-8''", "%41", ""),
				"charsets": times("a; b*=", "'", "x")}},
		{
			Name: "encoded words", Fuzz: []string{"FuzzWords"},
			Read: func(in []byte) {
				Words(string(in))
				Decode(in, "iso-8859-1")
				Decode(in, "gb2312")
				Decode(in, "utf-7")
			},
			Shapes: map[string]growthtest.Shape{
				"words": times("", "=?utf-8?q?=C3?= ", ""), "labels": numbered("", "=?x-%d?q?a?= ", ""),
				"beginnings": times("", "=?", ""), "open words": times("", "=?a?q?", ""), "long word": times("=?utf-8?q?", "=C3", "?="),
				"long base64": times("=?utf-8?b?", "w7w", "?="), "spaces": times("=?utf-8?q?a?=", " ", "=?utf-8?q?a?="),
				"bytes": times("", "\xfc", ""), "shifts": times("", "+", ""), "open shift": times("+", "AP", "")}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
