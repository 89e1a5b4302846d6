package cron

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// The expected times were made with Python's zoneinfo by trying minute after
// minute, and those around changes of the clock worked out by hand besides.
func TestCronNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ expr, zone, after, want string }{
		{"* * * * *", "UTC", "2026-01-15T10:20:30Z", "2026-01-15T10:21:00Z"},
		{"0 * * * *", "UTC", "2026-01-15T10:00:00Z", "2026-01-15T11:00:00Z"},
		{"30 * * * *", "UTC", "2026-01-15T10:30:00Z", "2026-01-15T11:30:00Z"},
		{"*/15 * * * *", "UTC", "2026-01-15T10:46:00Z", "2026-01-15T11:00:00Z"},
		{"5-10/5 * * * *", "UTC", "2026-01-15T10:06:00Z", "2026-01-15T10:10:00Z"},
		{"50/4 * * * *", "UTC", "2026-01-15T10:55:00Z", "2026-01-15T10:58:00Z"},
		{"0 9 * * *", "UTC", "2026-01-15T08:59:59Z", "2026-01-15T09:00:00Z"},
		{"0 9 * * *", "UTC", "2026-01-15T09:00:00Z", "2026-01-16T09:00:00Z"},
		{"59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
		{"0 0 1 1 *", "UTC", "2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"0 9 * * 1-5", "UTC", "2026-01-16T09:00:00Z", "2026-01-19T09:00:00Z"},
		{"0 9 * * MON-FRI", "UTC", "2026-01-17T12:00:00Z", "2026-01-19T09:00:00Z"},
		{"0 9 * * 0", "UTC", "2026-01-12T00:00:00Z", "2026-01-18T09:00:00Z"},
		{"0 9 * * 7", "UTC", "2026-01-12T00:00:00Z", "2026-01-18T09:00:00Z"},
		{"0 9 * * 5-7", "UTC", "2026-01-17T10:00:00Z", "2026-01-18T09:00:00Z"},
		{"0 9 * * fri-sun", "UTC", "2026-01-18T10:00:00Z", "2026-01-23T09:00:00Z"},
		{"0 9 * * 6,7", "UTC", "2026-01-12T00:00:00Z", "2026-01-17T09:00:00Z"},
		{"0 12 13 * 5", "UTC", "2026-01-02T13:00:00Z", "2026-01-09T12:00:00Z"},
		{"0 12 13 * 5", "UTC", "2026-01-09T13:00:00Z", "2026-01-13T12:00:00Z"},
		{"0 12 13 * *", "UTC", "2026-01-14T00:00:00Z", "2026-02-13T12:00:00Z"},
		{"0 12 * * 5", "UTC", "2026-01-14T00:00:00Z", "2026-01-16T12:00:00Z"},
		{"0 12 ? * 5", "UTC", "2026-01-14T00:00:00Z", "2026-01-16T12:00:00Z"},
		{"0 12 */2 * 1", "UTC", "2026-01-06T00:00:00Z", "2026-01-19T12:00:00Z"},
		{"0 12 1-31 * 1", "UTC", "2026-01-06T00:00:00Z", "2026-01-06T12:00:00Z"},
		{"0 12 10 * */3", "UTC", "2026-01-11T00:00:00Z", "2026-05-10T12:00:00Z"},
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 1", "UTC", "2026-03-01T00:00:00Z", "2027-02-01T00:00:00Z"},
		{"0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"0 0 30 4,6 *", "UTC", "2026-05-01T00:00:00Z", "2026-06-30T00:00:00Z"},
		{"0 0 1 FEB,aug *", "UTC", "2026-03-01T00:00:00Z", "2026-08-01T00:00:00Z"},
		{"15 10-12 1 */6 *", "UTC", "2026-01-01T12:15:00Z", "2026-07-01T10:15:00Z"},
		{"0 0 28-31 2 *", "UTC", "2027-02-28T00:00:00Z", "2028-02-28T00:00:00Z"},
		{"@hourly", "UTC", "2026-01-15T10:59:59Z", "2026-01-15T11:00:00Z"},
		{"@daily", "UTC", "2026-01-15T00:00:00Z", "2026-01-16T00:00:00Z"},
		{"@midnight", "UTC", "2026-01-15T00:00:01Z", "2026-01-16T00:00:00Z"},
		{"@weekly", "UTC", "2026-01-15T00:00:00Z", "2026-01-18T00:00:00Z"},
		{"@monthly", "UTC", "2026-01-15T00:00:00Z", "2026-02-01T00:00:00Z"},
		{"@yearly", "UTC", "2026-01-15T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"@annually", "UTC", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "UTC", "2026-01-15T00:00:00Z", "2026-01-16T00:00:00Z"},
		{"CRON_TZ=UTC 0 9 * * *", "America/New_York", "2026-01-15T00:00:00Z", "2026-01-15T09:00:00Z"},
		{"CRON_TZ=America/Los_Angeles @daily", "UTC", "2026-01-15T08:00:00Z", "2026-01-16T08:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"0 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"0,30 2 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		{"0,30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"},
		{"30 1-3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"30 1-3 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"},
		{"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"},
		{"30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		{"*/20 * * * *", "Europe/Berlin", "2026-03-29T00:40:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z", "2026-10-26T01:30:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"},
		{"0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"0 * * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"*/30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"},
		{"0 */2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"},
		{"0 */2 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T01:00:00Z"},
		{"0 0 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z"},
		{"30 2 * * *", "America/New_York", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		{"30 * * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
		{"0 9 * * 0", "America/New_York", "2026-03-01T15:00:00Z", "2026-03-08T13:00:00Z"},
		{"0 9 * * 0", "America/New_York", "2026-10-25T15:00:00Z", "2026-11-01T14:00:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z"},
		{"30 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"},
		{"0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:30:00Z", "2026-10-03T16:00:00Z"},
		{"45 * * * *", "Australia/Lord_Howe", "2026-10-03T14:20:00Z", "2026-10-03T15:15:00Z"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-04T14:45:00Z"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"},
		{"45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"},
		{"0 2 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-04T15:30:00Z"},
		{"0 9 * * *", "Asia/Kathmandu", "2026-01-15T03:14:59Z", "2026-01-15T03:15:00Z"},
		{"0 9 * * *", "Asia/Kathmandu", "2026-01-15T03:15:00Z", "2026-01-16T03:15:00Z"},
		{"30 * * * *", "Asia/Kathmandu", "2026-01-15T00:00:00Z", "2026-01-15T00:45:00Z"},
		{"0 0 * * *", "Asia/Kathmandu", "1985-12-31T12:00:00Z", "1985-12-31T18:30:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"0 1 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T01:30:00Z"},
		{"30 23 * * *", "America/Sao_Paulo", "2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T03:00:00Z"},
		{"0 * * * *", "America/Sao_Paulo", "2018-02-18T01:00:00Z", "2018-02-18T02:00:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2019-11-03T01:00:00Z", "2019-11-03T03:00:00Z"},
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", "2011-12-30T10:00:00Z"},
		{"0 12 * * *", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"},
		{"0 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", "2026-02-15T01:00:00Z"},
		{"30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", "2026-02-15T01:30:00Z"},
		{"30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z", "2026-03-22T02:00:00Z"},
		{"30 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z"},
	} {
		t.Run(tt.expr+" "+tt.zone+" "+tt.after, func(t *testing.T) {
			is := is.New(t)
			zone, err := LoadZone(tt.zone)
			is.NoErr(err)
			c, err := Parse(tt.expr, zone)
			is.NoErr(err)
			after, err := time.Parse(time.RFC3339, tt.after)
			is.NoErr(err)
			is.Equal(c.Next(after).Format(time.RFC3339), tt.want)
		})
	}
}

// TestCronThroughAYear runs schedules through a year of clock changes: each day
// once, and every hour of real time once.
func TestCronThroughAYear(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"} {
		is := is.New(t)
		zone, err := LoadZone(name)
		is.NoErr(err)
		for _, expr := range []string{"0 0 * * *", "30 1 * * *", "15 2 * * *", "30 2 * * *", "59 2 * * *", "0 3 * * *", "45 23 * * *"} {
			c, err := Parse(expr, zone)
			is.NoErr(err)
			days := map[string]int{}
			for at := c.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, zone).Add(-time.Second)); at.In(zone).Year() == 2026; at = c.Next(at) {
				days[at.In(zone).Format(time.DateOnly)]++
			}
			is.Equal(len(days), 365) // days with a run
			for day, n := range days {
				if n != 1 {
					t.Errorf("%s %s: %d runs on %s", name, expr, n, day)
				}
			}
		}
	}
	is := is.New(t)
	zone, err := LoadZone("Europe/Berlin")
	is.NoErr(err)
	c, err := Parse("7 * * * *", zone)
	is.NoErr(err)
	at, n := c.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), 0
	for ; at.Year() == 2026; n++ {
		next := c.Next(at)
		is.Equal(next.Sub(at), time.Hour) // of real time
		at = next
	}
	is.Equal(n, 365*24)
}

// TestCronNextMovesOn looks for times that do not come after what they follow, over
// changes of the clock in many zones.
func TestCronNextMovesOn(t *testing.T) {
	is := is.New(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(4, 2))
	for _, name := range []string{"Europe/Berlin", "Pacific/Apia", "Africa/Monrovia", "America/Sao_Paulo", "Antarctica/Troll", "Asia/Manila"} {
		zone, err := LoadZone(name)
		is.NoErr(err)
		for _, expr := range []string{"* * * * *", "*/7 2 * * *", "0 0 * * *", "30 */3 1-7 * 1", "5 4 */9 * 2-4"} {
			c, err := Parse(expr, zone)
			is.NoErr(err)
			for range 200 {
				after := time.Unix(random.Int64N(4e9)-1e9, random.Int64N(1e9))
				next := c.Next(after)
				again := c.Next(next.Add(-time.Nanosecond))
				if !next.After(after) || !again.Equal(next) {
					t.Fatalf("%s %s: after %v comes %v, and just before that %v", name, expr, after.UTC(), next, again)
				}
			}
		}
	}
}

func TestCronRefused(t *testing.T) {
	t.Parallel()
	for expr, says := range map[string]string{
		"":                                      "five fields",
		"* * * *":                               "five fields",
		"0 * * * * *":                           "five fields",
		"@every 5m":                             "not supported",
		"@reboot":                               "not supported",
		"@":                                     "not supported",
		"60 * * * *":                            `minute: "60" is not a number from 0 to 59`,
		"-1 * * * *":                            `minute: "" is not`,
		"+1 * * * *":                            `minute: "+1" is not`,
		"1.5 * * * *":                           `minute: "1.5" is not`,
		"0x5 * * * *":                           `minute: "0x5" is not`,
		"٣ * * * *":                             "minute: ",
		"* 24 * * *":                            `hour: "24" is not a number from 0 to 23`,
		"* * 0 * *":                             `day of month: "0" is not a number from 1 to 31`,
		"* * 32 * *":                            "from 1 to 31",
		"* * * 13 *":                            `month: "13" is not a number from 1 to 12`,
		"* * * january *":                       `month: "january" is not`,
		"* * * * 8":                             "day of week: \"8\" is not a number from 0 to 7",
		"* * L * *":                             "L, W and # are not supported",
		"* * LW * *":                            "L, W and # are not supported",
		"* * 15W * *":                           "L, W and # are not supported",
		"* * L-3 * *":                           "L, W and # are not supported",
		"* * * * 5L":                            "L, W and # are not supported",
		"* * * * 5#3":                           "L, W and # are not supported",
		"* * * * mon#1":                         "L, W and # are not supported",
		"*/0 * * * *":                           `minute: "0" is not a step`,
		"*/ * * * *":                            `minute: "" is not a step`,
		"*/-5 * * * *":                          `minute: "-5" is not a step`,
		"*/5/5 * * * *":                         "is not a step",
		"5-1 * * * *":                           `minute: "5-1" runs backwards`,
		"* 22-2 * * *":                          `hour: "22-2" runs backwards`,
		"* * * * 5-1":                           `day of week: "5-1" runs backwards`,
		"1-2-3 * * * *":                         `"2-3" is not`,
		"1, * * * *":                            `minute: "" is not`,
		"? * * * *":                             `minute: "?" is not`,
		"H * * * *":                             `minute: "H" is not`,
		"0 0 30 2 *":                            "never comes",
		"0 0 31 4,6,9,11 *":                     "never comes",
		"0 0 31 2 */2":                          "never comes",
		"TZ=Europe/Berlin 0 9 * * *":            "CRON_TZ=Zone",
		"TZ=":                                   "CRON_TZ=Zone",
		"CRON_TZ=":                              "is not a time zone",
		"CRON_TZ=UTC":                           "five fields",
		"CRON_TZ= 0 9 * * *":                    "is not a time zone",
		"CRON_TZ=Local 0 9 * * *":               "is not a time zone",
		"CRON_TZ=Mars/Base 0 9 * * *":           "is not a time zone",
		"CRON_TZ=../../etc 0 9 * * *":           "is not a time zone",
		"CRON_TZ=/etc/x 0 9 * * *":              "is not a time zone",
		"CRON_TZ=Europe 0 9 * * *":              "is not a time zone",
		"CRON_TZ=UTC @every 1s":                 "not supported",
		strings.Repeat("1,", 100) + "1 * * * *": "at most 200 characters",
	} {
		t.Run(expr, func(t *testing.T) {
			is := is.New(t)
			_, err := Parse(expr, time.UTC)
			is.True(err != nil) // refused
			if !strings.Contains(err.Error(), says) {
				t.Errorf("says %q, want %q", err, says)
			}
		})
	}
}

func FuzzParseCron(f *testing.F) {
	for _, expr := range []string{"*/5 1-3,7 ? jan-MAR fri-sun", "CRON_TZ=Asia/Tokyo @daily", "TZ=", "CRON_TZ=", "0 0 */31 2 1", "@every 1s", "0 0 31 2 *"} {
		f.Add(expr, int64(1774746000))
	}
	zone, err := LoadZone("Australia/Lord_Howe")
	is.New(f).NoErr(err)
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		c, err := Parse(expr, zone)
		if err != nil {
			return
		}
		after := time.Unix(unix%10_000_000_000, 0)
		next := c.Next(after)
		if !next.After(after) {
			t.Fatalf("%q: after %v comes %v", expr, after, next)
		}
	})
}
