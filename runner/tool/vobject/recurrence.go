package vobject

import (
	"strconv"
	"strings"
)

// recurrence returns a rule such as FREQ=WEEKLY;BYDAY=MO in words. A rule with parts that it does not know is
// returned as it is.
func recurrence(rule string) string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(rule, ";") {
		key, value, _ := strings.Cut(part, "=")
		parts[strings.ToUpper(strings.TrimSpace(key))] = strings.TrimSpace(value)
	}
	unit := map[string]string{"YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour",
		"MINUTELY": "minute"}[strings.ToUpper(parts["FREQ"])]
	if unit == "" {
		return rule
	}
	text := "every " + unit
	if n, err := strconv.Atoi(parts["INTERVAL"]); err == nil && n > 1 {
		text = "every " + count(n, unit)
	}
	for key, value := range parts {
		switch key {
		case "FREQ", "INTERVAL", "BYDAY", "BYMONTHDAY", "BYMONTH", "UNTIL", "COUNT", "WKST", "":
		case "BYSETPOS":
			if ordinal(value) == "" || strings.Contains(value, ",") {
				return rule
			}
		default:
			return rule
		}
	}
	days := days(parts["BYDAY"])
	switch {
	case days == "" && parts["BYDAY"] != "":
		return rule
	case parts["BYSETPOS"] != "":
		text += " on the " + ordinal(parts["BYSETPOS"]) + " of " + strings.ReplaceAll(days, " and ", ", ")
	case days != "":
		text += " on " + days
	}
	if list := parts["BYMONTHDAY"]; list != "" {
		text += " on day " + strings.ReplaceAll(strings.ReplaceAll(list, "-1", "last"), ",", ", ")
	}
	if list := parts["BYMONTH"]; list != "" {
		text += " in " + months(list)
	}
	if until := parts["UNTIL"]; until != "" {
		text += ", until " + moment(property{value: until})
	}
	if n, err := strconv.Atoi(parts["COUNT"]); err == nil {
		text += ", " + count(n, "time")
	}
	return text
}

// days returns a list such as MO,-1FR in words, "" if it has another form.
func days(list string) string {
	names := map[string]string{"MO": "Monday", "TU": "Tuesday", "WE": "Wednesday", "TH": "Thursday", "FR": "Friday",
		"SA": "Saturday", "SU": "Sunday"}
	var words []string
	for day := range strings.SplitSeq(strings.ToUpper(list), ",") {
		if len(day) < 2 || len(words) > 20 {
			return ""
		}
		name := names[day[len(day)-2:]]
		nth := day[:len(day)-2]
		if nth != "" {
			if ordinal(nth) == "" {
				return ""
			}
			name = "the " + ordinal(nth) + " " + name
		}
		if names[day[len(day)-2:]] == "" {
			return ""
		}
		words = append(words, name)
	}
	if len(words) < 2 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// ordinal returns a number such as 2 or -1 in words, "" for other numbers.
func ordinal(n string) string {
	return map[string]string{"1": "first", "+1": "first", "2": "second", "+2": "second", "3": "third", "+3": "third",
		"4": "fourth", "+4": "fourth", "5": "fifth", "+5": "fifth", "-1": "last", "-2": "second to last"}[n]
}

// months returns a list of numbers as names of months.
func months(list string) string {
	names := strings.Fields("January February March April May June July August September October November December")
	var words []string
	for month := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(month)
		if err != nil || n < 1 || n > 12 {
			return list
		}
		words = append(words, names[n-1])
	}
	return strings.Join(words, ", ")
}
