package opendocument

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/block"
)

// A shape is a text box, a picture or a table on a slide.
type shape struct {
	place block.Place
	text  string
}

// shapeText returns the texts of the shapes in the order of reading.
func (p *page) shapeText() string {
	places := make([]block.Place, len(p.shapes))
	for i, s := range p.shapes {
		places[i] = s.place
	}
	var b strings.Builder
	for _, i := range block.Order(places) {
		text := strings.TrimSpace(p.shapes[i].text)
		if text == "" {
			continue
		}
		if places[i].Title {
			text = "# " + strings.Join(strings.Fields(text), " ")
		}
		b.WriteString(text + "\n\n")
	}
	return b.String()
}

// placeOf returns the place of a shape. A shape that is turned has no simple place.
func placeOf(attr archive.Attributes) block.Place {
	p := block.Place{Title: attr.Get("class") == "title"}
	x, okX := length(attr.Get("x"))
	y, okY := length(attr.Get("y"))
	width, okWidth := length(attr.Get("width"))
	height, okHeight := length(attr.Get("height"))
	p.Known = okX && okY && okWidth && okHeight && attr.Get("transform") == ""
	p.Bounds = block.Bounds{X: x, Y: y, Width: width, Height: height}
	return p
}

// units are the lengths of units in micrometers.
var units = map[string]float64{"cm": 10_000, "mm": 1000, "in": 25_400, "pt": 352.8, "pc": 4233, "px": 264.6}

// length returns a length such as "2.5cm" in micrometers.
func length(text string) (int64, bool) {
	if len(text) < 3 || len(text) > 40 {
		return 0, false
	}
	unit := units[text[len(text)-2:]]
	value, err := strconv.ParseFloat(text[:len(text)-2], 64)
	if err != nil || unit == 0 || value > 1e6 || value < -1e6 {
		return 0, false
	}
	return int64(value * unit), true
}

// isShape reports whether an element is a shape on a slide.
func isShape(name string) bool {
	switch name {
	case "frame", "custom-shape", "rect", "ellipse", "circle", "line", "connector", "polygon", "polyline", "path",
		"regular-polygon", "caption", "measure", "control":
		return true
	}
	return false
}
