package show

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/ordertest"
)

func TestPrettyJSON(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for raw, want := range map[string]string{
		`{"b":1,"a":[]}`:                       "{\n  \"b\": 1,\n  \"a\": []\n}",
		`"a\nb"`:                               "a\nb",
		`{"x":"\u003cb\u003e \u00e9"}`:         "{\n  \"x\": \"<b> é\"\n}",
		`{"x":"\u202e \u0000 \u0022 \\u003c"}`: "{\n  \"x\": \"\\u202e \\u0000 \\u0022 \\\\u003c\"\n}",
		`{"x":"\ud83d\ude00"}`:                 "{\n  \"x\": \"\\ud83d\\ude00\"\n}",
		`{"cut`:                                `{"cut`,
		``:                                     ``,
		`12345678901234567890`:                 `12345678901234567890`,
	} {
		is.Equal(JSON(json.RawMessage(raw)), want)
	}
}

// FuzzExcerpts truncates texts. The cut must not split a character, and html/template must not
// write more bytes than requested. Pretty JSON must have the same value as before.
func FuzzExcerpts(f *testing.F) {
	f.Add(`{"a":"<\u003c\\u003c"}`, 10)
	f.Add("\"'&+<>\x00é\xff", 7)
	page := template.Must(template.New("").Parse(`{{.}}`))
	f.Fuzz(func(t *testing.T, text string, most int) {
		e := ExcerptOf(text, most)
		if !strings.HasPrefix(text, e.Text) || e.Cut != (len(e.Text) < len(text)) {
			t.Fatalf("%q is not the beginning of %q", e.Text, text)
		}
		var b bytes.Buffer
		is.New(t).NoErr(page.Execute(&b, e.Text))
		if utf8.ValidString(text) && b.Len() > max(most, 0) && e.Text != "" {
			t.Fatalf("%d bytes of %q, more than %d", b.Len(), b.String(), most)
		}
		var before, after any
		if json.Unmarshal([]byte(text), &before) != nil {
			return
		}
		if _, isText := before.(string); isText {
			return
		}
		if err := json.Unmarshal([]byte(JSON(json.RawMessage(text))), &after); err != nil {
			t.Fatalf("%q became %q", text, JSON(json.RawMessage(text)))
		}
	})
}

// TestPlot checks that the timelines of all kinds of turns stay inside the drawing.
func TestPlot(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_000_000)
	span := func(step, call, from, to int) store.Span {
		at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		return store.Span{Step: int64(step), Call: int64(call), StartedAt: at(from), CompletedAt: at(to)}
	}
	var long []store.Span
	for i := range 500 {
		long = append(long, span(i, -1, 20*i, 20*i+10), span(i, 0, 20*i+10, 20*i+19))
	}
	for name, tt := range map[string]struct {
		spans []store.Span
		bars  int
		says  string
	}{
		"one":           {[]store.Span{span(0, -1, 0, 1500)}, 1, "The model worked for 1.5 s in 1 call."},
		"no time":       {[]store.Span{span(0, -1, 0, 0), span(0, 0, 0, 0)}, 2, "The model worked for 0 ms in 1 call. Tools worked for 0 ms in 1 call."},
		"backwards":     {[]store.Span{span(0, -1, 10, 5)}, 1, "The model worked for 0 ms in 1 call."},
		"side by side":  {[]store.Span{span(0, -1, 0, 100), span(0, 0, 100, 300), span(0, 1, 100, 200)}, 3, "Tools worked for 300 ms in 2 calls."},
		"a long wait":   {[]store.Span{span(0, -1, 0, 1000), span(0, 0, 3_601_000, 3_602_000)}, 2, "There was no activity for 1 h 0 min."},
		"a clock set":   {[]store.Span{span(0, -1, 5000, 6000), span(1, -1, 0, 1000)}, 2, "in 2 calls. There was no activity for 4.0 s."},
		"many, grouped": {long, 60, "in 500 calls. Tools worked for 4.5 s in 500 calls"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			p := NewTimeline(text.English(), tt.spans)
			is.True(strings.Contains(p.Text(), tt.says))
			ordertest.AtMost(is, len(p.Bars), tt.bars)
			ordertest.AtLeast(is, len(p.Bars), min(tt.bars, 50))
			for _, bar := range p.Bars {
				var x, w float64
				is.NoErr(json.Unmarshal([]byte(bar.X), &x))
				is.NoErr(json.Unmarshal([]byte(bar.W), &w))
				ordertest.AtLeast(is, x, 0)
				ordertest.AtLeast(is, w, leastBar)
				ordertest.AtMost(is, x+w, timelineWidth+0.2)
			}
		})
	}
	is.New(t).True(NewTimeline(text.English(), nil) == nil)
}
