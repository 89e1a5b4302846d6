package chart

import (
	"fmt"
	"image/color"
	"math"
)

// horizontal draws bars that point to the right, for long labels.
func (d *drawing) horizontal() {
	low, high := d.extent()
	d.titles()
	wide := 0.0
	for _, label := range d.Labels {
		wide = max(wide, d.letters.width(label, nameLook))
	}
	wide = min(wide, 260)
	d.left += wide + 10
	bottom := d.bottom - 22
	d.x = newAxis(low, high, 6)
	d.x.from, d.x.to = d.left, d.right-max(24, d.letters.width(d.x.label(d.x.high), axisLook)/2)
	for _, v := range d.x.ticks() {
		d.polyline([]point{{d.x.at(v), d.top}, {d.x.at(v), bottom}}, 1, grid)
		d.text(point{d.x.at(v), bottom + 17}, d.x.label(v), axisLook, 0.5, 0)
	}
	slot := (bottom - d.top) / float64(len(d.Labels))
	size := look{min(nameLook.size, max(slot*0.85, 5)), false, ink}
	each := slot * 0.74 / float64(len(d.Series))
	zero := d.x.at(0)
	for i, label := range d.Labels {
		top := d.top + float64(i)*slot
		d.text(point{d.left - 8, top + slot/2 + size.size*0.36}, d.letters.fit(label, size, wide), size, 1, 0)
		for k, s := range d.Series {
			if v := s.Values[i]; v != nil {
				x := d.x.at(*v)
				d.polygon(rect(min(x, zero), top+slot*0.13+float64(k)*each, max(math.Abs(x-zero), 0.5), each-min(1, each/8)), palette[k])
				d.valueBeside(x, top+slot/2, *v, slot)
			}
		}
	}
	d.polyline([]point{{zero, d.top}, {zero, bottom}}, 1, edge)
}

// valueBeside writes the value of a bar at its end, if there is one series and enough space.
func (d *drawing) valueBeside(x, middle, v, slot float64) {
	if len(d.Series) > 1 || slot < 14 {
		return
	}
	text, anchor, gap := format(v), 0.0, 5.0
	if v < 0 {
		anchor, gap = 1, -5
	}
	// A bar that ends near the edge has its value inside.
	l := smallLook
	if x+d.letters.width(text, l)+gap > d.right {
		anchor, gap, l.c = 1, -5, white
	}
	d.text(point{x + gap, middle + 4}, text, l, anchor, 0)
}

// scatter draws a disc for each point.
func (d *drawing) scatter() {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	count := 0
	for _, s := range d.Series {
		for _, p := range s.Points {
			count++
			for i := range p {
				low[i], high[i] = min(low[i], p[i]), max(high[i], p[i])
			}
		}
	}
	d.titles()
	bottom := d.bottom - 24
	d.y = d.valueAxis(newAxis(low[1], high[1], 6), bottom)
	d.x = newAxis(low[0], high[0], 7)
	d.x.from, d.x.to = d.left+4, d.right-max(20, d.letters.width(d.x.label(d.x.high), axisLook)/2)
	for _, v := range d.x.ticks() {
		d.polyline([]point{{d.x.at(v), d.y.to}, {d.x.at(v), bottom}}, 1, grid)
		d.text(point{d.x.at(v), bottom + 18}, d.x.label(v), axisLook, 0.5, 0)
	}
	d.polyline([]point{{d.left, bottom}, {d.right, bottom}}, 1, edge)
	radius := 4.0
	if count > 300 {
		radius = 2.2
	}
	for k, s := range d.Series {
		c := palette[k]
		c.A = 190
		for _, p := range s.Points {
			d.polygon(disc(point{d.x.at(p[0]), d.y.at(p[1])}, radius), c)
		}
	}
}

// pie draws the parts of a whole, clockwise from the top, and names them at the right.
func (d *drawing) pie() {
	s := d.Series[0]
	sum := 0.0
	for _, v := range s.Values {
		if v != nil {
			sum += *v
		}
	}
	radius := min((d.bottom-d.top)/2, 190)
	middle := point{d.left + radius + 20, (d.top + d.bottom) / 2}
	angle := -math.Pi / 2
	at := d.top + max((d.bottom-d.top-float64(len(d.Labels))*22)/2, 0) + 14
	for i, label := range d.Labels {
		v := s.Values[i]
		if v == nil {
			continue
		}
		share := *v / sum
		c := pieColor(i)
		d.slice(middle, radius, angle, share, c)
		percent := fmt.Sprintf("%.1f %%", share*100)
		x := middle.x + radius + 40
		d.polygon(rect(x, at-11, 13, 13), c)
		value := fmt.Sprintf(" %s (%s)", format(*v), percent)
		label = d.letters.fit(clean(label), nameLook, d.right-x-22-d.letters.width(value, nameLook)-8)
		d.text(point{x + 22, at}, label+" –"+value, nameLook, 0, 0)
		at += 22
		angle += share * 2 * math.Pi
	}
}

// slice draws one part with a white border, and its percentage if there is space.
func (d *drawing) slice(middle point, radius, from, share float64, c color.NRGBA) {
	on := func(angle, r float64) point {
		sin, cos := math.Sincos(angle)
		return point{middle.x + r*cos, middle.y + r*sin}
	}
	points := []point{middle}
	if share > 0.999999 {
		points = nil // the whole disc has no corner in the middle
	}
	steps := max(int(share*180), 1)
	for i := range steps + 1 {
		points = append(points, on(from+share*2*math.Pi*float64(i)/float64(steps), radius))
	}
	d.polygon(points, c)
	if share < 0.999999 {
		d.polyline([]point{on(from, radius), middle, on(from+share*2*math.Pi, radius)}, 1.4, white)
	}
	if share >= 0.045 {
		place := on(from+share*math.Pi, radius*0.68)
		d.text(point{place.x, place.y + 5}, fmt.Sprintf("%.0f %%", share*100), look{13, true, white}, 0.5, 0)
	}
}

// pieColor returns the color of a part. Colors that come again are lighter.
func pieColor(i int) color.NRGBA {
	c := palette[i%maxSeries]
	if i >= maxSeries {
		lighter := func(v uint8) uint8 { return v/2 + 127 }
		c = color.NRGBA{lighter(c.R), lighter(c.G), lighter(c.B), 255}
	}
	return c
}
