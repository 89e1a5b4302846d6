package office

import (
	"strconv"
	"strings"
)

// maxInherited is the maximum number of styles from which a style inherits.
const maxInherited = 20

// A style has the properties of paragraphs and texts that matter for their text.
type style struct {
	based   string // id of the style from which it inherits
	heading int    // heading level from 1, 0 for none, -1 if the style does not say
	list    string // id of its numbering, "" if the style does not say
	level   int    // its level in that numbering
	hidden  string // "true", "false", or "" if the style does not say
}

// styles are the styles of a document by their ids.
type styles map[string]*style

// inherited calls found for a style and for those from which it inherits, until found returns true.
func (s styles) inherited(id string, found func(id string, st *style) bool) {
	for range maxInherited {
		st := s[id]
		if st == nil || found(id, st) {
			return
		}
		id = st.based
	}
}

// heading returns the heading level of a style, 0 for none.
func (s styles) heading(id string) (level int) {
	s.inherited(id, func(_ string, st *style) bool {
		level = max(st.heading, 0)
		return st.heading >= 0
	})
	return level
}

// list returns the numbering of a style and the id of the style that has it.
func (s styles) list(id string) (list string, level int, owner string) {
	s.inherited(id, func(id string, st *style) bool {
		list, level, owner = st.list, st.level, id
		return st.list != ""
	})
	return list, level, owner
}

// hidden reports whether a style hides its text.
func (s styles) hidden(id string) (hidden bool) {
	s.inherited(id, func(_ string, st *style) bool {
		hidden = st.hidden == "true"
		return st.hidden != ""
	})
	return hidden
}

// A styleReader reads styles. It finds headings by their names. It does not use their ids, which
// are in the language of the author's Word.
type styleReader struct {
	ignoreText
	all  styles
	now  *style // nil outside of styles
	skip int    // open elements inside the properties of a part of a table
}

func (v *styleReader) start(name string, attr attributes) error {
	if v.skip > 0 || name == "tblStylePr" {
		v.skip++
		return nil
	}
	if name == "style" {
		v.now = &style{heading: -1}
		v.all[attr.get("styleId")] = v.now
	}
	if v.now == nil {
		return nil
	}
	switch value := attr.get("val"); name {
	case "name":
		v.now.named(strings.ToLower(value))
	case "basedOn":
		v.now.based = value
	case "outlineLvl":
		v.now.heading = levelOf(value, -1) + 1
	case "numId":
		v.now.list = value
	case "ilvl":
		v.now.level = levelOf(value, 0)
	case "vanish":
		v.now.hidden = strconv.FormatBool(isOn(attr))
	}
	return nil
}

func (v *styleReader) end(name string) error {
	switch {
	case v.skip > 0:
		v.skip--
	case name == "style":
		v.now = nil
	}
	return nil
}

// named sets the heading level of a style with a standard name.
func (s *style) named(name string) {
	if name == "title" {
		s.heading = 1
	}
	if number, ok := strings.CutPrefix(name, "heading "); ok {
		s.heading = levelOf(number, 0)
	}
}

// isOn returns the value of an element that is a switch. Its presence switches it on.
func isOn(attr attributes) bool {
	switch attr.get("val") {
	case "0", "false", "off", "none":
		return false
	}
	return true
}

// levelOf returns the level from 0 to 8 in text. For any other text it returns none.
func levelOf(text string, none int) int {
	if len(text) == 1 && text[0] >= '0' && text[0] <= '8' {
		return int(text[0] - '0')
	}
	return none
}
