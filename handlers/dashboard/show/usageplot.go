package show

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
)

// The size of the plot in units of its drawing. The page scales the drawing, so the labels are text
// beside it and stay readable on phones.
const (
	dayWidth   = 10
	barWidth   = 8
	plotHeight = 200
)

// A Plot is the bar chart of a report: a bar for each day, with the parts stacked.
type Plot struct {
	Width, Height int
	Layers        []plotLayer
	Days          []plotDay
	Grid          []int    // heights of the lines
	Ticks         []string // labels of the lines, the highest first
	Dates         []string // labels under the plot, from the first day to the last
}

// A plotLayer is one part of all bars, as one path: a path for each bar would be far larger.
type plotLayer struct{ Class, Path string }

// A plotDay is a day with a tooltip.
type plotDay struct {
	X     int
	Title string
}

// PlotParts is the number of parts of a report that have a colour of their own.
const PlotParts = 5

// PartClass returns the class that colours the part of that rank.
func PartClass(rank int) string {
	if rank >= PlotParts {
		return "fr"
	}
	return "f" + strconv.Itoa(rank)
}

// Measured returns a measure of a sum in the unit that the page shows.
func Measured(u store.UsageSum, m store.UsageMeasure) float64 {
	if m == store.UsageCredits {
		return db.Credits(u.Cost)
	}
	return float64(u.Of(m))
}

// stack returns the values of each layer by day, the largest part at the bottom. The last layer
// holds the parts without their own colour. It also returns the highest sum of a day.
func stack(r store.UsageReport, m store.UsageMeasure) (layers [][]float64, highest float64) {
	rest := make([]float64, len(r.Days))
	for day := range rest {
		rest[day] = Measured(r.Days[day], m)
		highest = max(highest, rest[day])
	}
	for _, p := range r.Parts[:min(len(r.Parts), PlotParts)] {
		values := make([]float64, len(r.Days))
		for day := range values {
			values[day] = Measured(p.Days[day], m)
			rest[day] -= values[day]
		}
		layers = append(layers, values)
	}
	if len(r.Parts) > PlotParts || r.Rest > 0 {
		layers = append(layers, rest)
	}
	return layers, highest
}

// NewPlot returns the plot of a report in a language.
func NewPlot(l *text.Language, report store.UsageReport, m store.UsageMeasure) Plot {
	layers, highest := stack(report, m)
	ticks := scale(highest, m != store.UsageCredits)
	top := ticks[len(ticks)-1]
	p := Plot{Width: len(report.Days) * dayWidth, Height: plotHeight}
	base := make([]float64, len(report.Days)) // where the next layer begins
	for i, values := range layers {
		p.Layers = append(p.Layers, plotLayer{PartClass(i), bars(base, values, top)})
		for day := range base {
			base[day] += values[day]
		}
	}
	for i, sum := range report.Days {
		title := report.First.AddDate(0, 0, i).Format(l.T("2006-01-02")) + ": " + amountText(l, Measured(sum, m))
		p.Days = append(p.Days, plotDay{i * dayWidth, title})
	}
	for _, tick := range slices.Backward(ticks) {
		p.Ticks = append(p.Ticks, amountText(l, tick))
		p.Grid = append(p.Grid, heightOf(tick, top))
	}
	p.Dates = dateLabels(l, report.First, len(report.Days))
	return p
}

// heightOf returns the vertical position of a value in the drawing: 0 is the top.
func heightOf(value, top float64) int {
	return plotHeight - int(math.Round(value/top*plotHeight))
}

// bars returns the path of one layer of all bars. Each bar begins at base.
func bars(base, values []float64, top float64) string {
	var b strings.Builder
	for day, value := range values {
		if value <= 0 {
			continue
		}
		low, high := heightOf(base[day], top), heightOf(base[day]+value, top)
		if high == low {
			high-- // a small value must be visible
		}
		b.WriteString("M" + strconv.Itoa(day*dayWidth+(dayWidth-barWidth)/2) + " " + strconv.Itoa(low) +
			"V" + strconv.Itoa(high) + "h" + strconv.Itoa(barWidth) + "V" + strconv.Itoa(low) + "z")
	}
	return b.String()
}

// amountText returns a value of a plot: an integer with its thousands, else a few digits.
func amountText(l *text.Language, v float64) string {
	if v == math.Trunc(v) {
		return l.Count(int64(v))
	}
	return l.Decimal(strconv.FormatFloat(v, 'g', 3, 64))
}

// scale returns about four marks of an axis from 0 to highest or above, at round values. With whole
// it returns only integers, because there is no half turn.
func scale(highest float64, whole bool) (ticks []float64) {
	// An axis needs a height.
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
	for i := 0; ; i++ {
		ticks = append(ticks, float64(i)*step)
		if float64(i)*step >= highest {
			return ticks
		}
	}
}

// dateLabels returns the dates of up to five days, evenly spread from the first to the last.
func dateLabels(l *text.Language, first time.Time, days int) (labels []string) {
	const most = 5
	n := min(days, most)
	for i := range n {
		day := 0
		if n > 1 {
			day = i * (days - 1) / (n - 1)
		}
		// The key is a layout of package time: a translation sets the order of day and month.
		labels = append(labels, first.AddDate(0, 0, day).Format(l.T("2 Jan")))
	}
	return labels
}
