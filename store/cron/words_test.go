package cron

import (
	"testing"

	"github.com/matryer/is"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"0 9 * * 1":                    "every Monday at 09:00",
		"0 9 * * MON":                  "every Monday at 09:00",
		"30 17 * * 1-5":                "every Monday to Friday at 17:30",
		"5 0 * * 7":                    "every Sunday at 00:05",
		"0 9 * * *":                    "every day at 09:00",
		"CRON_TZ=Asia/Tokyo 0 9 ? * ?": "every day at 09:00",
		"@daily":                       "every day at 00:00",
		"@hourly":                      "every hour at minute 0",
		"*/15 * * * *":                 "every 15 minutes",
		"*/7 * * * *":                  "", // the last pause of each hour is shorter
		"*/0 * * * *":                  "",
		"* * * * *":                    "every minute",
		"0 8 1 * *":                    "on day 1 of every month at 08:00",
		"0 8 1 * 1":                    "", // a day of the month and a weekday: whichever comes first
		"0 8 1 1 *":                    "",
		"0 8,12 * * *":                 "",
		"0 9 * * 1,3":                  "",
		"CRON_TZ=Asia/Tokyo":           "",
		"":                             "",
	} {
		t.Run(expr, func(t *testing.T) {
			is := is.New(t)
			is.Equal(Words(expr), want)
		})
	}
}
