package vobject

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"journeyman/runner/tool/charset"
)

// Calendar returns the events, tasks and notes of a calendar as text, with times in their own zones. encoding is the
// name of the file's encoding, "" to guess.
func Calendar(data []byte, encoding string, expired func() bool) ([]byte, error) {
	root := parse(charset.Text(data, encoding), expired)
	var out page
	found := false
	for _, calendar := range root.parts {
		if calendar.name != "VCALENDAR" {
			continue
		}
		found = true
		out.field("Calendar", calendar.get("X-WR-CALNAME").text()+calendar.get("NAME").text())
		out.field("Time zone", calendar.get("X-WR-TIMEZONE").text())
		out.field("Kind", methodOf(calendar.get("METHOD").text()))
		for _, part := range calendar.parts {
			if out.full() {
				break
			}
			out.entry(part)
		}
	}
	switch {
	case !found:
		return nil, errors.New("it has no calendar")
	case out.Len() == 0:
		out.WriteString("[the calendar has no entries]\n")
	case out.full() || expired():
		out.WriteString("[the rest is not read]\n")
	}
	return []byte(strings.ToValidUTF8(out.String(), "\ufffd")), nil
}

// methodOf explains what the sender of a calendar wants.
func methodOf(method string) string {
	switch strings.ToUpper(method) {
	case "REQUEST":
		return "invitation"
	case "CANCEL":
		return "cancellation"
	case "REPLY":
		return "reply to an invitation"
	case "COUNTER":
		return "proposal of another time"
	case "PUBLISH":
		return "announcement"
	}
	return strings.ToLower(method)
}

// entry adds an event, a task, a note or a time that is taken.
func (p *page) entry(o *object) {
	what := map[string]string{"VEVENT": "Event", "VTODO": "Task", "VJOURNAL": "Note", "VFREEBUSY": "Times taken"}[o.name]
	if what == "" {
		return // a time zone, or something that people do not see
	}
	summary := strings.Join(strings.Fields(o.get("SUMMARY").text()), " ")
	if summary == "" {
		summary = "(no title)"
	}
	p.WriteString("\n## " + what + ": " + summary + "\n")
	p.field("When", when(o))
	p.field("Due", moment(o.get("DUE")))
	p.field("Completed", moment(o.get("COMPLETED")))
	for _, rule := range o.all("RRULE") {
		p.field("Repeats", recurrence(rule.value))
	}
	p.field("Also on", moments(o.all("RDATE")))
	p.field("Except on", moments(o.all("EXDATE")))
	p.field("In place of the one on", moment(o.get("RECURRENCE-ID")))
	p.field("Where", o.get("LOCATION").text())
	p.field("Organizer", person(o.get("ORGANIZER"), ""))
	for _, attendee := range o.all("ATTENDEE") {
		p.field("Attendee", person(attendee, "accepted declined tentative needs-action delegated"))
	}
	for _, f := range []struct{ name, label string }{{"STATUS", "Status"}, {"PRIORITY", "Priority"},
		{"PERCENT-COMPLETE", "Percent complete"}, {"CATEGORIES", "Categories"}, {"CLASS", "Class"}, {"URL", "Web"},
		{"CONTACT", "Contact"}, {"COMMENT", "Comment"}, {"DESCRIPTION", "Description"}} {
		for _, property := range o.all(f.name) {
			value := property.text()
			if f.name == "STATUS" || f.name == "CLASS" {
				value = strings.ToLower(value)
			}
			p.field(f.label, value)
		}
	}
	for _, property := range o.all("FREEBUSY") {
		p.field("Taken", strings.ReplaceAll(property.value, ",", "\n"))
	}
	p.attachments(o)
}

// attachments adds the attached files and the reminders of an entry.
func (p *page) attachments(o *object) {
	for _, a := range o.all("ATTACH") {
		name := a.parameters["FILENAME"] + a.parameters["X-FILENAME"]
		switch {
		case strings.EqualFold(a.parameters["ENCODING"], "base64"):
			p.field("Attached", fmt.Sprintf("%s (about %d bytes in this file)", name, len(a.value)*3/4))
		default:
			p.field("Attached", strings.TrimSpace(name+" "+a.text()))
		}
	}
	for _, alarm := range o.parts {
		if alarm.name == "VALARM" {
			p.field("Reminder", reminder(alarm.get("TRIGGER")))
		}
	}
}

// when returns the beginning and the end of an entry.
func when(o *object) string {
	start, end := o.get("DTSTART"), o.get("DTEND")
	if start.value == "" {
		return ""
	}
	from, whole := timeOf(start.value)
	to, _ := timeOf(end.value)
	text := moment(start)
	switch {
	case from.IsZero():
		return text
	case whole && !to.IsZero():
		// The end of whole days is the day after.
		if last := to.AddDate(0, 0, -1); last.After(from) {
			return text + " to " + day(last) + ", all day"
		}
		return text + ", all day"
	case whole && end.value == "" && o.get("DURATION").value == "":
		return text + ", all day"
	case !to.IsZero() && zone(start) == zone(end) && day(from) == day(to):
		return day(from) + from.Format(" 15:04") + " to " + to.Format("15:04") + zone(start)
	case end.value != "":
		return text + " to " + moment(end)
	}
	if lasts := duration(o.get("DURATION").value); lasts != "" {
		return text + ", for " + lasts
	}
	return text
}

// timeOf parses a date or a time. whole is true for a date, which is a whole day.
func timeOf(value string) (t time.Time, whole bool) {
	value = strings.TrimSuffix(strings.TrimSpace(value), "Z")
	for _, layout := range []string{"20060102T150405", "20060102T1504", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, false
		}
	}
	t, err := time.Parse("20060102", value)
	return t, err == nil
}

func day(t time.Time) string { return t.Format("Mon 2006-01-02") }

// moment returns a date or a time with its zone, as it is written in the file.
func moment(p property) string {
	if p.value == "" {
		return ""
	}
	t, whole := timeOf(p.value)
	switch {
	case t.IsZero():
		return p.text()
	case whole:
		return day(t)
	}
	return day(t) + t.Format(" 15:04") + zone(p)
}

// zone returns the zone of a time in parentheses, "" for a time that is the same in all zones.
func zone(p property) string {
	switch {
	case strings.HasSuffix(p.value, "Z"):
		return " (UTC)"
	case p.parameters["TZID"] != "":
		return " (" + p.parameters["TZID"] + ")"
	}
	return ""
}

// moments returns all times of several properties.
func moments(properties []property) string {
	var all []string
	for _, p := range properties {
		for value := range strings.SplitSeq(p.value, ",") {
			if len(all) == 200 {
				return strings.Join(all, ", ") + ", and more"
			}
			all = append(all, moment(property{value: value, parameters: p.parameters}))
		}
	}
	return strings.Join(all, ", ")
}

// person returns the name and the address of somebody, with the parameters that words lists.
func person(p property, states string) string {
	address := p.text()
	if len(address) > 7 && strings.EqualFold(address[:7], "mailto:") {
		address = address[7:]
	}
	text := address
	if name := p.parameters["CN"]; name != "" && !strings.EqualFold(name, address) {
		text = name + " <" + address + ">"
	}
	var notes []string
	for _, key := range []string{"ROLE", "PARTSTAT", "CUTYPE"} {
		value := strings.ToLower(p.parameters[key])
		switch value {
		case "", "individual", "req-participant":
			continue
		case "needs-action":
			value = "has not answered"
		case "opt-participant":
			value = "optional"
		case "non-participant":
			value = "for information"
		}
		notes = append(notes, value)
	}
	if states != "" && len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// reminder returns when a reminder comes.
func reminder(trigger property) string {
	value := strings.TrimSpace(trigger.value)
	switch lasts := duration(strings.TrimLeft(value, "+-")); {
	case lasts == "" && value == "":
		return ""
	case lasts == "":
		return moment(trigger)
	case strings.HasPrefix(value, "-"):
		return lasts + " before"
	default:
		return lasts + " after"
	}
}

// duration returns a duration such as P1DT2H30M in words, "" for anything else.
func duration(value string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(value, "+-"), "P")
	if !ok {
		return ""
	}
	units := map[byte]string{'W': "week", 'D': "day", 'H': "hour", 'M': "minute", 'S': "second"}
	var parts []string
	number := 0
	for i := range len(rest) {
		switch c := rest[i]; {
		case c >= '0' && c <= '9' && number < 1e6:
			number = number*10 + int(c-'0')
		case units[c] != "":
			if number != 0 {
				parts = append(parts, count(number, units[c]))
			}
			number = 0
		case c != 'T':
			return ""
		}
	}
	if len(parts) == 0 {
		return "0 minutes"
	}
	return strings.Join(parts, " ")
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
