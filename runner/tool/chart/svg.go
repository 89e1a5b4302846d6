package chart

import (
	"encoding/xml"
	"fmt"
	"image/color"
	"strings"
)

// An svg is a canvas that writes an SVG file.
type svg struct{ b strings.Builder }

func newSVG(*letters) *svg {
	s := &svg{}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif">`+"\n", width, height, width, height)
	s.polygon(rect(0, 0, width, height), white)
	return s
}

func (s *svg) polygon(points []point, c color.NRGBA) {
	fmt.Fprintf(&s.b, `<path d="%sZ" fill="%s"%s/>`+"\n", path(points), hex(c), opacity("fill", c))
}

func (s *svg) polyline(points []point, width float64, c color.NRGBA) {
	fmt.Fprintf(&s.b, `<path d="%s" fill="none" stroke="%s"%s stroke-width="%.2f" stroke-linejoin="round" `+
		`stroke-linecap="round"/>`+"\n", path(points), hex(c), opacity("stroke", c), width)
}

func (s *svg) text(at point, text string, l look, anchor, degrees float64) {
	turn, weight := "", ""
	if degrees != 0 {
		turn = fmt.Sprintf(` transform="rotate(%.0f %.2f %.2f)"`, -degrees, at.x, at.y)
	}
	if l.bold {
		weight = ` font-weight="bold"`
	}
	name := map[float64]string{0: "start", 0.5: "middle", 1: "end"}[anchor]
	fmt.Fprintf(&s.b, `<text x="%.2f" y="%.2f" font-size="%.1f"%s fill="%s" text-anchor="%s"%s>`, at.x, at.y, l.size, weight,
		hex(l.c), name, turn)
	_ = xml.EscapeText(&s.b, []byte(clean(text))) // a strings.Builder returns no errors
	s.b.WriteString("</text>\n")
}

func (s *svg) bytes() ([]byte, error) { return []byte(s.b.String() + "</svg>\n"), nil }

func path(points []point) string {
	var b strings.Builder
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&b, "%s%.2f %.2f", letter, p.x, p.y)
	}
	return b.String()
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func opacity(name string, c color.NRGBA) string {
	if c.A == 255 {
		return ""
	}
	return fmt.Sprintf(` %s-opacity="%.2f"`, name, float64(c.A)/255)
}
