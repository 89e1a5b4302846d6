package show

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// A Timeline draws when the model and the tools of a turn worked. It shortens the waits between,
// such as for a person.
type Timeline struct {
	Bars         []timelineBar
	Model, Tools time.Duration
	Waited       time.Duration
	ModelCalls   int
	ToolCalls    int

	lang *text.Language
}

// A timelineBar is one call, or several calls that are too close together to be distinguished. X
// and W are its left edge and its width, in units of the drawing.
type timelineBar struct {
	Tool  bool
	X, W  string
	Title string
}

const (
	timelineWidth = 600.0
	leastBar      = 2.0
	manyBars      = 60                 // above this number, close bars are merged
	mergedWidth   = timelineWidth / 30 // the widest bar that merging makes
)

// Text describes the drawing, for screen readers.
func (p Timeline) Text() string {
	l := p.lang
	sentences := []string{l.N(int64(p.ModelCalls), "The model worked for %[2]s in %[1]d call.",
		"The model worked for %[2]s in %[1]d calls.", Duration(l, p.Model))}
	if p.ToolCalls > 0 {
		sentences = append(sentences, l.N(int64(p.ToolCalls), "Tools worked for %[2]s in %[1]d call.",
			"Tools worked for %[2]s in %[1]d calls.", Duration(l, p.Tools)))
	}
	if p.Waited >= time.Second {
		sentences = append(sentences, l.T("There was no activity for %s.", Duration(l, p.Waited)))
	}
	return strings.Join(sentences, " ")
}

// NewTimeline returns the drawing of spans; nil without spans.
func NewTimeline(l *text.Language, spans []store.Span) *Timeline {
	if len(spans) == 0 {
		return nil
	}
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b store.Span) int { return a.StartedAt.Compare(b.StartedAt) })
	p := &Timeline{lang: l}
	for _, s := range spans {
		p.count(s)
	}
	places, length := p.place(spans)
	p.draw(places, timelineWidth/float64(max(length, time.Millisecond)))
	return p
}

// count adds the duration of a span to the model's or the tools' sum.
func (p *Timeline) count(s store.Span) {
	d := Took(s.StartedAt, s.CompletedAt)
	if s.Call < 0 {
		p.Model, p.ModelCalls = p.Model+d, p.ModelCalls+1
		return
	}
	p.Tools, p.ToolCalls = p.Tools+d, p.ToolCalls+1
}

// A placedSpan is a span with its position on the axis, before scaling.
type placedSpan struct {
	store.Span
	from, to time.Duration
}

// place returns the positions of spans, which are sorted, and the length of the axis. A wait takes
// at most a twentieth of the working time.
func (p *Timeline) place(spans []store.Span) (places []placedSpan, length time.Duration) {
	longest := (p.Model + p.Tools) / 20
	end := spans[0].StartedAt // the time at the position length
	for _, s := range spans {
		// Nothing worked between end and the start of this span.
		if wait := s.StartedAt.Sub(end); wait > 0 {
			p.Waited += wait
			length, end = length+min(wait, longest), s.StartedAt
		}
		// Calls of one step run in parallel, so a span may begin before the last one ends.
		from := length - end.Sub(s.StartedAt)
		places = append(places, placedSpan{s, from, from + Took(s.StartedAt, s.CompletedAt)})
		if s.CompletedAt.After(end) {
			length, end = length+s.CompletedAt.Sub(end), s.CompletedAt
		}
	}
	return places, length
}

// openBar is the last bar of a row of the drawing. Further calls may be merged into it.
type openBar struct {
	bar      int // its index, plus one; 0 without a bar
	from, to float64
	calls    int
}

// draw adds the bars: one row for the model, one for the tools.
func (p *Timeline) draw(places []placedSpan, scale float64) {
	// Only a drawing with many bars merges them, because each bar is an element of the page.
	together := 0.0
	if len(places) > manyBars {
		together = mergedWidth
	}
	var rows [2]openBar
	for _, s := range places {
		from, to := float64(s.from)*scale, float64(s.to)*scale
		tool, l := s.Call >= 0, &rows[0]
		if tool {
			l = &rows[1]
		}
		if l.bar > 0 && to-l.from < together {
			l.to, l.calls = max(l.to, to), l.calls+1
			p.Bars[l.bar-1] = newBar(tool, l.from, l.to,
				p.lang.N(int64(l.calls), "%d call up to step %d", "%d calls up to step %d", s.Step+1))
			continue
		}
		title := p.lang.T("step %d: %s", s.Step+1, Duration(p.lang, Took(s.StartedAt, s.CompletedAt)))
		p.Bars = append(p.Bars, newBar(tool, from, to, title))
		*l = openBar{len(p.Bars), from, to, 1}
	}
}

// newBar returns a bar that is inside the drawing and wide enough to be seen.
func newBar(tool bool, from, to float64, title string) timelineBar {
	from = max(0, min(from, timelineWidth-leastBar))
	width := max(leastBar, min(to, timelineWidth)-from)
	units := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	return timelineBar{Tool: tool, X: units(from), W: units(width), Title: title}
}
