package workbook

import (
	"math"
	"time"
)

// serialOf returns the number of a day.
func serialOf(year int, month time.Month, day int) float64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Sub(day0).Hours() / 24
}

// day0 is the day before 31 December 1899. From March 1900 on, days count from it.
var day0 = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)

// dayOf returns the day with a number. ok is false if it is no day.
func dayOf(n float64) (day time.Time, ok bool) {
	if n < 0 || n >= lastSerial {
		return day, false
	}
	return day0.AddDate(0, 0, int(n)), true
}

// parseDate parses an ISO date, with or without a time. It returns the number of the date, and whether it has a time.
func parseDate(text string) (serial float64, clock, ok bool) {
	// Only such a text can be a date, and most texts are none.
	if len(text) < 10 || text[4] != '-' || text[7] != '-' {
		return 0, false, false
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04",
		"2006-01-02T15:04:05"} {
		at, err := time.Parse(layout, text)
		// Excel counts 29 February 1900, which did not exist, so dates of that year stay texts.
		if err == nil && at.Year() > 1900 {
			midnight := at.Truncate(24 * time.Hour)
			days := serialOf(midnight.Year(), midnight.Month(), midnight.Day())
			return days + at.Sub(midnight).Hours()/24, len(layout) > 10, true
		}
	}
	return 0, false, false
}

// ofDay makes a function of one day.
func ofDay(f func(time.Time) float64) function {
	return ofNumbers(1, 1, func(n []float64) any {
		day, ok := dayOf(n[0])
		if !ok {
			return errNumber
		}
		return f(day)
	})
}

// ofMonths makes a function of a day and a number of months.
func ofMonths(f func(day time.Time, months int) float64) function {
	return ofNumbers(2, 2, func(n []float64) any {
		day, ok := dayOf(n[0])
		if !ok || math.Abs(n[1]) > 120_000 {
			return errNumber
		}
		return f(day, int(n[1]))
	})
}

// monthEnd returns the number of the last day of the month that is some months after that of day.
func monthEnd(day time.Time, months int) float64 {
	return serialOf(day.Year(), day.Month()+time.Month(months)+1, 0)
}

func dateFunctions() map[string]function {
	clock := func(unit, turn float64) function {
		return ofNumbers(1, 1, func(n []float64) any {
			if n[0] < 0 {
				return errNumber
			}
			seconds := math.Round((n[0] - math.Floor(n[0])) * 86_400)
			return math.Mod(math.Floor(seconds/unit), turn)
		})
	}
	return map[string]function{
		"DATE": ofNumbers(3, 3, func(n []float64) any {
			if n[0] < 0 || n[0] > 9999 || math.Abs(n[1]) > 120_000 || math.Abs(n[2]) > 4e6 {
				return errNumber
			}
			year := int(n[0])
			if year < 1900 {
				year += 1900
			}
			return serialOf(year, time.Month(int(n[1])), int(n[2]))
		}),
		"TIME": ofNumbers(3, 3, func(n []float64) any {
			seconds := math.Mod(n[0]*3600+n[1]*60+n[2], 86_400)
			if seconds < 0 {
				return errNumber
			}
			return seconds / 86_400
		}),
		"YEAR":  ofDay(func(d time.Time) float64 { return float64(d.Year()) }),
		"MONTH": ofDay(func(d time.Time) float64 { return float64(d.Month()) }),
		"DAY":   ofDay(func(d time.Time) float64 { return float64(d.Day()) }),
		"HOUR":  clock(3600, 24), "MINUTE": clock(60, 60), "SECOND": clock(1, 60),
		"ISOWEEKNUM": ofDay(func(d time.Time) float64 { _, week := d.ISOWeek(); return float64(week) }),
		"WEEKDAY":    ofNumbers(1, 2, weekday),
		"EOMONTH":    ofMonths(monthEnd),
		"EDATE": ofMonths(func(d time.Time, months int) float64 {
			same := serialOf(d.Year(), d.Month()+time.Month(months), d.Day())
			return math.Min(same, monthEnd(d, months))
		}),
		"DAYS": ofNumbers(2, 2, func(n []float64) any { return math.Floor(n[0]) - math.Floor(n[1]) }),
		"DATEVALUE": ofText(func(s string) any {
			if n, _, ok := parseDate(s); ok {
				return math.Floor(n)
			}
			return errValue
		}),
		"TODAY":       {all: func(c *calculator, _ []any) any { return math.Floor(c.nowSerial()) }},
		"NOW":         {all: func(c *calculator, _ []any) any { return c.nowSerial() }},
		"NETWORKDAYS": {least: 2, most: 3, all: workDays},
		"DATEDIF":     {least: 3, most: 3, one: dateDifference},
	}
}

func (c *calculator) nowSerial() float64 { return c.now.Sub(day0).Hours() / 24 }

// weekday computes WEEKDAY: Sunday is 1, or Monday is 1 (kind 2) or 0 (kind 3).
func weekday(n []float64) any {
	day, ok := dayOf(n[0])
	if !ok {
		return errNumber
	}
	sunday := float64(day.Weekday())
	switch optional(n, 1, 1) {
	case 1, 17:
		return sunday + 1
	case 2, 11:
		return math.Mod(sunday+6, 7) + 1
	case 3:
		return math.Mod(sunday+6, 7)
	}
	return errNumber
}

// workDays computes NETWORKDAYS.
func workDays(c *calculator, args []any) any {
	from, ok := toNumber(c.single(args[0]))
	to, alsoOK := toNumber(c.single(args[1]))
	first, isDay := dayOf(min(from, to))
	_, isLast := dayOf(max(from, to))
	if !ok || !alsoOK || !isDay || !isLast {
		return errValue
	}
	holidays, failed := numbers(args[2:])
	if failed != nil {
		return failed
	}
	free := map[float64]bool{}
	for _, h := range holidays {
		free[math.Floor(h)] = true
	}
	days := int(math.Floor(max(from, to))-math.Floor(min(from, to))) + 1
	if c.steps += days; c.steps > maxSteps {
		return c.fail(tooMany)
	}
	count := 0.0
	for i := range days {
		day := first.AddDate(0, 0, i)
		if w := day.Weekday(); w != time.Saturday && w != time.Sunday && !free[serialOf(day.Year(), day.Month(), day.Day())] {
			count++
		}
	}
	return math.Copysign(count, to-from)
}

// dateDifference computes DATEDIF.
func dateDifference(a []any) any {
	from, ok := toNumber(a[0])
	to, alsoOK := toNumber(a[1])
	first, isDay := dayOf(from)
	last, isLast := dayOf(to)
	if !ok || !alsoOK || !isDay || !isLast || from > to {
		return errNumber
	}
	months := (last.Year()-first.Year())*12 + int(last.Month()-first.Month())
	if last.Day() < first.Day() {
		months--
	}
	switch toText(a[2]) {
	case "d", "D":
		return math.Floor(to) - math.Floor(from)
	case "m", "M":
		return float64(months)
	case "y", "Y":
		return float64(months / 12)
	case "ym", "YM":
		return float64(months % 12)
	}
	return errNumber
}
