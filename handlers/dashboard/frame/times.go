package frame

import (
	"net/url"
	"strings"
	"time"

	"journeyman/store/db"
)

// LocalDate is the layout of the times that browsers send.
const LocalDate = "2006-01-02T15:04:05"

// TypedTime reads a time with the first of the layouts that fits.
func TypedTime(text string, zone *time.Location, layouts ...string) (t time.Time, ok bool) {
	// Browsers put a T between the date and the time, people a space.
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// FormTime reads a time of a form, in UTC, in the format of browsers or as people type it. It adds
// to f the values that it cannot read.
func FormTime(f *db.Fields, v url.Values, name string) time.Time {
	text := v.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := TypedTime(text, time.UTC, "2006-01-02T15:04", LocalDate, time.DateOnly, time.RFC3339)
	f.Check(ok, name, "must be a date and time such as 2026-01-31T12:00")
	return t
}
