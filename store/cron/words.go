package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Words returns in English when a valid expression is due, such as "every Monday at 09:00".
// It returns "" for expressions that one short phrase cannot describe.
func Words(expr string) string {
	if rest, ok := strings.CutPrefix(expr, zonePrefix); ok {
		_, expr, _ = strings.Cut(rest, " ")
	}
	expr = strings.TrimSpace(expr)
	if fields := expand(expr); fields != "" {
		expr = fields
	}
	f := strings.Fields(expr)
	if len(f) != 5 {
		return ""
	}
	minute, isMinute := plain(f[0])
	hour, isHour := plain(f[1])
	anyDay, anyMonth, anyWeekday := starOnly(f[2]), starOnly(f[3]), starOnly(f[4])
	switch {
	case starOnly(f[1]) && anyDay && anyMonth && anyWeekday:
		return everyMinutes(f[0])
	case !isMinute || !isHour || !anyMonth:
		return ""
	}
	at := fmt.Sprintf(" at %02d:%02d", hour, minute)
	day, isDay := plain(f[2])
	switch {
	case anyDay && anyWeekday:
		return "every day" + at
	// If both the day and the weekday are given, cron runs on either. No case here covers
	// that.
	case anyDay && weekdays(f[4]) != "":
		return "every " + weekdays(f[4]) + at
	case isDay && anyWeekday:
		return fmt.Sprintf("on day %d of every month%s", day, at)
	}
	return ""
}

// everyMinutes returns in words the minutes of every hour.
func everyMinutes(field string) string {
	if minute, ok := plain(field); ok {
		return fmt.Sprintf("every hour at minute %d", minute)
	}
	step, found := strings.CutPrefix(field, "*/")
	switch n, ok := plain(step); {
	case starOnly(field) || found && ok && n == 1:
		return "every minute"
	case found && ok && n > 0 && 60%n == 0: // any other step is uneven at the end of the hour
		return fmt.Sprintf("every %d minutes", n)
	}
	return ""
}

// weekdays returns the names of the weekdays of a field.
func weekdays(field string) string {
	if strings.EqualFold(field, "mon-fri") || field == "1-5" {
		return "Monday to Friday"
	}
	if n, ok := plain(field); ok && n <= 7 {
		return time.Weekday(n % 7).String()
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(field, day.String()[:3]) {
			return day.String()
		}
	}
	return ""
}

func starOnly(field string) bool { return field == "*" || field == "?" }

// plain returns the number in a field that holds only a number.
func plain(field string) (int, bool) {
	n, err := strconv.Atoi(field)
	return n, err == nil && n >= 0 && n < 60 && field[0] != '+'
}
