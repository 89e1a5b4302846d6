package mailtext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"
)

// TestDecode reads text whose label means something else in browsers, is misspelled, or is wrong.
func TestDecode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ label, raw, want string }{
		"latin-1 is Windows":       {"iso-8859-1", "\x93Gr\xfc\xdfe\x94 \x96 5 \x80", "“Grüße” – 5 €"},
		"alias l1":                 {"l1", "\x80", "€"},
		"alias latin1":             {"latin1", "\x80", "€"},
		"alias latin-1":            {"Latin-1", "\x80", "€"},
		"alias cp819":              {"CP819", "\x80", "€"},
		"alias with the year":      {"ISO_8859-1:1987", "\x80", "€"},
		"alias iso8859-1":          {"iso8859-1", "\x80", "€"},
		"alias iso8859_1":          {"ISO8859_1", "\x80", "€"},
		"alias 8859-1":             {"8859-1", "\x80", "€"},
		"in quotes":                {"'iso-8859-1'", "\x80", "€"},
		"us-ascii, Windows":        {"us-ascii", "na\xefve \x80", "naïve €"},
		"us-ascii, UTF-8":          {"us-ascii", "naïve", "naïve"},
		"ANSI_X3.4-1968":           {"ANSI_X3.4-1968", "\x85", "…"},
		"Turkish":                  {"iso-8859-9", "\x80 \xfe", "€ ş"},
		"Thai":                     {"tis-620", "\x80\xa1", "€ก"},
		"Hebrew, logical":          {"iso-8859-8-i", "\xe0", "א"},
		"Korean":                   {"ks_c_5601-1987", "\xb0\xa1 \x81\x41", "가 갂"},
		"Chinese, more characters": {"gb2312", "\xd6\xd0 \x81\x40", "中 丂"},
		"win-1251":                 {"win-1251", "\xc4\xe0", "Да"},
		"cp-1251":                  {"cp-1251", "\xc4\xe0", "Да"},
		"ansi-1251":                {"ansi-1251", "\xc4\xe0", "Да"},
		"windows1250":              {"windows1250", "\x9a", "š"},
		"koi8r":                    {"koi8r", "\xe4", "Д"},
		"cp850":                    {"cp850", "\x81", "ü"},
		"utf8":                     {"utf8mb4", "ü", "ü"},
		"no such label, UTF-8":     {"x-nonsense", "ü", "ü"},
		"no such label, Windows":   {"x-nonsense", "\xfc\x80", "ü€"},
		"UTF-8 with another label": {"gb2312", "ünïcödé ✓ 我们的", "ünïcödé ✓ 我们的"},
		"hz":                       {"hz-gb-2312", "~{VPND~}", "中文"},
		"UTF-7":                    {"utf-7", "Gr+APwA3w-e 1 +- 2 + 3 +2D3eAA", "Grüße 1 + 2 + 3 😀"},
		"iso-2022-kr":              {"iso-2022-kr", "\x1b$)Ca \x0e0!\x0f b", "a 가 b"},
		"iso-2022-jp":              {"ISO-2022-JP", "\x1b$B$3\x1b(B", "こ"},
		"damaged UTF-8":            {"utf-8", "a\xfcb", "a\uFFFDb"},
		"no label":                 {"", "\x93a\x94", "“a”"},
	} {
		t.Run(name, func(t *testing.T) { is.New(t).Equal(Decode([]byte(tt.raw), tt.label), tt.want) })
	}
}

// TestWords reads encoded words of careless programs.
func TestWords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ value, want string }{
		"latin-1 is Windows":    {"=?iso-8859-1?Q?=93Preis=94_5_=80?=", "“Preis” 5 €"},
		"base64":                {"=?ISO-8859-1?B?gCA1?=", "€ 5"},
		"an unknown label":      {"=?x-nonsense?Q?Gr=C3=BC=C3=9Fe?=", "Grüße"},
		"an unknown label, old": {"=?x-nonsense?Q?Gr=FC=DFe?= =?foo?b?gA?=", "Grüße€"},
		"a language":            {"=?utf-8*de?q?Gr=C3=BC=C3=9Fe?=", "Grüße"},
		"a split character":     {"=?utf-8?q?Gr=C3?=\r\n =?UTF-8?Q?=BC=C3=9Fe?=", "Grüße"},
		"a split character, B":  {"=?utf-8?b?R3LD?= =?utf-8?b?vMOf?=", "Grüß"},
		"two labels":            {"=?utf-8?q?=C3=BC?= =?koi8-r?q?=E4?=", "üД"},
		"with spaces":           {"=?utf-8?Q?a b?= c", "a b c"},
		"without padding":       {"=?utf-8?b?w7w?=", "ü"},
		"with other characters": {"=?utf-8?b?w7 w=?=", "ü"},
		"text around":           {"Re: =?utf-8?q?=C3=BC?=: x", "Re: ü: x"},
		"glued":                 {"a=?utf-8?q?=C3=BC?=b", "aüb"},
		"no word":               {"=?utf-8?x?a?= =? ?= =?", "=?utf-8?x?a?= =? ?= =?"},
		"unfinished":            {"=?utf-8?q?abc", "=?utf-8?q?abc"},
		"bytes":                 {"Gr\xfc\xdfe \x80", "Grüße €"},
		"bytes and words":       {"Gr\xfc=?utf-8?q?=C3=9F?=e", "Grüße"},
		"an invalid escape":     {"=?utf-8?q?a=ZZb=?=", "a=ZZb="},
		"an empty word":         {"a =?utf-8?q??= b", "a  b"},
	} {
		t.Run(name, func(t *testing.T) { is.New(t).Equal(Words(tt.value), tt.want) })
	}
}

// FuzzWords decodes random fields. The result is valid text, and text of ASCII without words stays.
func FuzzWords(f *testing.F) {
	f.Add("=?utf-8?q?Gr=C3?= =?utf-8?b?vMOf?= x", "iso-8859-1")
	f.Add("=?=?a?b?=?=?q?x?=", "x")
	f.Fuzz(func(t *testing.T, value, label string) {
		for _, text := range []string{Words(value), Decode([]byte(value), label)} {
			if !utf8.ValidString(text) {
				t.Errorf("%q is no text", text)
			}
		}
		if text := Words(value); !strings.Contains(value, "=?") && utf8.ValidString(value) && text != Printable(value) {
			t.Errorf("%q became %q", value, text)
		}
	})
}

// FuzzParams reads random text as the value of a header with parameters.
func FuzzParams(f *testing.F) {
	f.Add(`attachment; filename*0*=utf-8''%C3%9C; filename*1=b; filename="a\"b"`)
	f.Add(`text/plain; charset="utf-8`)
	f.Add(`a;;b*=;c*x*=1;=;"`)
	f.Fuzz(func(t *testing.T, header string) {
		_, params := Params(header)
		for name, value := range params {
			if name == "" && value == "" {
				t.Error("an empty parameter")
			}
		}
	})
}
