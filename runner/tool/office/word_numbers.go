package office

import (
	"strconv"
	"strings"

	"journeyman/runner/tool/office/mark"
)

// listLevels is the number of levels of a list (ECMA-376).
const listLevels = 9

// maxMark is the maximum number of bytes in the pattern of a mark.
const maxMark = 200

// A listLevel describes the marks of one level of a list.
type listLevel struct {
	start   int
	format  string // such as "decimal"
	pattern string // such as "%1.%2."
	font    string
	style   string // id of the paragraph style that has this level
	restart int    // its numbers begin again after a paragraph of this level, from 1; 0 for never
	legal   bool   // all numbers in the pattern are decimals
}

// A listShape is an abstract numbering: the marks of all levels of a list. Lists with the same shape share
// their numbers.
type listShape struct {
	levels [listLevels]listLevel
	linked string // id of the style that has the levels, "" if they are here
	value  [listLevels]int
	used   [listLevels]bool // value has a number
}

// A list is a numbering to which paragraphs refer.
type list struct {
	shape   string
	levels  map[int]*listLevel // levels that differ from the shape
	starts  map[int]int        // first numbers that differ from the shape
	started [listLevels]bool   // the list has had an item of this level
}

// numbering computes the marks of list items, in the order of the paragraphs.
type numbering struct {
	shapes map[string]*listShape
	lists  map[string]*list
	styles styles
}

// shape returns the list with an id and its shape, nil if there is none.
func (n *numbering) shape(id string) (*list, *listShape) {
	l := n.lists[id]
	if l == nil {
		return nil, nil
	}
	s := n.shapes[l.shape]
	if s == nil || s.linked == "" {
		return l, s
	}
	// The style names another list with the same levels.
	linked, _, _ := n.styles.list(s.linked)
	if other := n.lists[linked]; other != nil {
		return l, n.shapes[other.shape]
	}
	return l, s
}

// level returns the level that a list has for a paragraph style, or otherwise.
func (n *numbering) level(id, style string, otherwise int) int {
	_, shape := n.shape(id)
	if shape == nil || style == "" {
		return otherwise
	}
	for i, l := range shape.levels {
		if l.style == style {
			return i
		}
	}
	return otherwise
}

// next returns the mark of the next item of a list, such as "2.1." or "-".
func (n *numbering) next(id string, level int) string {
	l, shape := n.shape(id)
	if shape == nil {
		return "-"
	}
	at := func(i int) *listLevel {
		if own := l.levels[i]; own != nil {
			return own
		}
		return &shape.levels[i]
	}
	shape.count(l, at, level)
	now := at(level)
	pattern := now.pattern[:min(len(now.pattern), maxMark)]
	if now.format == "bullet" {
		return mark.Bullet(now.font, pattern)
	}
	for i := range listLevels {
		verb := "%" + strconv.Itoa(i+1)
		if !strings.Contains(pattern, verb) {
			continue
		}
		value, format := shape.value[i], at(i).format
		if !shape.used[i] {
			value = at(i).start
		}
		if now.legal {
			format = "decimal"
		}
		pattern = strings.ReplaceAll(pattern, verb, mark.Number(value, format))
	}
	return strings.TrimSpace(mark.Text(now.font, pattern))
}

// count counts an item of a level, and lets the numbers of deeper levels begin again.
func (s *listShape) count(l *list, at func(int) *listLevel, level int) {
	start, own := l.starts[level]
	if !own {
		start = at(level).start
	}
	switch {
	case own && !l.started[level], !s.used[level]:
		s.value[level] = start
		l.started[level] = true // a list with its own first number restarts only once
	default:
		s.value[level]++
	}
	s.used[level] = true
	for deeper := level + 1; deeper < listLevels; deeper++ {
		if level < at(deeper).restart {
			s.used[deeper] = false
		}
	}
}

// A numberingReader reads the lists of a document.
type numberingReader struct {
	ignoreText
	all   *numbering
	shape *listShape
	list  *list
	level *listLevel
	at    int // index of the level in list
}

func (v *numberingReader) start(name string, attr attributes) error {
	switch name {
	case "abstractNum":
		v.shape = &listShape{}
		for i := range v.shape.levels {
			v.shape.levels[i] = listLevel{start: 1, format: "decimal", restart: i}
		}
		v.all.shapes[attr.get("abstractNumId")] = v.shape
	case "num":
		v.shape, v.list = nil, &list{levels: map[int]*listLevel{}, starts: map[int]int{}}
		v.all.lists[attr.get("numId")] = v.list
	case "lvl", "lvlOverride":
		v.openLevel(name, levelOf(attr.get("ilvl"), -1))
	default:
		v.property(name, attr)
	}
	return nil
}

// openLevel begins a level of a shape, or a level of a list that differs from its shape.
func (v *numberingReader) openLevel(name string, at int) {
	v.level, v.at = nil, at
	switch {
	case at < 0, name == "lvlOverride":
	case v.shape != nil:
		v.level = &v.shape.levels[at]
	case v.list != nil:
		v.level = &listLevel{start: 1, format: "decimal", restart: at}
		v.list.levels[at] = v.level
	}
}

// property reads a property of a level, a shape or a list.
func (v *numberingReader) property(name string, attr attributes) {
	value := attr.get("val")
	number, _ := strconv.Atoi(value) // the largest number stands for one that is too large
	switch {
	case name == "numStyleLink" && v.shape != nil:
		v.shape.linked = value
	case name == "abstractNumId" && v.list != nil:
		v.list.shape = value
	case name == "startOverride" && v.list != nil && v.at >= 0:
		v.list.starts[v.at] = number
	case v.level == nil:
	case name == "start":
		v.level.start = number
	case name == "numFmt":
		v.level.format = value
	case name == "lvlText":
		v.level.pattern = value
	case name == "lvlRestart":
		v.level.restart = number
	case name == "pStyle":
		v.level.style = value
	case name == "isLgl":
		v.level.legal = isOn(attr)
	case name == "rFonts":
		v.level.font = attr.get("ascii")
	}
}

func (v *numberingReader) end(name string) error {
	switch name {
	case "abstractNum":
		v.shape = nil
	case "num":
		v.list = nil
	case "lvl":
		v.level = nil
	}
	return nil
}
