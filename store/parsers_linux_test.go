//go:build !race

// The race detector makes every parser slower by another factor.

package store_test

import (
	"testing"

	"journeyman/store/gate"
	"journeyman/store/growthtest"
	"journeyman/store/workers"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, numbered := growthtest.Times, growthtest.Numbered
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "tool rules", Read: func(in []byte) { _, _ = workers.ParseToolRules(in) },
			Shapes: growthtest.Within("[", "]", growthtest.JSON())},
		{
			Name: "limit of a disk", Fuzz: []string{"FuzzDiskLimit"},
			Read:   func(in []byte) { _ = new(gate.DiskLimit).UnmarshalText(in) },
			Shapes: map[string]growthtest.Shape{"digits": times("", "1", "GB"), "commas": times("1%", ",1", ""), "letters": times("1", "M", "")}},
		{
			Name: "backup", Fuzz: []string{"FuzzRestore"}, Most: 256 << 10, Shared: true,
			Read: func(in []byte) { _, _ = restoreInto(t, zipped(t, in)) }, Shapes: map[string]growthtest.Shape{
				"zeros": times("", "\x00", ""), "blocks": numbered("", "files/%d\x00", ""), "sparse": func(n int) string { return string(sparseTar(int64(n))) }}},
	})
}
