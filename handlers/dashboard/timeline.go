package dashboard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// A plot shows when the model and the tools of a turn were at work. What lies
// between, such as a wait for a person, is drawn short.
type plot struct {
	Bars         []plotBar
	Model, Tools time.Duration
	Waited       time.Duration
	ModelCalls   int
	ToolCalls    int
}

// A plotBar is one call of the plot, or several that lie too close together to be
// told apart, in units of the drawing.
type plotBar struct {
	Tool  bool
	X, W  string
	Title string
}

const (
	plotWidth   = 600.0
	leastBar    = 2.0
	barsOfPlot  = 60             // beyond these, neighbours become one
	coarseUnits = plotWidth / 30 // as wide as this
	bytesOfBar  = 110            // as it is sent
)

// Text says what the drawing shows.
func (p plot) Text() string {
	parts := []string{fmt.Sprintf("The model worked for %s in %s", showDuration(p.Model), plural(p.ModelCalls, "call"))}
	if p.ToolCalls > 0 {
		parts = append(parts, fmt.Sprintf("tools for %s in %s", showDuration(p.Tools), plural(p.ToolCalls, "call")))
	}
	text := strings.Join(parts, ", ")
	if p.Waited >= time.Second {
		text += fmt.Sprintf("; nothing worked for %s", showDuration(p.Waited))
	}
	return text + "."
}

func (p plot) size() int { return 400 + bytesOfBar*len(p.Bars) }

// plotOf draws spans; nil where nothing has worked.
func plotOf(spans []store.Span) *plot {
	if len(spans) == 0 {
		return nil
	}
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b store.Span) int { return a.StartedAt.Compare(b.StartedAt) })
	p := &plot{}
	for _, s := range spans {
		p.count(s)
	}
	places, length := p.place(spans)
	p.draw(places, plotWidth/float64(max(length, time.Millisecond)))
	return p
}

func (p *plot) count(s store.Span) {
	d := took(s.StartedAt, s.CompletedAt)
	if s.Call < 0 {
		p.Model, p.ModelCalls = p.Model+d, p.ModelCalls+1
		return
	}
	p.Tools, p.ToolCalls = p.Tools+d, p.ToolCalls+1
}

// A placedSpan is where a span lies on the axis of a plot, before it is scaled.
type placedSpan struct {
	store.Span
	from, to time.Duration
}

// place puts spans, which are sorted, on the axis and gives its length. A wait takes
// at most a twentieth of the time worked.
func (p *plot) place(spans []store.Span) (places []placedSpan, length time.Duration) {
	longest := (p.Model + p.Tools) / 20
	end := spans[0].StartedAt // lies at length
	for _, s := range spans {
		if wait := s.StartedAt.Sub(end); wait > 0 {
			p.Waited += wait
			length, end = length+min(wait, longest), s.StartedAt
		}
		from := length - end.Sub(s.StartedAt)
		places = append(places, placedSpan{s, from, from + took(s.StartedAt, s.CompletedAt)})
		if s.CompletedAt.After(end) {
			length, end = length+s.CompletedAt.Sub(end), s.CompletedAt
		}
	}
	return places, length
}

// A lane is the last bar of the model's row, or of the tools'.
type lane struct {
	bar      int // its index and one; 0 for none
	from, to float64
	calls    int
}

// draw makes the bars.
func (p *plot) draw(places []placedSpan, scale float64) {
	together := 0.0
	if len(places) > barsOfPlot {
		together = coarseUnits
	}
	var lanes [2]lane
	for _, s := range places {
		from, to := float64(s.from)*scale, float64(s.to)*scale
		tool, l := s.Call >= 0, &lanes[0]
		if tool {
			l = &lanes[1]
		}
		if l.bar > 0 && to-l.from < together {
			l.to, l.calls = max(l.to, to), l.calls+1
			p.Bars[l.bar-1] = newBar(tool, l.from, l.to, plural(l.calls, "call")+" up to step "+strconv.FormatInt(s.Step+1, 10))
			continue
		}
		title := fmt.Sprintf("step %d: %s", s.Step+1, showDuration(took(s.StartedAt, s.CompletedAt)))
		p.Bars = append(p.Bars, newBar(tool, from, to, title))
		*l = lane{len(p.Bars), from, to, 1}
	}
}

func newBar(tool bool, from, to float64, title string) plotBar {
	from = max(0, min(from, plotWidth-leastBar))
	width := max(leastBar, min(to, plotWidth)-from)
	units := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	return plotBar{Tool: tool, X: units(from), W: units(width), Title: title}
}
