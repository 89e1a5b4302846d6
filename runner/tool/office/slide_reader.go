package office

import (
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/block"
	"journeyman/runner/tool/office/mark"
)

func (v *slideReader) start(name string, attr attributes) error {
	switch {
	// Fallback contains a copy of a drawing for older programs (ECMA-376 part 3).
	case v.skip > 0 || name == "Fallback":
		v.skip++
		return nil
	case len(v.math.open) > 0 || name == "oMath":
		v.math.start(name, attr)
		return nil
	}
	switch name {
	case "sld":
		v.hidden = attr.get("show") == "0" || attr.get("show") == "false"
	case "grpSp":
		v.groups = append(v.groups, &shapeGroup{})
	case "grpSpPr":
		v.inGroup = true
	case "sp", "pic", "graphicFrame", "cxnSp":
		v.now = &shape{}
		v.shapes = append(v.shapes, v.now)
	case "off", "ext", "chOff", "chExt":
		v.placeElement(name, attr)
	default:
		if begin := slideStarts[name]; begin != nil && v.now != nil && !v.places || name == "ph" && v.now != nil {
			begin(v, attr)
		}
	}
	return v.state()
}

// state returns the error that ends the reading, nil to go on.
func (v *slideReader) state() error {
	if v.size > maxText {
		return errEnough
	}
	return v.err
}

// placeElement reads a part of the place of a shape or group.
func (v *slideReader) placeElement(name string, attr attributes) {
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(attr.get(key), 10, 64)
		return min(max(n, -maxPlace), maxPlace)
	}
	var b *block.Bounds
	switch n := len(v.groups); {
	case v.inGroup && n > 0 && strings.HasPrefix(name, "ch"):
		b = &v.groups[n-1].inner
	case v.inGroup && n > 0:
		b = &v.groups[n-1].outer
	case v.now != nil && !v.inGroup:
		b = &v.now.place.Bounds
		v.now.place.Known = true
	default:
		return
	}
	if name == "off" || name == "chOff" {
		b.X, b.Y = number("x"), number("y")
	} else if attr.get("cx") != "" { // other elements with the name ext are extensions
		b.Width, b.Height = number("cx"), number("cy")
	}
}

// maxPlace is the largest coordinate, in EMU: far more than a slide has.
const maxPlace = 1 << 40

// slideStarts has what the elements inside a shape begin.
var slideStarts = map[string]func(v *slideReader, attr attributes){
	"ph": func(v *slideReader, attr attributes) {
		v.now.standard, v.now.kind, v.now.index = true, attr.get("type"), attr.get("idx")
		if v.now.kind == "obj" {
			v.now.kind = ""
		}
	},
	"cNvPr": func(v *slideReader, attr attributes) {
		v.now.hidden = attr.get("hidden") == "1" || attr.get("hidden") == "true"
		v.now.picture.describe(attr)
	},
	"p": func(v *slideReader, _ attributes) { v.para = slideParagraph{start: 1} },
	"r": func(v *slideReader, _ attributes) { v.beginRun() }, "fld": func(v *slideReader, _ attributes) { v.beginRun() },
	"t":  func(v *slideReader, _ attributes) { v.para.inText = true },
	"br": func(v *slideReader, _ attributes) { v.add("\n") },
	"pPr": func(v *slideReader, attr attributes) {
		v.para.level = levelOf(attr.get("lvl"), 0)
		v.now.place.RightToLeft = v.now.place.RightToLeft || attr.get("rtl") == "1"
	},
	"buNone": func(v *slideReader, _ attributes) { v.para.none = true },
	"buFont": func(v *slideReader, attr attributes) { v.para.font = attr.get("typeface") },
	"buChar": func(v *slideReader, attr attributes) { v.para.bullet = mark.Bullet(v.para.font, attr.get("char")) },
	"buBlip": func(v *slideReader, _ attributes) { v.para.bullet = "-" },
	"buAutoNum": func(v *slideReader, attr attributes) {
		v.para.scheme = attr.get("type")
		if n, err := strconv.Atoi(attr.get("startAt")); err == nil {
			v.para.start = n
		}
	},
	"latin": func(v *slideReader, attr attributes) { v.para.run = attr.get("typeface") },
	"sym":   func(v *slideReader, attr attributes) { v.para.run = attr.get("typeface") },
	"hlinkClick": func(v *slideReader, attr attributes) {
		if r := v.related[attr.get("r:id")]; r.kind == "hyperlink" {
			v.para.link = r.target
		}
	},
	"tbl": func(v *slideReader, _ attributes) { v.now.rows = append(v.now.rows, &block.Grid{}) },
	"tc": func(v *slideReader, attr attributes) {
		// The cells that a cell spans are in the file, too.
		v.now.cell = &block.Cell{Span: 1, Above: attr.get("vMerge") == "1" || attr.get("vMerge") == "true"}
	},
	"blip": func(v *slideReader, attr attributes) {
		if p := &v.now.picture; p.target == "" {
			p.target = v.related[attr.get("r:embed")].target
		}
	},
	"chart":  func(v *slideReader, attr attributes) { v.attach(v.d.chart, attr.get("r:id")) },
	"relIds": func(v *slideReader, attr attributes) { v.attach(v.d.diagram, attr.get("r:dm")) },
	"oleObj": func(v *slideReader, attr attributes) {
		if target := v.related[attr.get("r:id")].target; target != "" {
			v.now.Add("[embedded file "+target+"]", block.Plain)
		}
	},
}

// beginRun begins a text with the same properties.
func (v *slideReader) beginRun() {
	v.para.run, v.para.link, v.para.from = "", "", len(v.para.text)
}

// endRun ends it. It adds the target of a link.
func (v *slideReader) endRun() {
	p := &v.para
	if p.link != "" && p.from <= len(p.text) {
		linked := block.Link(string(p.text[p.from:]), p.link)
		v.size += len(p.link)
		p.text = append(p.text[:p.from], linked...)
	}
	p.link = ""
}

// attach adds the text of a chart or diagram to the current shape.
func (v *slideReader) attach(read func(name string) (string, error), id string) {
	if id == "" {
		return // a chart inside of a chart's file
	}
	text, err := read(v.related[id].target)
	if err != nil {
		v.err = err
	}
	v.size += len(text)
	v.now.AddAll(text, 1)
}

// add adds text to the current paragraph.
func (v *slideReader) add(text string) {
	v.para.text = append(v.para.text, text...)
	v.size += len(text)
}

func (v *slideReader) text(text string) error {
	switch {
	case v.skip > 0 || v.now == nil || v.places:
	case len(v.math.open) > 0:
		v.math.write(text)
		v.size += len(text)
	case v.para.inText:
		v.add(strings.ReplaceAll(mark.Text(v.para.run, text), "\n", " "))
	}
	return v.state()
}

func (v *slideReader) end(name string) error {
	switch {
	// start counted this element, too, so skip is 0 again after the end of the omitted part.
	case v.skip > 0:
		v.skip--
		return nil
	case len(v.math.open) > 0:
		v.add(v.math.end())
		return nil
	}
	switch name {
	case "grpSp":
		v.groups = v.groups[:max(len(v.groups)-1, 0)]
	case "grpSpPr":
		v.inGroup = false
	case "sp", "pic", "graphicFrame", "cxnSp":
		v.endShape()
	default:
		if end := slideEnds[name]; end != nil && v.now != nil && !v.places {
			end(v)
		}
	}
	return nil
}

// slideEnds has what the ends of elements inside a shape end.
var slideEnds = map[string]func(*slideReader){
	"t": func(v *slideReader) { v.para.inText = false },
	"r": (*slideReader).endRun, "fld": (*slideReader).endRun,
	"p": (*slideReader).endParagraph,
	"tc": func(v *slideReader) {
		if n := len(v.now.rows); n > 0 && v.now.cell != nil {
			v.now.rows[n-1].Add(v.now.cell)
		}
		v.now.cell = nil
	},
	"tr": func(v *slideReader) {
		if n := len(v.now.rows); n > 0 {
			v.now.rows[n-1].WriteRow(&v.now.Blocks)
		}
	},
	"tbl": func(v *slideReader) { v.now.rows = v.now.rows[:max(len(v.now.rows)-1, 0)] },
}

// endShape ends a shape. The places of a group's shapes become places on the slide.
func (v *slideReader) endShape() {
	s := v.now
	v.now = nil
	if s == nil {
		return
	}
	if s.place.Known {
		for _, g := range slices.Backward(v.groups) {
			s.place.Bounds = g.place(s.place.Bounds)
		}
	}
	if note := s.picture.text(); note != "" {
		s.Add(note, block.Plain)
	}
}

// endParagraph adds the current paragraph to its shape or cell.
func (v *slideReader) endParagraph() {
	p, s := v.para, v.now
	v.para = slideParagraph{}
	text := strings.TrimSpace(string(p.text))
	if text == "" {
		return
	}
	if number := s.number(&p); number != "" {
		text = strings.Repeat("  ", p.level) + number + " " + text
		v.size += len(number)
	}
	if s.cell != nil {
		s.cell.Add(text, block.Item)
		return
	}
	s.Add(text, block.Item)
}

// number returns the mark of a paragraph, "" if it has none, and counts it.
func (s *shape) number(p *slideParagraph) string {
	scheme := p.scheme
	if p.none || p.bullet != "" {
		scheme = ""
	}
	if scheme == "" || s.schemes[p.level] != scheme {
		s.counts[p.level] = p.start - 1
	}
	s.schemes[p.level] = scheme
	for deeper := p.level + 1; deeper < listLevels; deeper++ {
		s.schemes[deeper] = ""
	}
	switch {
	case p.none:
		return ""
	case scheme != "":
		s.counts[p.level]++
		return autoNumber(s.counts[p.level], scheme)
	// The layout gives these paragraphs a mark.
	case p.bullet == "" && (p.level > 0 || s.standard && s.kind == "") && s.cell == nil:
		return "-"
	}
	return p.bullet
}

// autoNumber returns a number in one of the schemes of slides, such as romanLcParenR.
func autoNumber(n int, scheme string) string {
	format := "decimal"
	for prefix, name := range map[string]string{"alphaLc": "lowerLetter", "alphaUc": "upperLetter",
		"romanLc": "lowerRoman", "romanUc": "upperRoman"} {
		if strings.HasPrefix(scheme, prefix) {
			format = name
		}
	}
	number := mark.Number(n, format)
	switch {
	case strings.HasSuffix(scheme, "ParenBoth"):
		return "(" + number + ")"
	case strings.HasSuffix(scheme, "ParenR"):
		return number + ")"
	case strings.HasSuffix(scheme, "Plain"):
		return number
	}
	return number + "."
}

// standardPlaces returns the places of a layout for the standard contents of slides.
func (v *slideReader) standardPlaces() map[string]block.Bounds {
	places := map[string]block.Bounds{}
	for _, s := range v.shapes {
		if !s.standard || !s.place.Known {
			continue
		}
		places["kind "+s.kind] = s.place.Bounds
		if s.index != "" {
			places["index "+s.index] = s.place.Bounds
		}
	}
	return places
}
