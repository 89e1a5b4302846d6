package dashboard

import (
	"bytes"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/wcharczuk/go-chart/v2"

	"journeyman/store"
)

// The size of a plot in units of its drawing, and how much room its axes need.
const (
	usagePlotWidth  = 760
	usagePlotHeight = 240
	plotTop         = 12
	plotSide        = 14
)

// A layer is a part of each bar of a plot: from the ground up to the sum of it and
// of the layers under it, so that the lower ones are drawn over it.
type layer struct {
	tops  []float64 // by day
	class string
}

// GetName is part of chart.Series.
func (l layer) GetName() string { return l.class }

// GetYAxis is part of chart.Series.
func (layer) GetYAxis() chart.YAxisType { return chart.YAxisPrimary }

// GetStyle is part of chart.Series. It names a class alone: colours are in the style
// sheet, which knows light from dark, and a page holds no style of its own.
func (l layer) GetStyle() chart.Style { return chart.Style{ClassName: l.class} }

// Validate is part of chart.Series.
func (layer) Validate() error { return nil }

// Render draws all bars as one path, which is a fraction of a path for each.
func (l layer) Render(r chart.Renderer, box chart.Box, xs, ys chart.Range, _ chart.Style) {
	l.GetStyle().WriteToRenderer(r)
	width := float64(xs.GetDomain()) / float64(len(l.tops))
	gap := math.Min(width*0.2, 6)
	drawn := false
	for day, top := range l.tops {
		y := box.Bottom - ys.Translate(top)
		if y >= box.Bottom {
			if top <= 0 {
				continue
			}
			y = box.Bottom - 1 // little is not nothing
		}
		left := box.Left + int(float64(day)*width+gap/2)
		right := max(box.Left+int(float64(day+1)*width-gap/2), left+1)
		r.MoveTo(left, box.Bottom)
		r.LineTo(left, y)
		r.LineTo(right, y)
		r.LineTo(right, box.Bottom)
		r.Close()
		drawn = true
	}
	if drawn {
		r.Fill()
	}
}

// A grid is the lines behind the bars; the library's own take no class.
type grid struct {
	layer
	ticks []chart.Tick
}

// Render draws them.
func (g grid) Render(r chart.Renderer, box chart.Box, _, ys chart.Range, _ chart.Style) {
	g.GetStyle().WriteToRenderer(r)
	for _, t := range g.ticks {
		r.MoveTo(box.Left, box.Bottom-ys.Translate(t.Value))
		r.LineTo(box.Right, box.Bottom-ys.Translate(t.Value))
	}
	r.Stroke()
}

// partsOfPlot is how many parts of a report have a colour of their own.
const partsOfPlot = 5

// stack makes layers of the largest parts of a report, and of all the rest of it,
// the largest part at the bottom. What it gives is in the order of drawing.
func stack(r store.UsageReport, m store.UsageMeasure) (layers []layer, highest float64) {
	all, sums := make([]float64, len(r.Days)), make([]float64, len(r.Days))
	for day := range all {
		all[day] = shown(r.Days[day], m)
		highest = max(highest, all[day])
	}
	for i, p := range r.Parts[:min(len(r.Parts), partsOfPlot)] {
		for day := range sums {
			sums[day] += shown(p.Days[day], m)
		}
		layers = append(layers, layer{slices.Clone(sums), partClass(i)})
	}
	if len(r.Parts) > partsOfPlot || r.Rest > 0 {
		layers = append(layers, layer{all, partClass(partsOfPlot)})
	}
	slices.Reverse(layers)
	return layers, highest
}

// partClass is the class that colours the part of that rank.
func partClass(rank int) string {
	if rank >= partsOfPlot {
		return "part-rest"
	}
	return "part-" + strconv.Itoa(rank)
}

// shown is a measure in the unit that people read.
func shown(u store.UsageSum, m store.UsageMeasure) float64 {
	if m == store.UsageCredits {
		return store.Credits(u.Cost)
	}
	return float64(u.Of(m))
}

// drawUsage draws a report: a bar a day.
func drawUsage(r store.UsageReport, m store.UsageMeasure) (template.HTML, error) {
	layers, highest := stack(r, m)
	ticks := scale(highest, m != store.UsageCredits)
	axis, high := chart.Style{ClassName: "axis"}, &chart.ContinuousRange{Max: ticks[len(ticks)-1].Value}
	c := chart.Chart{
		Width: usagePlotWidth, Height: usagePlotHeight,
		Background: chart.Style{ClassName: "back", Padding: chart.Box{Top: plotTop, Left: plotSide, Right: plotSide, Bottom: plotTop}},
		Canvas:     chart.Style{ClassName: "back"},
		XAxis: chart.XAxis{Style: axis, TickStyle: axis, Ticks: dayTicks(r.First, len(r.Days)), TickPosition: chart.TickPositionUnderTick,
			Range: &chart.ContinuousRange{Max: float64(len(r.Days))}, GridMajorStyle: chart.Hidden(), GridMinorStyle: chart.Hidden()},
		YAxisSecondary: chart.YAxis{Style: chart.Hidden()},
		YAxis: chart.YAxis{Style: axis, TickStyle: axis, Ticks: ticks, Range: high, Zero: chart.GridLine{Style: chart.Hidden()},
			GridMajorStyle: chart.Hidden(), GridMinorStyle: chart.Hidden()},
		Series: []chart.Series{grid{layer{class: "grid"}, ticks}},
	}
	for _, l := range layers {
		c.Series = append(c.Series, l)
	}
	var b bytes.Buffer
	if err := c.Render(chart.SVGWithCSS("", ""), &b); err != nil {
		return "", err
	}
	return template.HTML(b.String()), nil //nolint:gosec // numbers, dates and our own classes
}

// scale gives the marks of an axis from 0 to beyond highest: about four, at round
// values, whole ones for what is counted.
func scale(highest float64, whole bool) []chart.Tick {
	if highest <= 0 {
		highest = 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(highest/4)))
	step := unit * 10
	for _, k := range []float64{1, 2, 5} {
		if unit*k*4 >= highest {
			step = unit * k
			break
		}
	}
	if whole {
		step = math.Max(math.Round(step), 1)
	}
	var ticks []chart.Tick
	for i := 0; ; i++ {
		v := float64(i) * step
		ticks = append(ticks, chart.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
		if v >= highest {
			return ticks
		}
	}
}

// dayTicks marks up to eight days under the middle of their bars.
func dayTicks(first time.Time, days int) []chart.Tick {
	every := (days + 7) / 8
	ticks := []chart.Tick{{}} // the range of an axis is that of its ticks
	for i := 0; i < days; i += every {
		ticks = append(ticks, chart.Tick{Value: float64(i) + 0.5, Label: first.AddDate(0, 0, i).Format("2 Jan")})
	}
	return append(ticks, chart.Tick{Value: float64(days)})
}
