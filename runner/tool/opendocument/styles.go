package opendocument

import (
	"encoding/xml"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
	"journeyman/runner/tool/office/mark"
)

// maxInherited is the maximum number of styles from which a style inherits.
const maxInherited = 20

// A style has the properties of a style that matter for its text.
type style struct {
	parent string
	list   string // its list style
	hidden string // "true", "false", or "" if the style does not say
	font   string
}

// A level describes the marks of one level of a list.
type level struct {
	format         string // "" for no number
	prefix, suffix string
	shown          int // levels whose numbers are shown
	start          int
	isBullet       bool
	bullet         string
}

// A listStyle has the levels of a list, from 1.
type listStyle [maxDepth + 1]level

// A marginText is a header or footer of a kind of pages.
type marginText struct{ master, text string }

// styles are the styles of a document.
type styles struct {
	byName  map[string]*style // by family and name
	lists   map[string]*listStyle
	outline *listStyle // of headings
	margins map[string][]marginText
	masters map[string]bool   // kinds of pages that the text uses
	next    map[string]string // kind of the next page, by the kind of a page
}

func newStyles() *styles {
	return &styles{byName: map[string]*style{}, lists: map[string]*listStyle{}, outline: &listStyle{},
		margins: map[string][]marginText{}, masters: map[string]bool{"Standard": true}, next: map[string]string{}}
}

// inherited calls found for a style and for those from which it inherits, until found returns true.
func (s *styles) inherited(family, name string, found func(name string, st *style) bool) {
	for range maxInherited {
		st := s.byName[family+" "+name]
		if st == nil || found(name, st) {
			return
		}
		name = st.parent
	}
}

// hidden reports whether a style hides its text.
func (s *styles) hidden(family, name string) (hidden bool) {
	s.inherited(family, name, func(_ string, st *style) bool {
		hidden = st.hidden == "true"
		return st.hidden != ""
	})
	return hidden
}

// font returns the font of a style, "" if it has none.
func (s *styles) font(family, name string) (font string) {
	s.inherited(family, name, func(_ string, st *style) bool {
		font = st.font
		return font != ""
	})
	return font
}

// isTitle reports whether a paragraph with this style is the title of the document.
func (s *styles) isTitle(name string) (title bool) {
	title = name == "Title"
	s.inherited("paragraph", name, func(name string, st *style) bool {
		title = title || name == "Title" || st.parent == "Title"
		return title
	})
	return title
}

// list returns the list style of a paragraph style.
func (s *styles) list(name string) (list string) {
	s.inherited("paragraph", name, func(_ string, st *style) bool {
		list = st.list
		return list != ""
	})
	return list
}

// shows reports whether the text has pages of a kind.
func (s *styles) shows(master string) bool {
	for name := range s.masters {
		for range maxInherited {
			if name == master {
				return true
			}
			if name = s.next[name]; name == "" {
				break
			}
		}
	}
	return false
}

// formats are the names of ECMA-376 for the formats of numbers.
var formats = map[string]string{"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman",
	"I": "upperRoman", "1st": "ordinal", "一, 二, 三, ...": "chineseCounting", "①, ②, ③, ...": "decimalEnclosedCircle"}

// mark returns the mark of an item with the numbers of all levels up to its own.
func (l *listStyle) mark(at int, counts [maxDepth + 1]int) string {
	now := l[at]
	if now.isBullet {
		return mark.Bullet("", now.bullet)
	}
	if now.format == "" {
		return strings.TrimSpace(now.prefix + now.suffix)
	}
	var numbers []string
	for i := max(at-max(now.shown, 1)+1, 1); i <= at; i++ {
		if l[i].format != "" {
			numbers = append(numbers, mark.Number(counts[i], formats[l[i].format]))
		}
	}
	return strings.TrimSpace(now.prefix + strings.Join(numbers, ".") + now.suffix)
}

// A styleReader reads styles.
type styleReader struct {
	archive.IgnoreText
	all  *styles
	now  *style
	list *listStyle
}

// Start reads a style or one of its properties.
func (v *styleReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "style":
		v.now = &style{parent: attr.Get("parent-style-name"), list: attr.Get("list-style-name")}
		v.all.byName[attr.Get("family")+" "+attr.Get("name")] = v.now
		v.use(attr.Get("master-page-name"))
	case "master-page":
		v.all.next[attr.Get("name")] = attr.Get("next-style-name")
	case "text-properties", "drawing-page-properties", "section-properties":
		if v.now != nil {
			v.properties(attr)
		}
	case "list-style":
		v.list = &listStyle{}
		v.all.lists[attr.Get("name")] = v.list
	case "outline-style":
		v.list = v.all.outline
	case "list-level-style-number", "outline-level-style", "list-level-style-bullet", "list-level-style-image":
		if at, err := strconv.Atoi(attr.Get("level")); err == nil && v.list != nil && at > 0 && at <= maxDepth {
			v.list[at] = newLevel(name.Local, attr)
		}
	}
	return nil
}

// use remembers that the text has pages of a kind.
func (v *styleReader) use(master string) {
	if master != "" {
		v.all.masters[master] = true
	}
}

// properties reads the properties of a style.
func (v *styleReader) properties(attr archive.Attributes) {
	switch attr.Get("display") {
	case "none":
		v.now.hidden = "true"
	case "true":
		v.now.hidden = "false"
	}
	if attr.Get("visibility") == "hidden" {
		v.now.hidden = "true"
	}
	if font := attr.Get("font-name"); font != "" {
		v.now.font = font
	}
}

// newLevel returns a level of a list.
func newLevel(kind string, attr archive.Attributes) level {
	l := level{format: attr.Get("num-format"), prefix: short(attr.Get("num-prefix")),
		suffix: short(attr.Get("num-suffix")), start: 1}
	if n, err := strconv.Atoi(attr.Get("start-value")); err == nil {
		l.start = n
	}
	l.shown, _ = strconv.Atoi(attr.Get("display-levels"))
	switch kind {
	case "list-level-style-bullet", "list-level-style-image":
		l.isBullet, l.bullet = true, short(attr.Get("bullet-char"))
	}
	return l
}

// short returns the beginning of a text that stands before or after a number.
func short(text string) string { return text[:min(len(text), 50)] }
