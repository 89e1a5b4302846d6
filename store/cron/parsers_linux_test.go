//go:build !race

// The race detector makes every parser slower by another factor.

package cron

import (
	"testing"
	"time"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	growthtest.Check(t, []growthtest.Parser{{
		Name: "cron", Fuzz: []string{"FuzzParseCron"},
		Read: func(in []byte) {
			if c, err := Parse(string(in), time.UTC); err == nil {
				c.Next(time.Unix(0, 0))
			}
		}, Shapes: map[string]growthtest.Shape{
			"list":   growthtest.Times("0", ",0", " * * * *"),
			"ranges": growthtest.Times("0-59/1", ",0-59", " * * * *"),
			"zone":   growthtest.Times("CRON_TZ=", "a/", " * * * * *"),
			"spaces": growthtest.Times("0", " ", "* * * *")}}})
}
