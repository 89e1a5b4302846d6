// Package cron computes when a cron expression is due next. It reads five fields as Vixie cron
// does, in the time zone that the expression or the caller names. The times are correct across
// changes to and from daylight saving time.
//
// It is pure: the same expression and time give the same result. It imports no other package of
// this module. Its errors are messages for the author of the expression.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on machines that have none installed

	"github.com/go-co-op/gocron/v2"
)

// maxLength is the most characters of a cron expression.
const maxLength = 200

// A Schedule is a parsed cron expression. gocron's parser finds the wall clock times that match.
// This package computes the instants of these times where a zone skips or repeats hours, because
// the parser skips such a day.
type Schedule struct {
	engine    gocron.Cron // reads every time as UTC
	zone      *time.Location
	zoned     bool   // the expression names its zone
	everyHour bool   // the hour field lists all hours
	both      bool   // a time must match day and weekday
	days      uint64 // of the month, a bit each
	weekdays  uint64 // from Sunday, a bit each
}

// zonePrefix begins an expression that names its time zone.
const zonePrefix = "CRON_TZ="

// expand returns the five fields of an expression such as @daily, or "" if it is not
// supported.
func expand(nickname string) string {
	switch strings.ToLower(nickname) {
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	case "@monthly":
		return "0 0 1 * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@hourly":
		return "0 * * * *"
	}
	return ""
}

// Parse reads an expression of at most 200 characters. Its times are those of zone, unless the
// expression names its own with CRON_TZ. The error is a message for the author of the expression.
func Parse(expr string, zone *time.Location) (*Schedule, error) {
	c := &Schedule{zone: zone}
	if len(expr) > maxLength {
		return nil, fmt.Errorf("must have at most %d characters", maxLength)
	}
	if rest, ok := strings.CutPrefix(expr, zonePrefix); ok {
		name, fields, _ := strings.Cut(rest, " ")
		loaded, err := LoadZone(name)
		if err != nil {
			return nil, err
		}
		c.zone, c.zoned, expr = loaded, true, fields
	}
	// Other programs accept this form, so the error names the supported one.
	if strings.HasPrefix(expr, "TZ=") {
		return nil, fmt.Errorf("must name its time zone with %sZone", zonePrefix)
	}
	expr = strings.TrimSpace(expr)
	if strings.HasPrefix(expr, "@") {
		fields := expand(expr)
		if fields == "" {
			return nil, fmt.Errorf("%.20q is not supported: "+
				"use five fields or one of @hourly, @daily, @weekly, @monthly and @yearly", expr)
		}
		expr = fields
	}
	if err := c.fields(strings.Fields(expr)); err != nil {
		return nil, err
	}
	// 30 February is valid by its fields, and a schedule with it would never run.
	if c.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("names a date that never comes")
	}
	return c, nil
}

// NamesZone reports whether the expression names its own time zone.
func NamesZone(expr string) bool { return strings.HasPrefix(expr, zonePrefix) }

// Zone returns the time zone of the expression.
func (c *Schedule) Zone() *time.Location { return c.zone }

// LoadZone returns the time zone with that name in the IANA database.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("%.40q is not a time zone such as Europe/Berlin", name)
	}
	return zone, nil
}

// fields reads the five fields and passes them to gocron's parser as lists of numbers, a form with
// only one meaning.
func (c *Schedule) fields(fields []string) error {
	if len(fields) != 5 {
		return fmt.Errorf("must have five fields: minute, hour, day of month, month and day of week")
	}
	var sets [5]uint64
	ranges := fieldRanges()
	for i, r := range ranges {
		set, err := r.parse(fields[i])
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		sets[i] = set
	}
	const day, weekday = 2, 4
	text := make([]string, 5)
	for i, r := range ranges {
		text[i] = r.format(sets[i])
		// A field that lists every value becomes a star. A day field becomes a star only if it
		// began with one. Otherwise it is a restriction, and a time needs to match only one of the
		// two day fields.
		if bits.OnesCount64(sets[i]) == r.high-r.low+1 && (i != day && i != weekday || starred(fields[i])) {
			text[i] = "*"
		}
	}
	c.days, c.weekdays = sets[day], sets[weekday]
	c.everyHour = text[1] == "*"
	// As in Vixie cron, a day must match both fields if one begins with a star, and either of them
	// otherwise. The parser does not treat */2 as a star.
	c.both = (starred(fields[day]) || starred(fields[weekday])) && text[day] != "*" && text[weekday] != "*"
	c.engine = gocron.NewDefaultCron(false)
	// The parser searches five years ahead, and this date is shortly before a leap day.
	nearLeapDay := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := c.engine.IsValid(strings.Join(text, " "), time.UTC, nearLeapDay); err != nil {
		return fmt.Errorf("names a date that never comes")
	}
	return nil
}

func starred(field string) bool { return field[0] == '*' || field[0] == '?' }

// fieldRanges returns the ranges of the five fields of an expression.
func fieldRanges() [5]fieldRange {
	return [5]fieldRange{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// A fieldRange is the range of numbers that one field may hold.
type fieldRange struct {
	name      string
	low, high int
	words     []string // of low, low+1, ...
}

// parse returns the numbers that a field lists, one bit for each.
func (r fieldRange) parse(field string) (set uint64, err error) {
	for item := range strings.SplitSeq(field, ",") {
		one, err := r.item(item)
		if err != nil {
			return 0, err
		}
		set |= one
	}
	return set, nil
}

// item reads *, 3, 1-5, or one of them with a step such as */2.
func (r fieldRange) item(item string) (uint64, error) {
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var err error
		if step, err = number(stepText); err != nil || step < 1 {
			return 0, fmt.Errorf("%.20q is not a step: write a whole number from 1 after the slash", stepText)
		}
	}
	first, last, err := r.span(span, stepped)
	if err != nil {
		return 0, err
	}
	var set uint64
	for n := first; n <= last; n += step {
		set |= 1 << r.folded(n)
	}
	return set, nil
}

// span returns the first and the last number of *, 3 or 1-5. A single number before
// a step begins a span that runs to the end.
func (r fieldRange) span(span string, stepped bool) (first, last int, err error) {
	from, to, ranged := strings.Cut(span, "-")
	switch {
	case span == "*", span == "?" && (r.name == "day of month" || r.name == "day of week"):
		return r.low, r.high, nil
	case !ranged:
		first, err = r.value(from)
		if last = first; stepped {
			last = r.high
		}
		return first, max(first, last), err
	}
	if first, err = r.value(from); err != nil {
		return 0, 0, err
	}
	if last, err = r.value(to); err != nil {
		return 0, 0, err
	}
	if r.words != nil && r.low == 0 && last == 0 && first > 0 {
		last = 7 // so that fri-sun does not run backwards
	}
	if first > last {
		return 0, 0, fmt.Errorf("%.20q runs backwards", span)
	}
	return first, last, nil
}

// folded returns 0 for the 7 that some people write for Sunday, and any other n unchanged.
func (r fieldRange) folded(n int) int {
	if n > r.high {
		return r.low
	}
	return n
}

func (r fieldRange) value(text string) (int, error) {
	for i, word := range r.words {
		if strings.EqualFold(word, text) {
			return r.low + i, nil
		}
	}
	n, err := number(text)
	high := r.high
	if r.name == "day of week" {
		high = 7
	}
	if err == nil && n >= r.low && n <= high {
		return n, nil
	}
	if r.low == 1 && r.words == nil || r.high == 6 {
		return 0, fmt.Errorf("%.20q is not a number from %d to %d (L, W and # are not supported)", text, r.low, high)
	}
	return 0, fmt.Errorf("%.20q is not a number from %d to %d", text, r.low, high)
}

// number reads digits and nothing else: no sign, no spaces.
func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err
}

func (r fieldRange) format(set uint64) string {
	var list []string
	for n := r.low; n <= r.high; n++ {
		if set&(1<<n) != 0 {
			list = append(list, strconv.Itoa(n))
		}
	}
	return strings.Join(list, ",")
}

// Next returns the first time after t that matches, or the zero time if there is none.
//
// If the expression lists every hour, it follows elapsed time: an hour that the clocks skip does
// not occur, and an hour that they repeat occurs twice. Otherwise each wall clock time occurs once:
// a skipped one at the end of the gap, and a repeated one when the clocks first show it.
func (c *Schedule) Next(t time.Time) time.Time {
	if c.everyHour {
		return c.nextInstant(t)
	}
	n := wallClock(t.In(c.zone))
	for {
		if n = c.match(n); n.IsZero() {
			return n
		}
		if at := instant(n, c.zone); at.After(t) {
			return at
		}
		// n lies in the second run of a repeated hour, and its first run has passed.
	}
}

// nextInstant returns the first matching instant after t. It searches one period between two
// changes of the clock after the other.
func (c *Schedule) nextInstant(t time.Time) time.Time {
	t = t.In(c.zone)
	from := wallClock(t)
	for {
		n := c.match(from)
		if n.IsZero() {
			return n
		}
		_, offset := t.Zone()
		at := n.Add(-time.Duration(offset) * time.Second)
		end := offsetEnd(t)
		if end.IsZero() || at.Before(end) {
			return at.UTC()
		}
		t = end
		from = wallClock(t).Add(-time.Second) // so that the match may be the change itself
	}
}

// farthest is the time that match searches. Leap days on one weekday are up to 40 years apart.
const farthest = 45 * 365 * 24 * time.Hour

// match returns the first matching wall clock time after n, or the zero time if there is none.
// Both times have no zone, and are stored as UTC.
func (c *Schedule) match(n time.Time) time.Time {
	for end := n.Add(farthest); n.Before(end); {
		found := c.engine.Next(n)
		switch {
		case found.IsZero(): // the parser searches five years ahead, and 2100 has no leap day
			n = n.AddDate(4, 0, 0)
		case !c.both || c.days&(1<<found.Day()) != 0 && c.weekdays&(1<<found.Weekday()) != 0:
			return found
		default: // another day may match both fields
			n = time.Date(found.Year(), found.Month(), found.Day()+1, 0, 0, -1, 0, time.UTC)
		}
	}
	return time.Time{}
}

// wallClock returns the time that a clock in t's zone shows at t, stored as UTC.
func wallClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns the time at which the clocks of zone first show the wall clock time
// n. Where the clocks skip n, it returns the end of the gap.
func instant(n time.Time, zone *time.Location) time.Time {
	t := n.Add(-26 * time.Hour).In(zone) // no clock is that far ahead
	for {
		_, offset := t.Zone()
		at, end := n.Add(-time.Duration(offset)*time.Second), offsetEnd(t)
		switch {
		case at.Before(t):
			return t.UTC()
		case end.IsZero() || at.Before(end):
			return at.UTC()
		}
		t = end
	}
}

// offsetEnd returns a time after t before which the clocks of t's zone do not change, or the
// zero time if they never change again.
func offsetEnd(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		return t.Add(12 * time.Hour) // after 2037, Go returns a wrong end for the last day of some years
	}
	return end
}
