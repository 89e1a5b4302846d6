package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// functions are what templates may call.
func (d *Dashboard) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    d.assets.address,
		"time":     d.showTime,
		"credits":  showCredits,
		"bytes":    showBytes,
		"duration": showDuration,
		"count":    showCount,
		"markdown": showMarkdown,
		"field":    newField,
		"amount":   newAmount,
		"moment":   showMoment,
		"base":     func() string { return d.cfg.BaseURL },
		"plural":   func(n int64, what string) string { return plural(int(n), what) },
		"trigger":  showTrigger,
		"taskPath": taskPath,
	}
}

// showTime gives a time as how long ago it was, with the exact one on hover.
func (d *Dashboard) showTime(v any) template.HTML {
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
		return "never"
	}
	exact := t.UTC().Format("2006-01-02 15:04:05 UTC")
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, //nolint:gosec // digits and our own words
		t.UTC().Format(time.RFC3339), exact, relative(t.Sub(d.cfg.Now()), exact)))
}

// relative says how far a time lies from now. Beyond a month it is the exact one.
func relative(by time.Duration, exact string) string {
	far := by.Abs()
	var text string
	switch {
	case far < 10*time.Second:
		return "just now"
	case far < time.Minute:
		text = plural(int(far.Seconds()), "second")
	case far < time.Hour:
		text = plural(int(far.Minutes()), "minute")
	case far < 24*time.Hour:
		text = plural(int(far.Hours()), "hour")
	case far < 30*24*time.Hour:
		text = plural(int(far.Hours()/24), "day")
	default:
		return exact[:len("2006-01-02")]
	}
	if by > 0 {
		return "in " + text
	}
	return text + " ago"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return showCount(int64(n)) + " " + what + "s"
}

// showCredits gives credits to two digits, and very small ones to more.
func showCredits(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) < 0.01:
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// showBytes gives a size in the largest unit that leaves a number of at least one.
func showBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for len(names) > 1 && v >= unit {
		v, names = v/unit, names[1:]
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + names[0]
}

// showDuration rounds a duration to what a reader cares for.
func showDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// showTrigger says how a task came about.
func showTrigger(t store.Trigger) string {
	switch t {
	case store.TriggerAPI:
		return "API"
	case store.TriggerUI:
		return "dashboard"
	}
	return string(t)
}

// showCount puts commas between thousands.
func showCount(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}
