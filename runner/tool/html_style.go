package tool

import (
	"maps"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A style holds the properties of an element, by name. Names and values are in lower case.
type style map[string]string

// Limits of the styles of a mail.
const (
	maxSheet     = 256 << 10 // bytes of all style sheets
	maxRules     = 5000
	maxSelectors = 100 // of one rule
	maxClasses   = 20  // of an element that are looked up
)

// declarations adds the declarations of a style attribute or of a rule to s. The last one of a property counts,
// unless an earlier one is important.
func (s style) declarations(text string) {
	important := map[string]bool{}
	text = strings.ToLower(withoutNotes(text))
	for text != "" {
		var one string
		one, text = cutDeclaration(text)
		name, value, _ := strings.Cut(one, ":")
		value, mark, _ := strings.Cut(value, "!")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		isImportant := strings.TrimSpace(mark) == "important"
		if !mayHide(name) || value == "" || important[name] && !isImportant {
			continue
		}
		s[name] = value
		important[name] = isImportant
	}
}

// mayHide reports whether a property can hide a text or show it. The others are not stored.
func mayHide(name string) bool {
	switch name {
	case "display", "visibility", "opacity", "content-visibility", "filter", "font", "font-size", "color",
		"-webkit-text-fill-color", "background", "background-color", "background-image", "overflow", "overflow-x",
		"overflow-y", "height", "max-height", "width", "max-width", "padding-top", "padding-bottom", "clip", "clip-path",
		"transform", "position", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top", "float":
		return true
	}
	return false
}

// cutDeclaration cuts a text at its first semicolon outside of parentheses and quotes, such as those of an address.
func cutDeclaration(text string) (one, rest string) {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ';' && depth <= 0:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// withoutNotes removes the comments of a style.
func withoutNotes(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if _, text, found = strings.Cut(rest, "*/"); !found {
			return b.String()
		}
	}
}

// A sheet holds the rules of the style sheets of a mail, by simple selector: "*", "p", ".class", "p.class" or "#id".
// Other selectors and rules for some devices only are left out: a mail looks right without them, because many mail
// programs ignore style sheets. backgrounds has the last simple selector of each rule that is left out and sets a
// background: such an element may have any background.
type sheet struct {
	rules       map[string]style
	backgrounds map[string]bool
}

// readSheets reads the style sheets of a mail.
func readSheets(doc *html.Node) sheet {
	s := sheet{map[string]style{}, map[string]bool{}}
	room := maxSheet
	for n := range doc.Descendants() {
		media := attribute(n, "media")
		if n.DataAtom != atom.Style || n.FirstChild == nil || media != "" && media != "all" && media != "screen" {
			continue
		}
		text := n.FirstChild.Data
		if len(text) > room {
			break
		}
		room -= len(text)
		text = strings.ToLower(withoutNotes(strings.NewReplacer("<!--", "", "-->", "").Replace(text)))
		for n := 0; text != "" && n < maxRules; n++ {
			text = s.rule(text)
		}
	}
	return s
}

// rule reads the first rule of a text, and returns the rest.
func (s sheet) rule(text string) (rest string) {
	head, body, found := strings.Cut(text, "{")
	if !found {
		return ""
	}
	if at := strings.LastIndexByte(head, ';'); at >= 0 { // statements without a block, such as @import
		head = head[at+1:]
	}
	head = strings.TrimSpace(head)
	if strings.HasPrefix(head, "@") {
		return s.skipBlock(body)
	}
	body, rest, _ = strings.Cut(body, "}")
	d := style{}
	d.declarations(body)
	paints := d["background"]+d["background-color"]+d["background-image"] != ""
	for n, selector := range strings.Split(head, ",") {
		if n == maxSelectors {
			break
		}
		selector = strings.TrimSpace(selector)
		if last := lastSimple(selector); last != selector {
			if paints {
				s.backgrounds[last] = true
			}
			continue
		}
		if s.rules[selector] == nil {
			s.rules[selector] = style{}
		}
		maps.Copy(s.rules[selector], d)
	}
	return rest
}

// skipBlock returns what follows the block whose beginning was read. Backgrounds inside it are noted.
func (s sheet) skipBlock(text string) string {
	for depth := 1; depth > 0; {
		at := strings.IndexAny(text, "{}")
		if at < 0 {
			return ""
		}
		head, opens := text[:at], text[at] == '{'
		if text = text[at+1:]; !opens {
			depth--
			continue
		}
		depth++
		body, _, _ := strings.Cut(text[:min(len(text), maxAttribute)], "}")
		if !strings.Contains(body, "background") {
			continue
		}
		for selector := range strings.SplitSeq(head, ",") {
			s.backgrounds[lastSimple(strings.TrimSpace(selector))] = true
		}
	}
	return text
}

// lastSimple returns the last simple selector of a selector.
func lastSimple(selector string) string {
	if at := strings.LastIndexAny(selector, " >+~]"); at >= 0 {
		selector = strings.TrimSpace(selector[at+1:])
	}
	selector, _, _ = strings.Cut(selector, ":")
	if at := strings.LastIndexByte(selector, '.'); at >= 0 && strings.Count(selector, ".") > 1 {
		return selector[at:]
	}
	return selector
}

// styleOf returns the style of an element: of the rules for it, and of its attribute.
func (s sheet) styleOf(n *html.Node) style {
	result := style{}
	if len(s.rules)+len(s.backgrounds) > 0 {
		s.each(n, func(selector string) {
			maps.Copy(result, s.rules[selector])
			if s.backgrounds[selector] {
				result["background-image"] = "unknown"
			}
		})
	}
	if v := attribute(n, "style"); v != "" {
		result.declarations(v)
	}
	if _, hidden := find(n, "hidden"); hidden {
		result["display"] = "none"
	}
	return result
}

// each passes the simple selectors that match an element to use, the weakest first.
func (s sheet) each(n *html.Node, use func(selector string)) {
	use("*")
	use(n.Data)
	classes := strings.Fields(strings.ToLower(attribute(n, "class")))
	classes = classes[:min(len(classes), maxClasses)]
	for _, class := range classes {
		use("." + class)
	}
	for _, class := range classes {
		use(n.Data + "." + class)
	}
	if id := strings.ToLower(attribute(n, "id")); id != "" {
		use("#" + id)
		use(n.Data + "#" + id)
	}
}

// find returns the value of an attribute, and whether the element has it.
func find(n *html.Node, key string) (value string, found bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// pixels returns a length in pixels. ok is false for a length relative to something else, and for other words.
func pixels(value string) (px float64, ok bool) {
	number, unit := cutNumber(value)
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, false
	}
	switch unit {
	case "":
		return v, true // "0", and lengths for which programs are lenient
	case "px":
		return v, true
	case "pt":
		return v * 4 / 3, true
	case "pc", "em", "rem", "ex", "ch":
		return v * 16, true
	case "in":
		return v * 96, true
	case "cm":
		return v * 38, true
	case "mm":
		return v * 3.8, true
	case "%", "vw", "vh":
		return v * 10, v <= 0 || v >= 400 // of a window of about 1000 pixels; 100% is no fixed length
	}
	return 0, false
}

// cutNumber splits a value such as "12px" into its number and its unit.
func cutNumber(value string) (number, unit string) {
	value = strings.TrimSpace(value)
	end := strings.IndexFunc(value, func(r rune) bool { return (r < '0' || r > '9') && !strings.ContainsRune(".-+", r) })
	if end < 0 {
		return value, ""
	}
	return value[:end], strings.TrimSpace(value[end:])
}

// isZero reports whether a value is a number of which nothing is visible, such as 0 or 1%.
func isZero(value string) bool {
	number, unit := cutNumber(value)
	v, err := strconv.ParseFloat(number, 64)
	if unit == "%" {
		v /= 100
	}
	return err == nil && (unit == "" || unit == "%") && v < 0.05
}

// fontSize returns the size that a value gives a font, in pixels. around is the size of the element around it.
func fontSize(value string, around float64) float64 {
	number, unit := cutNumber(value)
	v, err := strconv.ParseFloat(number, 64)
	switch px, ok := pixels(value); {
	case err != nil && (value == "inherit" || value == "unset" || value == ""):
		return around
	case err != nil:
		return 16 // a word such as "medium"
	case unit == "em" || unit == "ex" || unit == "ch":
		return v * around
	case unit == "%":
		return v * around / 100
	case ok:
		return px
	}
	return 16
}

// sizeOfFont returns the size in a value of the property font, such as "bold 12px/1.5 Arial".
func sizeOfFont(value string) string {
	for word := range strings.FieldsSeq(value) {
		word, _, _ = strings.Cut(word, "/")
		if number, unit := cutNumber(word); number != "" && (unit != "" || number == "0") {
			return word
		}
	}
	return ""
}
