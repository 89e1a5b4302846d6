package command_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command"
)

func TestAges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"0": 0, "0d": 0, "1d": 24 * time.Hour, "90d": 90 * 24 * time.Hour,
		"36h": 36 * time.Hour, "36500d": 36500 * 24 * time.Hour} {
		is := is.New(t)
		var a command.Age
		is.NoErr(a.UnmarshalText([]byte(text)))
		is.Equal(time.Duration(a), want)
	}
	for _, text := range []string{"", "d", "x", "-1d", "1.5d", "23h", "-24h", "1m", "36501d", "99999d", "999999999999d", "1d2h", " 1d"} {
		t.Run(text, func(t *testing.T) {
			is := is.New(t)
			a := command.Age(7)
			is.True(a.UnmarshalText([]byte(text)) != nil) // the age is invalid
			is.Equal(a, command.Age(7))
		})
	}
}
