package office

import (
	"strings"

	"journeyman/runner/tool/office/block"
)

// A shape is a text box, a picture, a table, a chart or a diagram on a slide.
type shape struct {
	block.Blocks
	place    block.Place
	standard bool   // a place for a standard content, such as the title
	kind     string // of that content, "" for any
	index    string // of that place
	hidden   bool
	picture  picture
	rows     []*block.Grid // open tables
	cell     *block.Cell   // the open cell, nil outside of tables
	counts   [listLevels]int
	schemes  [listLevels]string // of the numbers in counts, "" if the numbers begin again
}

// isTitle reports whether a shape is the title of its slide.
func (s *shape) isTitle() bool { return s.standard && (s.kind == "title" || s.kind == "ctrTitle") }

// text returns the text of a shape. The slide's number is left out, because the line above the slide says it.
func (s *shape) text() string {
	text := strings.TrimSpace(s.Out.String())
	switch {
	case s.standard && s.kind == "sldNum", s.hidden, text == "":
		return ""
	case s.isTitle():
		return "# " + strings.Join(strings.Fields(text), " ") + "\n\n"
	}
	return text + "\n\n"
}

// placeIn returns the place that a layout gives to a shape.
func (s *shape) placeIn(places map[string]block.Bounds) (block.Bounds, bool) {
	if b, ok := places["index "+s.index]; ok && s.index != "" {
		return b, true
	}
	b, ok := places["kind "+s.kind]
	return b, ok
}

// A slideReader reads the shapes of a slide, of its layout or of its notes.
type slideReader struct {
	d       *document
	related map[string]relation
	places  bool // only the places of shapes are needed
	hidden  bool
	shapes  []*shape
	now     *shape // nil between shapes
	groups  []*shapeGroup
	inGroup bool // the places are those of the innermost group
	skip    int  // open elements inside an omitted part
	size    int
	para    slideParagraph
	math    equation
	err     error
}

// A slideParagraph is the current paragraph of a shape.
type slideParagraph struct {
	text   []byte
	level  int
	bullet string // the mark, "" if there is none of its own
	scheme string // of its number
	start  int    // first number
	none   bool   // it has no mark
	font   string // of its bullet
	inText bool
	run    string // font of the current text
	link   string // target of the current text
	from   int    // where the current text begins
}

// A shapeGroup places the shapes of a group.
type shapeGroup struct{ outer, inner block.Bounds }

// place returns the place on the slide for a place in the group.
func (g shapeGroup) place(b block.Bounds) block.Bounds {
	if g.inner.Width <= 0 || g.inner.Height <= 0 {
		return b
	}
	across := float64(g.outer.Width) / float64(g.inner.Width)
	down := float64(g.outer.Height) / float64(g.inner.Height)
	return block.Bounds{X: g.outer.X + int64(float64(b.X-g.inner.X)*across), Y: g.outer.Y + int64(float64(b.Y-g.inner.Y)*down),
		Width: int64(float64(b.Width) * across), Height: int64(float64(b.Height) * down)}
}

// inOrder returns shapes in the order of reading.
func inOrder(shapes []*shape) []*shape {
	places := make([]block.Place, len(shapes))
	for i, s := range shapes {
		places[i] = s.place
		places[i].Title = s.isTitle()
	}
	ordered := make([]*shape, len(shapes))
	for i, at := range block.Order(places) {
		ordered[i] = shapes[at]
	}
	return ordered
}
