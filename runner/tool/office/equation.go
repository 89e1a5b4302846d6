package office

import (
	"maps"
	"strings"
)

// A mathNode is an open element of an equation (OMML).
type mathNode struct {
	name   string
	text   *strings.Builder
	flat   bool              // too deep: text is that of the element around it
	parts  map[string]string // texts of its arguments, by the names of their elements
	all    []string          // arguments in their order
	signs  map[string]string // signs that its properties name
	inText bool
}

// write adds text that is inside of an element for text.
func (m *mathNode) write(text string) {
	if m.inText {
		m.text.WriteString(text)
	}
}

// An equation is an equation whose end is not read yet.
type equation struct{ open []*mathNode }

// start begins an element of the equation.
func (q *equation) start(name string, attr attributes) {
	if n := len(q.open); n > 0 {
		switch name {
		case "chr", "begChr", "endChr", "sepChr": // the open element has the properties of a structure
			q.open[n-1].signs[name] = attr.get("val")
		}
	}
	m := &mathNode{name: name, inText: name == "t", text: &strings.Builder{},
		parts: map[string]string{}, signs: map[string]string{}}
	if n := len(q.open); n >= maxMathDepth {
		m.flat, m.text = true, q.open[n-1].text
	}
	q.open = append(q.open, m)
}

// write adds text.
func (q *equation) write(text string) { q.open[len(q.open)-1].write(text) }

// end ends an element, and adds its text to the one around it. At the end of the equation it returns the
// whole text.
func (q *equation) end() string {
	n := len(q.open)
	m := q.open[n-1]
	q.open = q.open[:n-1]
	if m.flat {
		return ""
	}
	text := m.compose()
	if n == 1 {
		return text
	}
	outer := q.open[n-2]
	// The properties of a structure name its signs.
	if strings.HasSuffix(m.name, "Pr") {
		maps.Copy(outer.signs, m.signs)
		return ""
	}
	if len(outer.all) < maxArguments {
		outer.parts[m.name] = text
		outer.all = append(outer.all, text)
	}
	outer.text.WriteString(text)
	return ""
}

// The limits of a structure in an equation. Each level copies the text of the levels inside it.
const (
	maxArguments = 1000
	maxMathDepth = 30
)

// compose returns the text of an element.
func (m *mathNode) compose() string {
	part := func(name string) string { return strings.TrimSpace(m.parts[name]) }
	base := part("e")
	switch m.name {
	case "f":
		return group(part("num")) + "/" + group(part("den"))
	case "sSup", "limUpp":
		return group(base) + "^" + group(part("sup")+part("lim"))
	case "sSub", "limLow":
		return group(base) + "_" + group(part("sub")+part("lim"))
	case "sSubSup":
		return group(base) + "_" + group(part("sub")) + "^" + group(part("sup"))
	case "sPre":
		return "_" + group(part("sub")) + "^" + group(part("sup")) + base
	case "rad":
		return part("deg") + "√" + group(base)
	case "nary":
		return m.nary()
	case "d":
		return m.sign("begChr", "(") + strings.Join(m.all, m.sign("sepChr", "|")) + m.sign("endChr", ")")
	case "func":
		return part("fName") + " " + base
	case "acc":
		return base + m.sign("chr", "\u0302")
	case "mr":
		return strings.Join(m.all, ", ")
	case "m":
		return "[" + strings.Join(m.all, "; ") + "]"
	case "eqArr":
		return strings.Join(m.all, "; ")
	}
	return m.text.String()
}

// nary returns a sum, an integral or the like with its limits.
func (m *mathNode) nary() string {
	text := m.sign("chr", "∫")
	for _, limit := range []struct{ name, sign string }{{"sub", "_"}, {"sup", "^"}} {
		if value := strings.TrimSpace(m.parts[limit.name]); value != "" {
			text += limit.sign + group(value)
		}
	}
	return text + " " + m.parts["e"]
}

// sign returns a sign that the properties name, or the usual one.
func (m *mathNode) sign(name, usual string) string {
	if sign, ok := m.signs[name]; ok {
		return sign
	}
	return usual
}

// group returns an expression in parentheses, unless it is a number or a name.
func group(text string) string {
	if strings.ContainsAny(text, " +-−·×/=^_,;") {
		return "(" + text + ")"
	}
	return text
}
