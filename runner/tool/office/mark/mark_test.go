package mark

import (
	"testing"

	"github.com/matryer/is"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for format, want := range map[string][4]string{
		"decimal": {"0", "1", "28", "4000"}, "decimalZero": {"00", "01", "28", "4000"},
		"upperRoman": {"0", "I", "XXVIII", "4000"}, "lowerRoman": {"0", "i", "xxviii", "4000"},
		"upperLetter": {"0", "A", "BB", "4000"}, "lowerLetter": {"0", "a", "bb", "4000"},
		"ordinal": {"0th", "1st", "28th", "4000th"}, "none": {"", "", "", ""}, "bullet": {"", "", "", ""},
		"chineseCounting": {"〇", "一", "二十八", "4000"}, "decimalEnclosedCircle": {"0", "①", "28", "4000"},
		"chicago": {"0", "*", "§§§§§§§", "4000"}, "hex": {"0", "1", "1C", "FA0"}, "another": {"0", "1", "28", "4000"},
		"russianLower": {"0", "а", "ю", "4000"}} {
		for i, n := range []int{0, 1, 28, 4000} {
			is.Equal(Number(n, format), want[i]) // the number in this format
		}
	}
	is.Equal(Number(-5, "lowerRoman"), "-5")
	is.Equal(Number(111, "ordinal")+Number(102, "ordinal")+Number(23, "ordinal"), "111th102nd23rd")
}

func TestText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, tt := range []struct{ font, text, want string }{
		{"Wingdings", "\uf0fc \uf0fbþ", "✓ ✗☑"}, {"Symbol", "ab\uf0b7\u00ad", "αβ•"}, {"Calibri", "\uf0b7 a\u00adb", "• ab"},
		{"Wingdings 2", "\uf052\u00a3", "☑☐"}, {"WEBDINGS", "a\uf072!", "✓✗▪"}, {"", "þ\ue000", "þ\ue000"},
		{"Wingdings", "\uf000\u4e00", "▪▪"}} {
		is.Equal(Text(tt.font, tt.text), tt.want)
	}
}
