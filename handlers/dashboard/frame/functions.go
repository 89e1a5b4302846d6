package frame

import (
	"fmt"
	"html/template"
	"time"

	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/view"
	"journeyman/store/people"
)

// functions returns the functions that templates may call. They write texts in a language.
func (fr *Frame) functions(l *text.Language) template.FuncMap {
	return template.FuncMap{
		"t":         l.T,
		"tn":        countedText(l),
		"th":        l.HTML,
		"icon":      fr.Icon,
		"state":     show.TranslatedState(l),
		"glyph":     fr.Glyph,
		"host":      func() string { return fr.host },
		"version":   func() string { return fr.Version },
		"asset":     fr.assets.address,
		"time":      func(v any) template.HTML { return fr.showTime(l, v) },
		"role":      func(role people.Role) string { return l.T(show.Role(role)) },
		"credits":   func(v float64) string { return show.Credits(l, v) },
		"bytes":     func(n int64) string { return show.Bytes(l, n) },
		"duration":  func(by time.Duration) string { return show.Duration(l, by) },
		"count":     l.Count,
		"markdown":  show.Prose{Language: l}.HTML,
		"coloured":  show.Coloured,
		"field":     newField,
		"amount":    newAmount,
		"exactTime": func(t time.Time) string { return show.ExactTime(l, t) },
		"base":      func() string { return fr.BaseURL },
		"tokens":    show.Tokens,
		"inc":       func(i int) int { return i + 1 },
		"trigger":   func(from people.Trigger) string { return show.Trigger(l, from) },
		"taskPath":  view.TaskPath,
	}
}

// showTime returns the distance of a time from now. A tooltip has the exact time.
func (fr *Frame) showTime(l *text.Language, v any) template.HTML {
	var t time.Time
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v != nil {
			t = *v
		}
	}
	if t.IsZero() {
		return template.HTML(template.HTMLEscapeString(l.T("never"))) //nolint:gosec // a constant text
	}
	exact := t.UTC().Format("2006-01-02 15:04:05 UTC")
	words := template.HTMLEscapeString(show.Relative(l, t.UTC(), fr.Now()))
	tag := fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.UTC().Format(time.RFC3339), exact, words)
	return template.HTML(tag) //nolint:gosec // digits and constant texts
}

// Month returns the name of the month of a time.
func (r *Request) Month(t time.Time) string {
	return r.T([]text.Key{"January", "February", "March", "April", "May", "June", "July", "August", "September",
		"October", "November", "December"}[t.Month()-1])
}

// countedText returns the template function tn, which takes any integer.
func countedText(l *text.Language) func(n any, one, many text.Key, values ...any) (string, error) {
	return func(n any, one, many text.Key, values ...any) (string, error) {
		switch n := n.(type) {
		case int:
			return l.N(int64(n), one, many, values...), nil
		case int64:
			return l.N(n, one, many, values...), nil
		}
		return "", fmt.Errorf("tn: %T is no number of things", n)
	}
}
