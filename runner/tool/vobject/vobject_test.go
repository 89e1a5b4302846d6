package vobject

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func never() bool { return false }

func TestCalendar(t *testing.T) {
	t.Parallel()
	calendar := func(lines ...string) string {
		return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCALENDAR\r\n"
	}
	event := func(lines ...string) string {
		return calendar("BEGIN:VEVENT\r\nSUMMARY:Team\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT")
	}
	const title = "\n## Event: Team\n"
	for name, tt := range map[string]struct{ file, want string }{
		"zone": {event("DTSTART;TZID=Europe/Berlin:20261201T100000", "DTEND;TZID=Europe/Berlin:20261201T113000"),
			title + "When: Tue 2026-12-01 10:00 to 11:30 (Europe/Berlin)\n"},
		"over midnight": {event("DTSTART:20261201T230000Z", "DTEND:20261202T010000Z"),
			title + "When: Tue 2026-12-01 23:00 (UTC) to Wed 2026-12-02 01:00 (UTC)\n"},
		"two zones": {event(`DTSTART;TZID="America/New_York":20261201T100000`, "DTEND;TZID=Europe/Berlin:20261201T180000"),
			title + "When: Tue 2026-12-01 10:00 (America/New_York) to Tue 2026-12-01 18:00 (Europe/Berlin)\n"},
		"no zone":    {event("DTSTART:20261201T100000", "DURATION:PT1H30M"), title + "When: Tue 2026-12-01 10:00, for 1 hour 30 minutes\n"},
		"whole day":  {event("DTSTART;VALUE=DATE:20261224"), title + "When: Thu 2026-12-24, all day\n"},
		"one day":    {event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261225"), title + "When: Thu 2026-12-24, all day\n"},
		"three days": {event("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227"), title + "When: Thu 2026-12-24 to Sat 2026-12-26, all day\n"},
		"recurrence": {event("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;UNTIL=20270101T000000Z", "EXDATE;TZID=Europe/Berlin:20261207T100000,20261221T100000"),
			title + "Repeats: every 2 weeks on Monday and Wednesday, until Fri 2027-01-01 00:00 (UTC)\n" +
				"Except on: Mon 2026-12-07 10:00 (Europe/Berlin), Mon 2026-12-21 10:00 (Europe/Berlin)\n"},
		"people": {event("ORGANIZER;CN=Ann Lee:mailto:ann@example.com", "ATTENDEE;CN=\"Bo; Ek\";PARTSTAT=ACCEPTED:mailto:bo@example.com",
			"ATTENDEE;ROLE=OPT-PARTICIPANT;PARTSTAT=NEEDS-ACTION:MAILTO:cy@example.com"),
			title + "Organizer: Ann Lee <ann@example.com>\nAttendee: Bo; Ek <bo@example.com> (accepted)\nAttendee: cy@example.com (optional, has not answered)\n"},
		"folded and escaped": {event(`DESCRIPTION:One\, two\nthr`, ` ee \\n four`, "LOCATION:Room 1\\; left"),
			title + "Where: Room 1; left\nDescription: One, two\n  three \\n four\n"},
		"reminder":   {event("BEGIN:VALARM", "TRIGGER:-PT15M", "ACTION:DISPLAY", "END:VALARM"), title + "Reminder: 15 minutes before\n"},
		"invitation": {calendar("METHOD:REQUEST", "X-WR-CALNAME:Büro"), "Calendar: Büro\nKind: invitation\n"},
		"task": {calendar("BEGIN:VTODO", "SUMMARY:Pay", "DUE:20261201", "STATUS:NEEDS-ACTION", "PERCENT-COMPLETE:50", "END:VTODO"),
			"\n## Task: Pay\nDue: Tue 2026-12-01\nStatus: needs-action\nPercent complete: 50\n"},
		"vCalendar 1.0": {event("DESCRIPTION;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:gr=FC=DFe,=", "=0D=0Aende"),
			title + "Description: grüße,\n  ende\n"},
		"no end": {"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Open", "\n## Event: Open\n"},
		"empty":  {calendar(), "[the calendar has no entries]\n"},
		"attachment": {event("ATTACH;FMTTYPE=application/pdf;FILENAME=a.pdf;ENCODING=BASE64;VALUE=BINARY:QUJD", "ATTACH:https://example.com/b"),
			title + "Attached: a.pdf (about 3 bytes in this file)\nAttached: https://example.com/b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := Calendar([]byte(tt.file), "", never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
	_, err := Calendar([]byte("nothing"), "", never)
	is.New(t).True(err != nil)
}

func TestRecurrence(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"FREQ=DAILY;COUNT=10":                           "every day, 10 times",
		"FREQ=MONTHLY;BYDAY=-1FR":                       "every month on the last Friday",
		"FREQ=MONTHLY;BYDAY=2TU,4TU":                    "every month on the second Tuesday and the fourth Tuesday",
		"FREQ=MONTHLY;BYMONTHDAY=1,15":                  "every month on day 1, 15",
		"FREQ=YEARLY;BYMONTH=5;BYDAY=2SU":               "every year on the second Sunday in May",
		"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1": "every month on the last of Monday, Tuesday, Wednesday, Thursday, Friday",
		"FREQ=YEARLY;BYWEEKNO=20":                       "FREQ=YEARLY;BYWEEKNO=20", // not plain: as it is
		"FREQ=WEEKLY;BYDAY=XX":                          "FREQ=WEEKLY;BYDAY=XX",
		"FREQ=MONTHLY;BYDAY=9MO":                        "FREQ=MONTHLY;BYDAY=9MO",
		"nonsense":                                      "nonsense",
		"freq=weekly;byday=mo;wkst=su;until=20270131":   "every week on Monday, until Sun 2027-01-31",
		"FREQ=WEEKLY;INTERVAL=1":                        "every week",
	} {
		is.New(t).Equal(recurrence(rule), want)
	}
}

func TestContacts(t *testing.T) {
	t.Parallel()
	card := func(lines ...string) string {
		return "BEGIN:VCARD\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCARD\r\n"
	}
	for name, tt := range map[string]struct{ file, want string }{
		"3.0": {card("VERSION:3.0", "N:Lee;Ann;B.;Dr.;", "FN:Dr. Ann B. Lee", "ORG:Acme;Sales", "EMAIL;TYPE=INTERNET,WORK:ann@example.com",
			"TEL;TYPE=cell:+49 30 1", "ADR;TYPE=HOME:;;Street 1\\, back;Town;;12345;Land", "BDAY:19800131", "NOTE:one\\ntwo",
			"PHOTO;ENCODING=b;TYPE=JPEG:QUJD"),
			"## Dr. Ann B. Lee\n[photo of the contact, not shown]\nOrganization: Acme, Sales\nEmail (work): ann@example.com\nPhone (cell): +49 30 1\n" +
				"Address (home): Street 1, back, Town, 12345, Land\nBirthday: 1980-01-31\nNote: one\n  two\n\n"},
		"2.1": {card("VERSION:2.1", "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg", "TEL;WORK;VOICE:1",
			"NOTE;QUOTED-PRINTABLE;CHARSET=windows-1252:sch=F6n, =", "und gro=DF"), "## Jörg Müller\nPhone (work): 1\nNote: schön, und groß\n\n"},
		"4.0":           {card("VERSION:4.0", "FN:X", "item1.TEL;VALUE=uri;TYPE=\"voice,home\":tel:+1-2", "BDAY:--0131"), "## X\nPhone (home): +1-2\nBirthday: 01-31 (no year)\n\n"},
		"two":           {card("FN:A") + card("FN:B"), "## A\n\n## B\n\n"},
		"windows-1252":  {card("FN:J\xf6rg aus K\xf6ln"), "## Jörg aus Köln\n\n"},
		"no name":       {card("EMAIL:a@b"), "## (no name)\nEmail: a@b\n\n"},
		"UTF-16 marked": {"\xff\xfe" + wide(card("FN:é")), "## é\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := Contacts([]byte(tt.file), "", never)
			is.NoErr(err)
			// Pictures are mentioned where they are in the file.
			is.Equal(sorted(string(got)), sorted(tt.want))
		})
	}
	_, err := Contacts([]byte("nothing"), "", never)
	is.New(t).True(err != nil)
}

// sorted moves the line about a picture to the end.
func sorted(text string) string {
	const line = "[photo of the contact, not shown]\n"
	if strings.Contains(text, line) {
		return strings.Replace(text, line, "", 1) + line
	}
	return text
}

func wide(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteByte(byte(r))
		b.WriteByte(0)
	}
	return b.String()
}

func FuzzCalendar(f *testing.F) {
	f.Add("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=a:20260101T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nATTENDEE;CN=a:mailto:b\nEND:VEVENT\nEND:VCALENDAR")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Calendar([]byte(in), "", never)
		if err == nil && strings.ToValidUTF8(string(got), "") != string(got) {
			t.Fatalf("%q", got)
		}
	})
}

func FuzzContacts(f *testing.F) {
	f.Add("BEGIN:VCARD\nN;ENCODING=QUOTED-PRINTABLE:a=\n b;c\nADR;HOME:;;a;b\nBDAY:--0101\nEND:VCARD")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := Contacts([]byte(in), "", never)
		if err == nil && strings.ToValidUTF8(string(got), "") != string(got) {
			t.Fatalf("%q", got)
		}
	})
}
