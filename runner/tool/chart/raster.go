package chart

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"slices"

	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// scale is the number of pixels of a PNG for each pixel of an SVG.
const scale = 2

// A raster is a canvas that writes a PNG file.
type raster struct {
	letters *letters
	img     *image.RGBA
	shape   [][]point // polygons of the next shape
}

func newRaster(t *letters) *raster {
	bounds := image.Rect(0, 0, width*scale, height*scale)
	r := &raster{letters: t, img: image.NewRGBA(bounds)}
	draw.Draw(r.img, bounds, image.White, image.Point{}, draw.Src)
	return r
}

func (r *raster) polygon(points []point, c color.NRGBA) {
	r.add(points)
	r.fill(c)
}

// add adds a polygon to the shape. All polygons of a shape are added in the same direction: the rasterizer would
// otherwise subtract one from another where they overlap.
func (r *raster) add(points []point) {
	sum := 0.0
	for i, p := range points {
		next := points[(i+1)%len(points)]
		sum += p.x*next.y - next.x*p.y
	}
	scaled := make([]point, 0, len(points))
	for _, p := range points {
		scaled = append(scaled, point{p.x * scale, p.y * scale})
	}
	if sum < 0 {
		slices.Reverse(scaled)
	}
	r.shape = append(r.shape, scaled)
}

// fill draws the shape and begins another. It touches only the pixels of the shape.
func (r *raster) fill(c color.NRGBA) {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, polygon := range r.shape {
		for _, p := range polygon {
			low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
		}
	}
	bounds := image.Rect(int(math.Floor(low.x)), int(math.Floor(low.y)), int(math.Ceil(high.x))+1, int(math.Ceil(high.y))+1)
	shape := vector.NewRasterizer(bounds.Dx(), bounds.Dy())
	for _, polygon := range r.shape {
		for i, p := range polygon {
			x, y := float32(p.x-float64(bounds.Min.X)), float32(p.y-float64(bounds.Min.Y))
			if i == 0 {
				shape.MoveTo(x, y)
			} else {
				shape.LineTo(x, y)
			}
		}
		shape.ClosePath()
	}
	shape.Draw(r.img, bounds, image.NewUniform(c), image.Point{})
	r.shape = nil
}

func (r *raster) polyline(points []point, width float64, c color.NRGBA) {
	for i, p := range points {
		if width > 1 { // joints and ends of thin lines are not visible
			r.add(disc(p, width/2))
		}
		if i == 0 {
			continue
		}
		from := points[i-1]
		length := math.Hypot(p.x-from.x, p.y-from.y)
		if length == 0 {
			continue
		}
		dx, dy := (p.y-from.y)/length*width/2, (from.x-p.x)/length*width/2
		r.add([]point{{from.x + dx, from.y + dy}, {p.x + dx, p.y + dy}, {p.x - dx, p.y - dy}, {from.x - dx, from.y - dy}})
	}
	r.fill(c)
}

// disc returns a polygon that looks like a disc.
func disc(middle point, radius float64) (points []point) {
	const corners = 16
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		points = append(points, point{middle.x + radius*cos, middle.y + radius*sin})
	}
	return points
}

func (r *raster) text(at point, s string, l look, anchor, degrees float64) {
	wide := r.letters.width(s, look{size: l.size * scale, bold: l.bold})
	if degrees == 0 {
		r.write(r.img, fixed.Point26_6{X: fixed.Int26_6((at.x*scale - wide*anchor) * 64),
			Y: fixed.Int26_6(at.y * scale * 64)}, s, l)
		return
	}
	size := int(l.size * scale)
	own := image.NewRGBA(image.Rect(0, 0, int(wide)+4, 2*size)) // the baseline is in the middle of its height
	r.write(own, fixed.P(2, size*3/2), s, l)
	t := &turned{text: own, pivot: point{2 + wide*anchor, float64(size) * 3 / 2}, at: point{at.x * scale, at.y * scale}}
	t.sin, t.cos = math.Sincos(-degrees * math.Pi / 180)
	draw.Draw(r.img, t.Bounds(), t, t.Bounds().Min, draw.Over)
}

// A turned is the picture of a text that is turned around one of its points. The kernels of golang.org/x/image/draw
// would add 340 kB to the program.
type turned struct {
	text     *image.RGBA
	pivot    point // stays in its place
	at       point // the place of pivot in the result
	sin, cos float64
}

// ColorModel returns that of the text.
func (t *turned) ColorModel() color.Model { return color.RGBAModel }

// Bounds returns the smallest rectangle that holds the turned picture.
func (t *turned) Bounds() image.Rectangle {
	var out image.Rectangle
	size := t.text.Bounds().Size()
	for _, corner := range []point{{0, 0}, {float64(size.X), 0}, {0, float64(size.Y)}, {float64(size.X), float64(size.Y)}} {
		dx, dy := corner.x-t.pivot.x, corner.y-t.pivot.y
		x, y := int(math.Floor(t.at.x+t.cos*dx-t.sin*dy)), int(math.Floor(t.at.y+t.sin*dx+t.cos*dy))
		out = out.Union(image.Rect(x, y, x+1, y+1))
	}
	return out
}

// At returns the mean of the four pixels around the middle of a pixel of the result, by their distances.
func (t *turned) At(x, y int) color.Color {
	dx, dy := float64(x)+0.5-t.at.x, float64(y)+0.5-t.at.y
	fromX, fromY := t.pivot.x+t.cos*dx+t.sin*dy-0.5, t.pivot.y-t.sin*dx+t.cos*dy-0.5
	left, top := math.Floor(fromX), math.Floor(fromY)
	var sum [4]float64
	for i := range 4 {
		right, below := i%2, i/2
		weight := math.Abs(float64(1-right)-(fromX-left)) * math.Abs(float64(1-below)-(fromY-top))
		c := t.text.RGBAAt(int(left)+right, int(top)+below)
		for k, v := range [4]uint8{c.R, c.G, c.B, c.A} {
			sum[k] += weight * float64(v)
		}
	}
	return color.RGBA{R: uint8(sum[0] + 0.5), G: uint8(sum[1] + 0.5), B: uint8(sum[2] + 0.5), A: uint8(sum[3] + 0.5)}
}

// write draws a text that begins at a point.
func (r *raster) write(img draw.Image, at fixed.Point26_6, s string, l look) {
	for _, part := range r.letters.runs(s, l.bold) {
		d := font.Drawer{Dst: img, Src: image.NewUniform(l.c), Face: r.letters.face(part.font, l.size*scale), Dot: at}
		d.DrawString(part.text)
		at = d.Dot
	}
}

func (r *raster) bytes() ([]byte, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, r.img); err != nil {
		return nil, fmt.Errorf("write PNG: %w", err)
	}
	return b.Bytes(), nil
}
