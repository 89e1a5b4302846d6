package charset

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/matryer/is"
	"golang.org/x/text/encoding/charmap"

	"journeyman/store/ordertest"
)

// encoded returns a text in an encoding. ok is false if it cannot be written in it.
func encoded(canonical, text string) ([]byte, bool) {
	e := of(canonical)
	if canonical == "iso-8859-16" {
		e = charmap.ISO8859_16
	}
	b, err := e.NewEncoder().Bytes([]byte(text))
	return b, err == nil
}

// TestGuessedSentences guesses the encoding of single sentences in 33 languages. What counts is that the decoded
// text is right: two encodings may write the same sentence with the same bytes.
func TestGuessedSentences(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sentences.txt")
	is.New(t).NoErr(err)
	var language string
	var encodings []string
	all, right, sentences := 0, 0, 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if head, ok := strings.CutPrefix(line, "= "); ok {
			fields := strings.Fields(head)
			language, encodings = fields[0], fields[1:]
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		sentences++
		for _, e := range encodings {
			b, ok := encoded(e, line)
			if !ok {
				continue
			}
			all++
			name, percent := Guess(b)
			got := Text(b, "")
			if got == line {
				right++
				continue
			}
			t.Logf("%s in %s: guessed %s (%d %%): %s", language, e, name, percent, got)
		}
	}
	t.Logf("%d sentences, %d of %d texts are right", sentences, right, all)
	is := is.New(t)
	ordertest.AtLeast(is, sentences, 200)
	ordertest.AtLeast(is, right*100, all*97) // single sentences
}

// TestGuessedTexts guesses the encoding of all sentences of a language together, as in a file.
func TestGuessedTexts(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sentences.txt")
	is.New(t).NoErr(err)
	for block := range strings.SplitSeq(string(data), "\n= ") {
		head, text, _ := strings.Cut(block, "\n")
		fields := strings.Fields(head)
		if fields[0] == "#" {
			continue
		}
		for _, e := range fields[1:] {
			var lines []string
			var b []byte
			for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
				if encodedLine, ok := encoded(e, line+"\n"); ok {
					b, lines = append(b, encodedLine...), append(lines, line)
				}
			}
			if len(lines) == 0 {
				continue
			}
			t.Run(fields[0]+" in "+e, func(t *testing.T) {
				name, percent := Guess(b)
				got := Text(b, "")
				if got != strings.Join(lines, "\n")+"\n" {
					t.Errorf("guessed %s (%d %%): %s", name, percent, got)
				}
				if e != ISO2022JP && percent < 50 {
					t.Errorf("%s is too unsure: %d %%", name, percent)
				}
			})
		}
	}
}

func TestWide(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, text := range []string{"Name;Menge\r\nÄpfel;3\r\n", "Привет, мир\n", "三月分の請求書を添付いたします。\n", "随信附上三月份的发票， 请确认收到。\n"} {
		var le, be, le32, be32 []byte
		for _, u := range utf16.Encode([]rune(text)) {
			le, be = append(le, byte(u), byte(u>>8)), append(be, byte(u>>8), byte(u))
		}
		for _, r := range text {
			le32, be32 = append(le32, byte(r), byte(r>>8), byte(r>>16), 0), append(be32, 0, byte(r>>16), byte(r>>8), byte(r))
		}
		is.Equal(Wide(le), UTF16LE)
		is.Equal(Wide(be), UTF16BE)
		is.Equal(Wide(le32), UTF32LE)
		is.Equal(Wide(be32), UTF32BE)
		is.Equal(Text(be, ""), text)
	}
	for _, other := range []string{"plain text of an even length", "größer", "", "\x00", "ab", "\x00\x01\x02\x03\x04\x05\x06\x07",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", strings.Repeat("\x12\x34\x56\x78", 100), "\x7fELF\x02\x01\x01\x00\x00\x00",
		string(bytes.Repeat([]byte{0, 1}, 50)), "随信附上三月份的发票"} {
		is.Equal(Wide([]byte(other)), "")
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for name, want := range map[string]string{"SJIS": "shift_jis", " Latin1 ": "windows-1252", "GBK": "gbk", "koi8-r": "koi8-r",
		"utf-32": "utf-32", "cp437": "cp437", "utf8": "utf-8", "cp1251": "windows-1251"} {
		got, known := Lookup(name)
		is.True(known)
		is.Equal(got, want)
	}
	for _, name := range []string{"", "klingon", "replacement", "hz-gb-2312", "x-user-defined"} {
		_, known := Lookup(name)
		is.True(!known)
	}
	is.Equal(Title("koi8-r"), "KOI8-R")
	is.Equal(Title("shift_jis"), "Shift_JIS")
}

func TestGuessNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, tt := range []struct{ encoding, name string }{{"shift_jis", "見積書/会社の資料.txt"}, {"ibm866", "Документы/отчёт за март.txt"},
		{"gb18030", "报价单/会议的资料.txt"}, {"ibm437", "Übersicht März.txt"}, {"ibm437", "größe.txt"}, {"ibm437", "café.txt"}} {
		b, ok := encoded(tt.encoding, tt.name)
		is.True(ok)
		is.Equal(Decode(GuessNames(b), b), tt.name)
	}
}

// TestGuessOfNoise guesses bytes that are no text: any answer is right, with little confidence.
func TestGuessOfNoise(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, noise := range []string{"caf\xe9", "\x80 5 \x93x\x94"} {
		name, percent := Guess([]byte(noise))
		is.Equal(name, Western)
		ordertest.Below(is, percent, 90)
	}
}

func FuzzGuess(f *testing.F) {
	for _, s := range []string{"caf\xe9", "\x82\xa0\x82\xa2", "\x1b$B$\"\x1b(B", "a\x00b\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		name, percent := Guess(in)
		if _, known := Lookup(name); !known || percent < 0 || percent > 99 {
			t.Fatal(name, percent)
		}
		GuessNames(in)
		Wide(in)
		if text := Text(in, ""); strings.ToValidUTF8(text, "") != text {
			t.Fatalf("%q", text)
		}
	})
}
