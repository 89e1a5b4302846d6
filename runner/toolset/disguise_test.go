package toolset

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestScrubDisguises hides a secret that a program has changed before it printed it.
func TestScrubDisguises(t *testing.T) {
	t.Parallel()
	const value = "sk-Live_0123456789abcdef"
	l := Secrets{{Name: "A", Value: value}, {Name: "OTHER", Value: "another value"}}
	apart := func(text, by string) string { return strings.Join(strings.Split(text, ""), by) }
	digits := hex.EncodeToString([]byte(value))
	pairs := func(by string) string {
		var list []string
		for i := 0; i < len(digits); i += 2 {
			list = append(list, digits[i:i+2])
		}
		return strings.Join(list, by)
	}
	wrapped := base64.StdEncoding.EncodeToString([]byte("user:" + value + ":rest"))
	for name, text := range map[string]string{
		"hex":            digits,
		"HEX":            strings.ToUpper(digits),
		"hex dump":       pairs(" "),
		"hex with colon": pairs(":"),
		"percent":        "%" + pairs("%"),
		"hex in lines":   digits[:20] + "\n" + digits[20:],
		"reversed":       reversed(value),
		"spaced":         apart(value, " "),
		"dotted":         apart(value, "."),
		"one per line":   apart(value, "\n"),
		"zero width":     apart(value, "\u200b"),
		"back and apart": apart(reversed(value), "-"),
		"base64 lines":   wrapped[:16] + "\n" + wrapped[16:],
		"base64 apart":   apart(base64.RawURLEncoding.EncodeToString([]byte(value)), " "),
	} {
		is := is.New(t)
		out, err := json.Marshal(map[string]string{"output": "before " + text + " after"})
		is.NoErr(err)
		clean := string(l.Scrub(out))
		if !strings.Contains(clean, "[secret:A]") || !strings.Contains(clean, "before ") || !strings.Contains(clean,
			" after") {
			t.Errorf("%s: %s", name, clean)
		}
		is.True(strings.Contains(l.ScrubText(text), "[secret:A]"))
	}
	is := is.New(t)
	const harmless = "sk-Live_0123 and 456789abcde, an-other, 736b2d4c"
	is.Equal(l.ScrubText(harmless), harmless) // parts of a value
}

// TestScrubTime scrubs long texts that nearly match many secrets. Twice the text takes about twice the time.
func TestScrubTime(t *testing.T) {
	is := is.New(t)
	var l Secrets
	for i := range 200 {
		l = append(l, Secrets{{Name: "A", Value: strings.Repeat("a", 20+i) + "b"}}...)
	}
	hide := l.hiding().disguised
	took := func(n int) time.Duration {
		text := strings.Repeat("c1 ", n)
		start := time.Now()
		is.Equal(hide.hide(text), text)
		return time.Since(start)
	}
	took(1000)
	small, large := took(100_000), took(800_000)
	ordertest.Below(is, large, 24*small+time.Second) // n log n at most
}
