package visible_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/store/visible"
)

// TestEveryHiddenCharacter puts every character of Unicode between two letters, twice in a row, and at
// both ends. None that people cannot see remains.
func TestEveryHiddenCharacter(t *testing.T) {
	t.Parallel()
	hidden := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		invisible := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point) || r >= 0xe0000 && r <= 0xe007f
		if invisible != visible.Hidden(r) && (r < 0xe0000 || r > 0xe0fff) {
			t.Errorf("Hidden(%U) is %v", r, !invisible)
		}
		if !invisible {
			if s := "a" + string(r) + "b"; visible.Text(s) != s || visible.Line(s) != s || visible.Running(s) != s {
				t.Errorf("%U is changed", r)
			}
			continue
		}
		hidden++
		for _, s := range []string{"a" + string(r) + "b", string(r), string(r) + string(r) + "x", "x" + string(r)} {
			for name, got := range map[string]string{"Line": visible.Line(s), "Text": visible.Text(s),
				"Running": visible.Running(s)} {
				layout := name != "Line" && (r == '\n' || r == '\t')
				if strings.ContainsRune(got, r) != layout {
					t.Errorf("%s(%q) is %q", name, s, got)
				}
			}
		}
	}
	if hidden < 400 { // Unicode 15 has 65 + 170 + 2 + 259 and more
		t.Errorf("%d hidden characters", hidden)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, tt := range []struct{ text, line, all, running string }{
		{"plain ä", "plain ä", "plain ä", "plain ä"},
		{"a\u202eb", `a\u202eb`, `a\u202eb`, `a\u202eb`},
		{"a\nb\tc\r\nd", `a\nb\tc\r\nd`, "a\nb\tc\r\nd", "a\nb\tc\r\nd"},
		{"over\rwrite", `over\rwrite`, `over\rwrite`, `over\rwrite`},
		{"\x1b[2J\x00", `\u001b[2J\u0000`, `\u001b[2J\u0000`, `\u001b[2J\u0000`},
		{"tag\U000E0041", `tag\u{e0041}`, `tag\u{e0041}`, `tag\u{e0041}`},
		{"bad\xff", `bad\xff`, `bad\xff`, `bad\xff`},
		{"\ufffd", "\ufffd", "\ufffd", "\ufffd"},
		{"so\u00adft", `so\u00adft`, `so\u00adft`, `so\u00adft`},
		{"❤\ufe0f", `❤\ufe0f`, `❤\ufe0f`, "❤\ufe0f"},
		{"❤\ufe0f\ufe0f", `❤\ufe0f\ufe0f`, `❤\ufe0f\ufe0f`, "❤\ufe0f" + `\ufe0f`},
		{"1\ufe0f\u20e3", `1\ufe0f` + "\u20e3", `1\ufe0f` + "\u20e3", "1\ufe0f\u20e3"},
		{"👩\u200d🚀", `👩\u200d🚀`, `👩\u200d🚀`, "👩\u200d🚀"},
		{"🏳\ufe0f\u200d🌈", `🏳\ufe0f\u200d🌈`, `🏳\ufe0f\u200d🌈`, "🏳\ufe0f\u200d🌈"},
		{"می\u200cروم", `می\u200cروم`, `می\u200cروم`, "می\u200cروم"},
		{"क्\u200dष", `क्\u200dष`, `क्\u200dष`, "क्\u200dष"},
		{"pay\u200dpal a\ufe0f", `pay\u200dpal a\ufe0f`, `pay\u200dpal a\ufe0f`, `pay\u200dpal a\ufe0f`},
		{"שלום\u200f!", `שלום\u200f!`, `שלום\u200f!`, "שלום\u200f!"},
		{"שלום\u200f\u200f!", `שלום\u200f\u200f!`, `שלום\u200f\u200f!`, "שלום\u200f" + `\u200f!`},
		{"葛\U000E0100", `葛\u{e0100}`, `葛\u{e0100}`, "葛\U000E0100"},
		{"❤\U000E0101", `❤\u{e0101}`, `❤\u{e0101}`, `❤\u{e0101}`},
	} {
		is.Equal(visible.Line(tt.text), tt.line)
		is.Equal(visible.Text(tt.text), tt.all)
		is.Equal(visible.Running(tt.text), tt.running)
	}
}

// TestNames shows names of files that imitate other lines.
func TestNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(visible.Name("a\n[2 files]\t\x1b[2J\u2028\x9b\u0085.txt"), `a\n[2 files]\t\u001b[2J\u2028\x9b\u0085.txt`)
	is.Equal(visible.Name("\u202egnp.exe a\u200b\u2066\ufeff\U000E0041"), `\u202egnp.exe a\u200b\u2066\ufeff\u{e0041}`)
	for _, name := range []string{"\u202egnp.exe", "a\u2028b/c\u200b", "\U000E0041", "plain", "❤\ufe0f", "\u00ad"} {
		is.Equal(visible.Named(visible.Name(name)), name)
	}
	// Quotes of Go escape more characters: spaces of other widths, new emoji, private ones.
	for _, name := range []string{"Screenshot 10.30.15\u202fAM.png", "a\u00a0b", "\u3000", "a\u2009b", "\U000e0041", "\U0001faea", "\ue000", `say "hi"`} {
		quoted := strconv.Quote(name)
		is.Equal(visible.Named(quoted[1:len(quoted)-1]), name)
	}
	for _, shown := range []string{`\n`, `a\u000ab`, `\u0041`, `\u{41}`, `\u009b`, `\uzzzz`, `\u{ffffff}`, `\x41`} {
		is.Equal(visible.Named(shown), shown)
	}
	is.Equal(visible.Name("❤\ufe0f می\u200cروم.txt"), "❤\ufe0f می\u200cروم.txt")
}

// TestLength shows a long text of hidden characters only.
func TestLength(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const n = 100_000
	is.Equal(visible.Running(strings.Repeat("\ufe0f", n)), strings.Repeat(fmt.Sprintf(`\u%04x`, 0xfe0f), n))
}
