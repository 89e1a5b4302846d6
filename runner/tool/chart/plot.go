package chart

import (
	"fmt"
	"image/color"
	"math"
)

// The size of a picture, in pixels of an SVG.
const (
	width, height = 800, 500
	margin        = 18.0
)

// palette has the colors of the series.
var palette = [maxSeries]color.NRGBA{{0x2f, 0x6d, 0xb5, 255}, {0xe8, 0x83, 0x2a, 255}, {0x3f, 0x9b, 0x57, 255},
	{0xcf, 0x43, 0x4b, 255}, {0x85, 0x64, 0xb8, 255}, {0x8c, 0x64, 0x4c, 255}, {0xd9, 0x72, 0xb8, 255},
	{0x6f, 0x6f, 0x6f, 255}, {0xb5, 0xa6, 0x2b, 255}, {0x2a, 0xaf, 0xbd, 255}, {0x1f, 0x3b, 0x70, 255},
	{0x9c, 0xb8, 0x4a, 255}}

var (
	white = color.NRGBA{255, 255, 255, 255}
	ink   = color.NRGBA{34, 34, 34, 255}
	gray  = color.NRGBA{95, 95, 95, 255}
	grid  = color.NRGBA{222, 222, 222, 255}
	edge  = color.NRGBA{120, 120, 120, 255}
)

// The looks of texts.
var (
	titleLook = look{18, true, ink}
	axisLook  = look{12.5, false, gray}
	nameLook  = look{13, false, ink}
	smallLook = look{11.5, false, ink}
)

// A drawing is a chart that is being drawn.
type drawing struct {
	*Input
	canvas
	letters *letters

	left, top, right, bottom float64 // edges of the space that is left
	x, y                     axis
}

// draw draws the chart.
func (in *Input) draw(c canvas, t *letters) {
	d := &drawing{Input: in, canvas: c, letters: t, left: margin, top: margin, right: width - margin, bottom: height - margin}
	if title := clean(in.Title); title != "" {
		d.text(point{d.left, d.top + 14}, t.fit(title, titleLook, d.right-d.left), titleLook, 0, 0)
		d.top += 34
	}
	if in.Kind == pie {
		d.pie()
		return
	}
	d.legend()
	switch in.Kind {
	case horizontal:
		d.horizontal()
	case scatter:
		d.scatter()
	default:
		d.upright()
	}
}

// legend names the series.
func (d *drawing) legend() {
	if len(d.Series) == 1 && (d.Kind != scatter || d.Series[0].Name == "") {
		return
	}
	x := d.left
	for i, s := range d.Series {
		name := d.letters.fit(d.name(i, s), nameLook, 240)
		wide := 18 + d.letters.width(name, nameLook) + 20
		if x+wide-20 > d.right && x > d.left {
			x, d.top = d.left, d.top+20
		}
		d.polygon(rect(x, d.top+1, 12, 12), palette[i])
		d.text(point{x + 18, d.top + 11.5}, name, nameLook, 0, 0)
		x += wide
	}
	d.top += 30
}

// name returns the name of a series.
func (d *drawing) name(i int, s Series) string {
	if name := clean(s.Name); name != "" {
		return name
	}
	return fmt.Sprint("Series ", i+1)
}

// titles writes the titles of the axes, and reserves their space.
func (d *drawing) titles() {
	if title := clean(d.XTitle); title != "" {
		title = d.letters.fit(title, axisLook, d.right-d.left)
		d.text(point{(d.left + d.right) / 2, d.bottom - 2}, title, axisLook, 0.5, 0)
		d.bottom -= 22
	}
	if title := clean(d.YTitle); title != "" {
		title = d.letters.fit(title, axisLook, d.bottom-d.top)
		d.text(point{d.left + 10, (d.top + d.bottom) / 2}, title, axisLook, 0.5, 90)
		d.left += 24
	}
}

// extent returns the least and the greatest value of the axis of values.
func (d *drawing) extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := range d.Labels {
		up, down := 0.0, 0.0
		for _, s := range d.Series {
			v := s.Values[i]
			if v == nil {
				continue
			}
			low, high = min(low, *v), max(high, *v)
			up, down = up+max(*v, 0), down+min(*v, 0)
		}
		if d.Kind == stacked {
			low, high = min(low, down), max(high, up)
		}
	}
	// Lengths and areas are compared from zero on. A line can begin above it.
	if d.Kind != lines || low > 0 && low < high/2 {
		low = min(low, 0)
	}
	if d.Kind != lines {
		high = max(high, 0)
	}
	return low, high
}

// valueAxis draws the axis of values at the left side, and the grid. It reserves the space for the labels.
func (d *drawing) valueAxis(a axis, bottom float64) axis {
	a.from, a.to = bottom, d.top+6
	wide := 0.0
	for _, v := range a.ticks() {
		wide = max(wide, d.letters.width(a.label(v), axisLook))
	}
	d.left += wide + 8
	for _, v := range a.ticks() {
		y := a.at(v)
		d.polyline([]point{{d.left, y}, {d.right, y}}, 1, grid)
		d.text(point{d.left - 7, y + 4.3}, a.label(v), axisLook, 1, 0)
	}
	return a
}

// zero draws the line from which values are measured.
func (d *drawing) zero() {
	y := d.y.at(max(d.y.low, min(0, d.y.high)))
	d.polyline([]point{{d.left, y}, {d.right, y}}, 1, edge)
}

// upright draws a chart whose values point upwards.
func (d *drawing) upright() {
	low, high := d.extent()
	d.titles()
	// The labels may need the space at the bottom that the axis gets, so the width is only estimated here.
	slot := (d.right - d.left - 50) / float64(len(d.Labels))
	labels := d.planLabels(slot)
	if labels.degrees > 0 { // the first label begins left of the axis
		d.left = max(d.left, labels.wide*0.72-slot/2-8)
	}
	d.y = d.valueAxis(newAxis(low, high, 6), d.bottom-labels.high)
	slot = (d.right - d.left) / float64(len(d.Labels))
	middle := func(i int) float64 { return d.left + (float64(i)+0.5)*slot }
	switch d.Kind {
	case bar:
		d.bars(slot)
	case stacked:
		d.stacks(slot)
	default:
		for i, s := range d.Series {
			d.line(i, s, middle)
		}
	}
	d.zero()
	d.drawLabels(labels, middle)
}

// A labelPlan says how the labels below a chart are written.
type labelPlan struct {
	step    int     // every step-th label is written
	degrees float64 // they are turned
	high    float64 // space below the chart
	wide    float64 // width of the longest label that is shown
	most    float64 // width to which labels are shortened
}

// planLabels chooses horizontal labels if they fit, else turned ones, and leaves out some if there are many.
func (d *drawing) planLabels(slot float64) labelPlan {
	widest := 0.0
	for _, label := range d.Labels {
		widest = max(widest, d.letters.width(label, axisLook))
	}
	const line, longest = 18, 150
	turned := labelPlan{step: 1, degrees: 45, wide: min(widest, longest), high: min(widest, longest)*0.72 + 22, most: longest}
	if widest+8 <= slot {
		return labelPlan{step: 1, high: 24, most: slot}
	}
	if slot >= line { // each label has its place if it is turned
		return turned
	}
	if widest <= 90 {
		step := int(math.Ceil((widest + 14) / slot))
		return labelPlan{step: step, high: 24, most: 90}
	}
	turned.step = int(math.Ceil(line / slot))
	return turned
}

func (d *drawing) drawLabels(p labelPlan, middle func(int) float64) {
	for i := 0; i < len(d.Labels); i += p.step {
		label := d.letters.fit(d.Labels[i], axisLook, p.most)
		if p.degrees == 0 {
			d.text(point{middle(i), d.y.from + 18}, label, axisLook, 0.5, 0)
			continue
		}
		d.text(point{middle(i) + 4, d.y.from + 15}, label, axisLook, 1, p.degrees)
	}
}

// bars draws a group of bars for each label.
func (d *drawing) bars(slot float64) {
	wide := slot * 0.76 / float64(len(d.Series))
	shown := len(d.Series) == 1 && len(d.Labels) <= 20
	for i := range d.Labels {
		for k, s := range d.Series {
			v := s.Values[i]
			if v == nil {
				continue
			}
			x := d.left + float64(i)*slot + slot*0.12 + float64(k)*wide
			d.bar(x, wide-min(1, wide/8), 0, *v, palette[k])
			if text := format(*v); shown && d.letters.width(text, smallLook) < slot {
				d.text(point{x + wide/2, d.y.at(*v) + map[bool]float64{true: 14, false: -5}[*v < 0]}, text, smallLook, 0.5, 0)
			}
		}
	}
}

// stacks draws the bars of a label above each other, and negative ones below zero.
func (d *drawing) stacks(slot float64) {
	for i := range d.Labels {
		up, down := 0.0, 0.0
		for k, s := range d.Series {
			v := s.Values[i]
			if v == nil {
				continue
			}
			from := &up
			if *v < 0 {
				from = &down
			}
			d.bar(d.left+float64(i)*slot+slot*0.14, slot*0.72, *from, *from+*v, palette[k])
			*from += *v
		}
	}
}

// bar draws one upright bar.
func (d *drawing) bar(x, wide, from, to float64, c color.NRGBA) {
	top, bottom := d.y.at(max(from, to)), d.y.at(min(from, to))
	d.polygon(rect(x, top, wide, max(bottom-top, 0.5)), c)
}

// line draws a line, with gaps where values are missing.
func (d *drawing) line(k int, s Series, middle func(int) float64) {
	var part []point
	flush := func() {
		if d.Kind == area && len(part) > 1 {
			base := d.y.at(max(d.y.low, min(0, d.y.high)))
			shade := palette[k]
			shade.A = 90
			shape := append([]point{{part[0].x, base}}, part...)
			d.polygon(append(shape, point{part[len(part)-1].x, base}), shade)
		}
		d.polyline(part, 2.2, palette[k])
		part = nil
	}
	for i, v := range s.Values {
		if v == nil {
			if len(part) > 0 {
				flush()
			}
			continue
		}
		p := point{middle(i), d.y.at(*v)}
		part = append(part, p)
		if len(d.Labels) <= 40 {
			d.polygon(disc(p, 3.4), palette[k])
		}
	}
	if len(part) > 0 {
		flush()
	}
}
