package tool

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A look is what a reader sees of the text of an element. Its fields are inherited by the elements inside.
type look struct {
	size       float64  // of the font in pixels
	hidden     bool     // visibility
	color      cssColor // of the text
	background cssColor
}

// tiny is the font size, in pixels, up to which nobody can read a text.
const tiny = 2.0

// unseen reports whether readers cannot see the text of an element.
func (l look) unseen() bool {
	return l.size <= tiny || l.hidden || l.color.transparent() || l.color.same(l.background)
}

// A hider removes the text of a mail that readers do not see. Senders write such text for filters, for the list of
// mails, or to give instructions to a model. The hider judges each text by the styles of all elements around it,
// because an element may show again what the element around it hides.
type hider struct {
	rules sheet
	known map[styled]verdict // of elements so far: the parser repeats formatting without an end in every paragraph
}

// maxVerdicts is the number of verdicts that a hider remembers at a time.
const maxVerdicts = 4096

// A styled holds what the verdict on an element depends on.
type styled struct {
	tag, class, id, style string
	hidden                bool
}

// A verdict is the style of an element, and whether the style removes it.
type verdict struct {
	style   style
	removed bool
}

// hideText removes the hidden text of a parsed mail.
func hideText(doc *html.Node) {
	h := hider{readSheets(doc), map[styled]verdict{}}
	h.below(doc, look{size: 16, color: black, background: white})
}

// below removes the hidden text below n, whose own look is around.
func (h *hider) below(n *html.Node, around look) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling // read first, because c may be removed
		switch {
		case c.Type == html.ElementNode:
			h.element(c, around)
		case c.Type == html.TextNode && around.unseen() && strings.TrimSpace(c.Data) != "":
			c.Data = " "
		}
		c = next
	}
}

// element removes the hidden text of an element.
func (h *hider) element(n *html.Node, around look) {
	v := h.judge(n)
	if v.removed {
		n.Parent.RemoveChild(n)
		return
	}
	around.apply(n, v.style)
	hidePicture(n, around)
	h.below(n, around)
	if n.DataAtom == atom.A && around.unseen() && !hasContent(n) {
		n.Parent.RemoveChild(n) // its address is not visible either
	}
}

// judge returns the verdict on an element.
func (h *hider) judge(n *html.Node) verdict {
	key := styled{tag: n.Data, class: attribute(n, "class"), id: attribute(n, "id"), style: attribute(n, "style")}
	_, key.hidden = find(n, "hidden")
	v, known := h.known[key]
	if !known {
		v.style = h.rules.styleOf(n)
		v.removed = isRemoved(n, v.style)
		if len(h.known) == maxVerdicts {
			clear(h.known)
		}
		h.known[key] = v
	}
	return v
}

// hasContent reports whether an element has a text or a picture.
func hasContent(n *html.Node) bool {
	for d := range n.Descendants() {
		if d.DataAtom == atom.Img || d.Type == html.TextNode && strings.TrimSpace(d.Data) != "" {
			return true
		}
	}
	return false
}

// hidePicture removes the description of a picture that is not visible. A small font does not hide a picture, but its
// description.
func hidePicture(n *html.Node, l look) {
	if n.DataAtom != atom.Img {
		return
	}
	pixel := isDot(attribute(n, "width")) || isDot(attribute(n, "height")) // it counts who opens the mail
	if l.hidden || pixel {
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "alt" })
	}
}

// isDot reports whether the width or height of a picture is 0 or 1.
func isDot(value string) bool {
	px, ok := pixels(value)
	return ok && px <= 1
}

// apply changes a look as the element n with a style does.
func (l *look) apply(n *html.Node, style style) {
	inherited := l.color
	l.attributes(n)
	if v := style["font"]; v != "" {
		l.size = fontSize(sizeOfFont(v), l.size)
	}
	if v := style["font-size"]; v != "" {
		l.size = fontSize(v, l.size)
	}
	switch style["visibility"] {
	case "hidden", "collapse":
		l.hidden = true
	case "visible", "initial":
		l.hidden = false
	}
	for _, name := range []string{"color", "-webkit-text-fill-color"} {
		switch v := style[name]; v {
		case "":
		case "inherit", "unset", "currentcolor":
			l.color = inherited
		default:
			l.color = readColor(v)
		}
	}
	for _, name := range []string{"background", "background-color"} {
		l.cover(style[name])
	}
	if v := style["background-image"]; v != "" && v != "none" && v != "initial" { // it covers the color
		l.background = unknownColor
	}
}

// attributes applies the attributes that HTML had before styles.
func (l *look) attributes(n *html.Node) {
	if v := attribute(n, "bgcolor"); v != "" {
		l.cover(v)
	}
	if attribute(n, "background") != "" { // a picture
		l.background = unknownColor
	}
	switch n.DataAtom {
	case atom.Body:
		if v := attribute(n, "text"); v != "" {
			l.color = readColor(v)
		}
	case atom.Font:
		if v := attribute(n, "color"); v != "" {
			l.color = readColor(v)
		}
	case atom.A:
		l.color = blue // unless a style gives the link another color
	case atom.Mark:
		l.background = unknownColor
	}
}

// cover puts a background over the one of the elements around.
func (l *look) cover(value string) {
	c := readBackground(value)
	switch {
	case value == "" || c.transparent():
	case c.alpha < 0.95: // the background shines through
		l.background = unknownColor
	default:
		l.background = c
	}
}

// isRemoved reports whether an element is hidden together with everything inside it.
func isRemoved(n *html.Node, s style) bool {
	if len(s) == 0 || n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return false
	}
	if s["display"] == "none" || isZero(s["opacity"]) || s["content-visibility"] == "hidden" ||
		strings.Contains(without(s["filter"], " "), "opacity(0)") {
		return true
	}
	return isClosed(n, s) || isMoved(s)
}

// isClosed reports whether a box has no room for its content.
func isClosed(n *html.Node, s style) bool {
	clipped := s["overflow"] == "hidden" || s["overflow"] == "clip" || s["overflow-x"] == "hidden" ||
		s["overflow-y"] == "hidden"
	for _, side := range []string{"height", "max-height", "width", "max-width"} {
		px, ok := pixels(s[side])
		if ok && px <= 1 && clipped && isBox(n, s) && !isPercent(s["padding-top"]) && !isPercent(s["padding-bottom"]) {
			return true
		}
	}
	clip := without(s["clip"], " ", ",", "px", "%", "auto")
	path := without(s["clip-path"], " ", "%")
	out := s["position"] == "absolute" || s["position"] == "fixed"
	return out && strings.HasPrefix(clip, "rect(") && strings.Trim(clip[5:], "01)") == "" ||
		path == "inset(50)" || path == "inset(100)" || strings.HasPrefix(path, "circle(0") ||
		scaledAway.MatchString(s["transform"])
}

// without returns a value without some of its parts.
func without(value string, parts ...string) string {
	for _, part := range parts {
		value = strings.ReplaceAll(value, part, "")
	}
	return value
}

var scaledAway = regexp.MustCompile(`scale[xy3d]*\(\s*0*\.?0*\s*[,)]`)

// isBox reports whether an element has the size that its style gives it. The size of a table or of a part of it is
// only the least one, and words in a line have none.
func isBox(n *html.Node, s style) bool {
	switch display := s["display"]; {
	case strings.HasPrefix(display, "table"), strings.HasPrefix(display, "inline-table"):
		return false
	case display != "" && display != "inline" && display != "contents" && display != "initial" && display != "unset":
		return true
	case display == "" && isSized(n):
		return true
	}
	out := s["position"] == "absolute" || s["position"] == "fixed" || s["float"] == "left" || s["float"] == "right"
	return out && !isTablePart(n)
}

// isSized reports whether an element is a block unless its style says otherwise.
func isSized(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Button, atom.Center, atom.Dd, atom.Details,
		atom.Dialog, atom.Dir, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer,
		atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Li, atom.Main,
		atom.Marquee, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Summary, atom.Textarea, atom.Ul:
		return true
	}
	return false
}

func isTablePart(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Table, atom.Caption, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th:
		return true
	}
	return false
}

// isPercent reports whether a padding keeps room for the content of a box without height, such as a picture.
func isPercent(padding string) bool {
	number, unit := cutNumber(padding)
	return unit == "%" && strings.Trim(number, "0.") != ""
}

// far is the distance, in pixels, that moves a text out of every window.
const far = 900.0

// isMoved reports whether an element is moved out of the window. Readers can scroll down to what is far below.
func isMoved(s style) bool {
	if s["position"] == "absolute" || s["position"] == "fixed" || s["position"] == "relative" {
		for _, side := range []string{"left", "right", "top", "bottom"} {
			if px, ok := pixels(s[side]); ok && (px <= -far || px >= 4*far && (side == "left" || side == "right")) {
				return true
			}
		}
	}
	for _, name := range []string{"text-indent", "margin-left", "margin-top"} {
		if px, ok := pixels(s[name]); ok && px <= -far {
			return true
		}
	}
	_, shift, found := strings.Cut(s["transform"], "translate")
	shift, _, closed := strings.Cut(shift[strings.IndexByte(shift, '(')+1:], ")")
	shift, _, _ = strings.Cut(shift, ",")
	px, ok := pixels(shift)
	return found && closed && ok && px <= -far
}
