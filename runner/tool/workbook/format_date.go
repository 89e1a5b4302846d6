package workbook

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// lastSerial is the number of the day after 31 December 9999, the last date in Excel.
const lastSerial = 2_958_466

// finishDate finds which m are minutes, and the digits of parts of seconds.
func (s *section) finishDate() {
	last := byte(0) // the part before
	for i := range s.tokens {
		t := &s.tokens[i]
		switch t.kind {
		case elapsedToken:
			last = t.text[0]
		case dateToken:
			t.text = strings.ToLower(t.text)
			switch {
			// m stands for minutes after hours and before seconds.
			case t.text[0] == 'm' && len(t.text) < 3 && (last == 'h' || s.nextPart(i) == 's'):
				t.text = strings.Replace(t.text, "m", "n", 2)
			case t.text[0] == 'a':
				continue
			}
			last = t.text[0]
		case digitToken:
			// Only zeros after the point of seconds are digits.
			after := i > 0 && (s.tokens[i-1].kind == pointToken || s.tokens[i-1].kind == fractionToken)
			if after && last == 's' && t.text == "0" {
				t.kind = fractionToken
			}
		}
	}
}

// nextPart returns the first letter of the next part of a date after the token i, 0 if there is none.
func (s *section) nextPart(i int) byte {
	for _, t := range s.tokens[i+1:] {
		if t.kind == dateToken || t.kind == elapsedToken {
			return strings.ToLower(t.text)[0]
		}
	}
	return 0
}

// A moment is a date and time as a workbook counts it.
type moment struct {
	year, month, day, weekday int
	seconds                   int     // since midnight
	part                      float64 // of a second
	total                     float64 // seconds since day 0
}

// momentOf returns the moment that a number represents, with parts of seconds of some digits.
func momentOf(n float64, digits int, old bool) moment {
	unit := math.Pow10(digits)
	total := math.Round(n*86_400*unit) / unit
	days := math.Floor(total / 86_400)
	m := moment{total: total}
	whole, part := math.Modf(total - days*86_400)
	m.seconds, m.part = int(whole), part
	switch {
	case old:
		m.setDay(time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC), days)
	case days == 0:
		m.year, m.month, m.day, m.weekday = 1900, 1, 0, 6 // so Excel shows it
	// Excel counts 29 February 1900, which did not exist.
	case days == 60:
		m.year, m.month, m.day, m.weekday = 1900, 2, 29, 3
	case days > 0 && days < 60:
		m.setDay(time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC), days)
	default:
		m.setDay(time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC), days)
	}
	return m
}

func (m *moment) setDay(day0 time.Time, days float64) {
	at := day0.AddDate(0, 0, int(days))
	m.year, m.month, m.day, m.weekday = at.Year(), int(at.Month()), at.Day(), int(at.Weekday())
}

// showDate shows a date, time or duration. ok is false for numbers that are none.
func (s *section) showDate(n float64, l *locale, old bool) (shown string, ok bool) {
	elapsed, half, digits := false, false, 0
	for _, t := range s.tokens {
		elapsed = elapsed || t.kind == elapsedToken
		half = half || t.kind == dateToken && t.text[0] == 'a'
		if t.kind == fractionToken {
			digits++
		}
	}
	if math.Abs(n) >= lastSerial || n < 0 && !elapsed {
		return "", false
	}
	m := momentOf(math.Abs(n), min(digits, 6), old)
	var b strings.Builder
	if n < 0 {
		b.WriteString("-")
	}
	fraction := strings.TrimPrefix(strconv.FormatFloat(m.part, 'f', max(digits, 1), 64), "0.")
	for _, t := range s.tokens {
		switch t.kind {
		case elapsedToken:
			b.WriteString(m.elapsed(t.text))
		case dateToken:
			b.WriteString(m.show(t.text, half, l))
		case fractionToken:
			b.WriteString(fraction[:min(1, len(fraction))])
			fraction = fraction[min(1, len(fraction)):]
		case pointToken:
			if digits > 0 {
				b.WriteString(l.decimal)
			} else {
				b.WriteString(t.text)
			}
		default:
			b.WriteString(t.text)
		}
	}
	return b.String(), true
}

// elapsed returns the hours, minutes or seconds of a duration, in total.
func (m moment) elapsed(part string) string {
	unit := map[byte]float64{'h': 3600, 'm': 60, 's': 1}[part[0]]
	return padded(int(m.total/unit), len(part))
}

func padded(n, width int) string {
	text := strconv.Itoa(n)
	return strings.Repeat("0", max(min(width, 20)-len(text), 0)) + text
}

// show returns a part of a date or time.
func (m moment) show(part string, half bool, l *locale) string {
	width := min(len(part), 2)
	switch part[0] {
	case 'y', 'e':
		if part == "yy" || part == "y" {
			return padded(m.year%100, 2)
		}
		return padded(m.year, 4)
	case 'm':
		return named(part, padded(m.month, width), l.months, m.month-1)
	case 'd':
		return named(part, padded(m.day, width), l.days, m.weekday)
	case 'h':
		hour := m.seconds / 3600
		if half {
			hour = (hour+11)%12 + 1
		}
		return padded(hour, width)
	case 'n':
		return padded(m.seconds/60%60, width)
	case 's':
		return padded(m.seconds%60, width)
	case 'a':
		names := []string{"AM", "PM"}
		if part == "a/p" {
			names = []string{"A", "P"}
		}
		return names[m.seconds/(12*3600)]
	}
	return ""
}

// named returns the number of a month or day, or its name for three letters and more.
func named(part, number string, names []string, i int) string {
	switch letters := []rune(names[i]); len(part) {
	case 1, 2:
		return number
	case 3:
		return string(letters[:3])
	case 5:
		return string(letters[:1])
	default:
		return string(letters)
	}
}
