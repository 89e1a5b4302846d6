//go:build !race

// The race detector makes every parser slower by another factor.

package vobject

import (
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	times, nested, numbered := growthtest.Times, growthtest.Nested, growthtest.Numbered
	growthtest.Check(t, []growthtest.Parser{
		{Name: "calendar", Fuzz: []string{"FuzzCalendar"},
			Read: func(in []byte) { _, _ = Calendar(in, "", never) },
			Shapes: growthtest.Within("BEGIN:VCALENDAR\nBEGIN:VEVENT\n", "", map[string]growthtest.Shape{
				"events": times("", "END:VEVENT\nBEGIN:VEVENT\n", ""), "nested": nested("", "BEGIN:A\n", "", "END:A\n"),
				"folded": times("DESCRIPTION:", "\n a", ""), "attendees": numbered("", "ATTENDEE;CN=%d:mailto:a\n", ""),
				"parameters": numbered("A", ";P%d=1", ":x"), "same parameter": times("A", ";P=1", ":x"), "quotes": times("A;P=", `"`, ":x"),
				"dates": times("EXDATE:", "20260101,", ""), "days": times("RRULE:FREQ=DAILY;BYDAY=", "MO,", "MO"),
				"months": times("RRULE:FREQ=DAILY;BYMONTH=", "1,", "1"), "rule": numbered("RRULE:FREQ=DAILY", ";A%d=1", ""),
				"escapes": times("DESCRIPTION:", `\n`, ""), "duration": times("DTSTART:20260101\nDURATION:P", "1D", ""),
				"busy": times("END:VEVENT\nBEGIN:VFREEBUSY\nFREEBUSY:", "a,", ""), "alarms": times("", "BEGIN:VALARM\nTRIGGER:-PT1M\nEND:VALARM\n", "")})},
		{Name: "contacts", Fuzz: []string{"FuzzContacts"},
			Read: func(in []byte) { _, _ = Contacts(in, "", never) },
			Shapes: growthtest.Within("BEGIN:VCARD\n", "\nEND:VCARD", map[string]growthtest.Shape{
				"contacts": times("", "END:VCARD\nBEGIN:VCARD\n", ""), "soft breaks": times("NOTE;QUOTED-PRINTABLE:", "=\n", ""),
				"quoted": times("NOTE;QUOTED-PRINTABLE:", "=41", ""), "fields": times("ADR:", ";", ""), "name": times("N:", "a;", ""),
				"phones": times("", "TEL;HOME:1\n", ""), "types": times("TEL", ";A", ":1"), "own": numbered("", "X-%d:1\n", ""),
				"letters": times("NOTE:", "\xe9", ""), "base64": times("NOTE;ENCODING=B:", "QUJD", "")})},
	})
}
