package tool

import (
	"strconv"
	"strings"
)

// A cssColor is one that a mail names. A color that cannot be read is only equal to itself.
type cssColor struct {
	r, g, b int
	alpha   float64
	name    string // of a color that cannot be read, such as a function
	unknown bool   // may be any color
}

var (
	black        = cssColor{alpha: 1}
	white        = cssColor{r: 255, g: 255, b: 255, alpha: 1}
	blue         = cssColor{b: 238, alpha: 1}
	unknownColor = cssColor{alpha: 1, unknown: true}
)

func rgb(r, g, b int) cssColor { return cssColor{r: r, g: g, b: b, alpha: 1} }

// similar is the difference, in each of red, green and blue, that nobody sees between a text and its background.
const similar = 10

// same reports whether text in the color c cannot be seen on a background.
func (c cssColor) same(background cssColor) bool {
	if c.unknown || background.unknown || c.name != background.name {
		return false
	}
	near := func(a, b int) bool { return max(a-b, b-a) <= similar }
	return near(c.r, background.r) && near(c.g, background.g) && near(c.b, background.b)
}

func (c cssColor) transparent() bool { return c.alpha < 0.05 }

// names has the colors that mails name by a word. The others are only compared with themselves.
var names = map[string]cssColor{"white": white, "black": black, "transparent": {}, "snow": rgb(255, 250, 250),
	"ivory": rgb(255, 255, 240), "whitesmoke": rgb(245, 245, 245), "ghostwhite": rgb(248, 248, 255),
	"floralwhite": rgb(255, 250, 240), "silver": rgb(192, 192, 192), "gray": rgb(128, 128, 128),
	"grey": rgb(128, 128, 128), "lightgray": rgb(211, 211, 211), "lightgrey": rgb(211, 211, 211),
	"red": rgb(255, 0, 0), "green": rgb(0, 128, 0), "blue": rgb(0, 0, 255),
	"yellow": rgb(255, 255, 0), "navy": rgb(0, 0, 128), "windowtext": black, "window": white}

// readColor returns the color that a value names.
func readColor(value string) cssColor {
	value = strings.ToLower(strings.TrimSpace(value))
	if c, ok := names[value]; ok {
		return c
	}
	switch value {
	case "currentcolor", "inherit", "initial", "unset", "revert", "auto":
		return unknownColor
	}
	if digits, is := strings.CutPrefix(value, "#"); is {
		return hexColor(digits, value)
	}
	if len(value) == 6 { // old programs leave the sign out
		if c := hexColor(value, ""); !c.unknown && c.name == "" {
			return c
		}
	}
	function, list, found := strings.Cut(value, "(")
	list, _, closed := strings.Cut(list, ")")
	if !found || !closed {
		return cssColor{alpha: 1, name: value}
	}
	parts := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '/' || r == ' ' })
	if len(parts) < 3 {
		return cssColor{alpha: 1, name: value, unknown: function == "var"}
	}
	alpha := 1.0
	if len(parts) > 3 {
		alpha = alphaOf(parts[3])
	}
	switch strings.TrimSpace(function) {
	case "rgb", "rgba":
		return cssColor{r: channel(parts[0]), g: channel(parts[1]), b: channel(parts[2]), alpha: alpha}
	case "hsl", "hsla":
		switch parts[2] {
		case "100%":
			return cssColor{r: 255, g: 255, b: 255, alpha: alpha}
		case "0%":
			return cssColor{alpha: alpha}
		}
	}
	return cssColor{alpha: alpha, name: value}
}

// alphaOf returns how opaque a color is: 0 for a transparent one, 1 if the value cannot be read.
func alphaOf(value string) float64 {
	number, unit := cutNumber(value)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 1
	}
	if unit == "%" {
		v /= 100
	}
	return v
}

// hexColor returns the color of 3, 4, 6 or 8 digits. Other texts are a color of the given name.
func hexColor(digits, name string) cssColor {
	if len(digits) == 3 || len(digits) == 4 {
		var b strings.Builder
		for _, d := range digits {
			b.WriteString(string(d) + string(d))
		}
		digits = b.String()
	}
	alpha := 1.0
	if len(digits) == 8 {
		if v, err := strconv.ParseUint(digits[6:], 16, 8); err == nil {
			alpha = float64(v) / 255
		}
		digits = digits[:6]
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != 6 {
		return cssColor{alpha: 1, name: name, unknown: name == ""}
	}
	return cssColor{r: int(v >> 16), g: int(v >> 8 & 255), b: int(v & 255), alpha: alpha}
}

// channel returns one of red, green and blue.
func channel(value string) int {
	number, unit := cutNumber(value)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	if unit == "%" {
		v = v * 255 / 100
	}
	return int(min(max(v, 0), 255))
}

// readBackground returns the color of a background. It is unknown if a picture or a gradient covers it.
func readBackground(value string) cssColor {
	value = strings.ToLower(strings.TrimSpace(value))
	if strings.Contains(value, "url(") || strings.Contains(value, "gradient") || strings.Contains(value, "var(") {
		return unknownColor
	}
	c := readColor(value)
	if c.name == "" || !strings.ContainsAny(value, " ") {
		if value == "none" || value == "inherit" {
			return cssColor{}
		}
		return c
	}
	for word := range strings.FieldsSeq(value) { // such as "#fff none repeat scroll 0 0"
		if c := readColor(word); c.name == "" && !c.unknown {
			return c
		}
	}
	return unknownColor
}
