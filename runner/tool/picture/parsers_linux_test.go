//go:build !race

// The race detector makes every parser slower by another factor.

package picture

import (
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times := growthtest.Times
	growthtest.Check(t, []growthtest.Parser{{
		Name: "picture", Fuzz: []string{"FuzzFit"},
		Read: func(in []byte) {
			defer func() { _ = recover() }() // the confined process would end
			_, _ = Fit(in, Room)
		}, Shapes: map[string]growthtest.Shape{
			"png":         times("\x89PNG\r\n\x1a\n", "\x00\x00\x00\x00tEXtAAAA", ""),
			"jpeg":        times("\xff\xd8", "\xff\xe0\x00\x02", ""),
			"exif":        times("\xff\xd8", "\xff\xe1\x00\x08Exif\x00\x00", ""),
			"fill":        times("\xff\xd8", "\xff", ""),
			"tables":      times("\xff\xd8", "\xff\xdb\x00\x02", ""),
			"gif":         times("GIF89a\x01\x00\x01\x00\x00\x00\x00", "\x21\xfe\x00", ""),
			"gif frames":  times("GIF89a\x01\x00\x01\x00\x00\x00\x00", "\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00", ""),
			"webp":        times("RIFFxxxxWEBP", "VP8X\x00\x00\x00\x00", ""),
			"webp frames": times("RIFFxxxxWEBPVP8X\x0a\x00\x00\x00\x02"+strings.Repeat("\x00", 9), "ANIM\x00\x00\x00\x00", ""),
			"tiff":        times("II*\x00\x08\x00\x00\x00\xff\xff", "\x12\x01\x04\x00\x01\x00\x00\x00\x01\x00\x00\x00", ""),
			"bmp":         times("BM", "\x28\x00\x00\x00", ""),
		}}})
}
