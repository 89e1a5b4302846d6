package pdf

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// A link is an area of a page that opens an address.
type link struct {
	uri                      string
	left, bottom, right, top float64

	first, last int // indices of its first and last glyph; last is -1 without one
}

// links returns the links of a page that open addresses.
func (d *document) links(p requests.Page) (list []link) {
	for at, n := 0, 0; n < maxMarks; n++ {
		found, err := d.pdfium.FPDFLink_Enumerate(&requests.FPDFLink_Enumerate{Page: p, StartPos: at})
		if err != nil || found.Link == nil || found.NextStartPos == nil {
			return list
		}
		at = *found.NextStartPos
		if l, ok := d.link(*found.Link); ok {
			list = append(list, l)
		}
	}
	return list
}

// link returns a link, with ok false if it opens no address.
func (d *document) link(ref references.FPDF_LINK) (l link, ok bool) {
	action, err := d.pdfium.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: ref})
	if err != nil || action.Action == nil {
		return l, false
	}
	uri, err := d.pdfium.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: d.ref, Action: *action.Action})
	if err != nil || uri.URIPath == nil || *uri.URIPath == "" {
		return l, false
	}
	area, err := d.pdfium.FPDFLink_GetAnnotRect(&requests.FPDFLink_GetAnnotRect{Link: ref})
	if err != nil || area.Rect == nil {
		return l, false
	}
	r := area.Rect
	return link{uri: oneLine(*uri.URIPath, maxValue),
		left: float64(min(r.Left, r.Right)), right: float64(max(r.Left, r.Right)),
		bottom: float64(min(r.Top, r.Bottom)), top: float64(max(r.Top, r.Bottom)), last: -1}, true
}

// maxLinkWork bounds the comparisons of links with glyphs.
const maxLinkWork = 20_000_000

// placeLinks adds the address of each link to its last glyph. Links without text get their address at the
// end of the page. An address that the page already shows is left out.
func placeLinks(glyphs []glyph, links []link) {
	if len(glyphs) == 0 {
		return
	}
	links = links[:min(len(links), maxLinkWork/len(glyphs))]
	for i := range links {
		links[i].find(glyphs)
	}
	slices.SortStableFunc(links, func(a, b link) int { return cmp.Compare(a.last, b.last) })
	for i, l := range links {
		if l.last < 0 || i+1 < len(links) && links[i+1].continues(l, glyphs) || l.shown(glyphs) {
			continue
		}
		glyphs[l.last].after += " <" + l.uri + ">"
	}
	for _, l := range links {
		if l.last < 0 {
			glyphs[len(glyphs)-1].after += " <" + l.uri + ">"
		}
	}
}

// find finds the glyphs of the link.
func (l *link) find(glyphs []glyph) {
	for i := range glyphs {
		g := &glyphs[i]
		x, y := (g.left+g.right)/2, (g.bottom+g.top)/2
		if !g.placed() || unicode.IsSpace(g.r) || x < l.left || x > l.right || y < l.bottom || y > l.top {
			continue
		}
		if l.last < 0 {
			l.first = i
		}
		l.last = i
	}
}

// continues reports whether l is the rest of an earlier link, in the next line.
func (l link) continues(earlier link, glyphs []glyph) bool {
	if l.uri != earlier.uri || l.first <= earlier.last {
		return l.uri == earlier.uri && l.last == earlier.last
	}
	for _, g := range glyphs[earlier.last+1 : l.first] {
		if !unicode.IsSpace(g.r) && g.r != lineEndHyphen {
			return false
		}
	}
	return true
}

// shown reports whether the text of the link is its address.
func (l link) shown(glyphs []glyph) bool {
	var text strings.Builder
	for _, g := range glyphs[l.first : l.last+1] {
		if !unicode.IsSpace(g.r) {
			text.WriteRune(g.r)
		}
	}
	plain := func(s string) string {
		s = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(s, "mailto:"), "https://"), "http://")
		return strings.TrimRight(s, "/.")
	}
	return strings.Contains(plain(text.String()), plain(l.uri))
}
