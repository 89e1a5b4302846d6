package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// relative returns the distance of a time from now as text, or its date if it is more than a month
// away.
func relative(l *text.Language, t, now time.Time) string {
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

// showCredits returns credits with two decimals. Very small amounts keep one digit.
func showCredits(l *text.Language, v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) < 0.01:
		return l.Decimal(strconv.FormatFloat(v, 'g', 1, 64))
	}
	return l.Decimal(strconv.FormatFloat(v, 'f', 2, 64))
}

// showBytes returns a size in the largest unit that is not greater.
func showBytes(l *text.Language, n int64) string {
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

// showDuration returns a duration, rounded for people.
func showDuration(l *text.Language, d time.Duration) string {
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

// showExactTime returns a time as text, in its own zone.
func showExactTime(l *text.Language, t time.Time) string {
	day := []text.Key{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}[t.Weekday()]
	return l.T(day) + " " + t.Format(l.T("2 Jan 2006 15:04:05 MST"))
}

// showTrigger returns the origin of a task.
func showTrigger(l *text.Language, t store.Trigger) string {
	return cmp.Or(l.Label("trigger", string(t)), string(t))
}

// showTokens returns a number of tokens in thousands or millions, which is enough for a context
// window.
func showTokens(n int64) string {
	switch {
	case n >= 1_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 1000:
		return strconv.FormatInt(n/1000, 10) + "k"
	}
	return strconv.FormatInt(n, 10)
}

// capital returns a text with a capital letter.
func capital(words string) string {
	first := store.FirstRunes(words, 1)
	return strings.ToUpper(first) + words[len(first):]
}

// sentence returns a message, of the store or of a provider, with a capital letter and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = capital(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// roleText returns the name of a role.
func roleText(role store.Role) text.Key {
	switch role {
	case store.RoleOwner:
		return "Owner"
	case store.RoleAdmin:
		return "Admin"
	}
	return "Member"
}

// took returns the time between two moments; 0 if the clock was set back.
func took(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }
