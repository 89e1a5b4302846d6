package command

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestUnchangedRanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		line, anonymous string
		want            bool
	}{
		"code":                {"00400000-01655000 r-xp 00000000 fe:00 7  /opt/journeyman", "0", true},
		"constants":           {"00400000-01655000 r--p 01255000 fe:00 7  /opt/journeyman", "0", true},
		"variables":           {"00400000-01655000 rw-p 024ef000 fe:00 7  /opt/journeyman", "0", false},
		"relocated constants": {"00400000-01655000 r--p 01255000 fe:00 7  /opt/journeyman", "4", false},
		"another file":        {"00400000-01655000 r-xp 00000000 fe:00 7  /lib/libc.so.6", "0", false},
		"no file":             {"00400000-01655000 r--p 00000000 00:00 0 ", "0", false},
		"not a range":         {"program r-xp /opt/journeyman", "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var want []addressRange
			if tt.want {
				want = []addressRange{{0x400000, 0x1655000}}
			}
			smaps := tt.line + "\nSize:              18772 kB\nAnonymous:      " + tt.anonymous + " kB\nVmFlags: rd ex mr\n"
			is.Equal(unchangedRanges(strings.NewReader(smaps), "/opt/journeyman"), want)
			// The range before does not count for the next one.
			before := "00200000-00300000 r-xp 00000000 fe:00 7  /opt/journeyman\nAnonymous:  4 kB\n"
			is.Equal(unchangedRanges(strings.NewReader(before+smaps), "/opt/journeyman"), want)
		})
	}
}
