// Package show draws what the pages show: Markdown, code with colours, differences, tables, plots, states,
// and the formats of numbers and times in the language of a page.
//
// It imports the texts, records of the store and of view, and pure functions, one of the runner among them. It knows
// no request, asks no store and writes no answer: the same values give the same HTML. All that it returns as HTML is
// escaped or sanitised.
package show

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/text"
	"journeyman/store/db"
	"journeyman/store/people"
)

// Relative returns the distance of a time from now as text, or its date if it is more than a month
// away.
func Relative(l *text.Language, t, now time.Time) string {
	by := t.Sub(now)
	far := by.Abs()
	future := by > 0
	// Each sentence is its own key, because the order of words differs between languages.
	in := func(n float64, one, many, oneAgo, manyAgo text.Key) string {
		if future {
			return l.N(int64(n), one, many)
		}
		return l.N(int64(n), oneAgo, manyAgo)
	}
	switch {
	case far < 10*time.Second:
		return l.T("just now")
	case far < time.Minute:
		return in(far.Seconds(), "in %d second", "in %d seconds", "%d second ago", "%d seconds ago")
	case far < time.Hour:
		return in(far.Minutes(), "in %d minute", "in %d minutes", "%d minute ago", "%d minutes ago")
	case far < 24*time.Hour:
		return in(far.Hours(), "in %d hour", "in %d hours", "%d hour ago", "%d hours ago")
	case far < 30*24*time.Hour:
		return in(far.Hours()/24, "in %d day", "in %d days", "%d day ago", "%d days ago")
	}
	return t.Format(l.T("2006-01-02"))
}

// Credits returns credits with two decimals. Very small amounts keep one digit.
func Credits(l *text.Language, v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) < 0.01:
		return l.Decimal(strconv.FormatFloat(v, 'g', 1, 64))
	}
	return l.Decimal(strconv.FormatFloat(v, 'f', 2, 64))
}

// Bytes returns a size in the largest unit that is not greater.
func Bytes(l *text.Language, n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(names) > 1 && v >= unit {
		v, names = v/unit, names[1:]
	}
	return l.Decimal(strconv.FormatFloat(v, 'f', 1, 64)) + " " + names[0]
}

// Duration returns a duration, rounded for people.
func Duration(l *text.Language, d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return l.Decimal(strconv.FormatFloat(d.Seconds(), 'f', 1, 64)) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// ExactTime returns a time as text, in its own zone.
func ExactTime(l *text.Language, t time.Time) string {
	day := []text.Key{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}[t.Weekday()]
	return l.T(day) + " " + t.Format(l.T("2 Jan 2006 15:04:05 MST"))
}

// Trigger returns the origin of a task.
func Trigger(l *text.Language, t people.Trigger) string {
	return cmp.Or(l.Label("trigger", string(t)), string(t))
}

// Tokens returns a number of tokens in thousands or millions, which is enough for a context
// window.
func Tokens(n int64) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 1000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// Capital returns a text with a capital letter.
func Capital(words string) string {
	first := db.FirstRunes(words, 1)
	return strings.ToUpper(first) + words[len(first):]
}

// Sentence returns a message, of the store or of a provider, with a capital letter and a full stop.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	text = Capital(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// Role returns the name of a role.
func Role(role people.Role) text.Key {
	switch role {
	case people.RoleOwner:
		return "Owner"
	case people.RoleAdmin:
		return "Admin"
	}
	return "Member"
}

// Took returns the time between two moments; 0 if the clock was set back.
func Took(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }

// CollapseSpace returns a text with its white space as single spaces.
func CollapseSpace(source string) string { return strings.Join(strings.Fields(source), " ") }
