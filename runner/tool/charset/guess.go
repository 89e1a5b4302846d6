package charset

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sampleSize is the number of bytes that a guess reads.
const sampleSize = 4 << 10

// A candidate is an encoding with the languages that are written in it.
type candidate struct {
	encoding  string
	languages string
	penalty   float64 // of encodings that are rare today
}

// candidates returns all encodings that Guess knows. The first of equal ones wins, so common ones come first.
func candidates() []candidate {
	const western, central = "en de fr es pt it nl sv da nb fi is", "pl cs sk hu hr sl ro"
	return []candidate{
		{encoding: Western, languages: western},
		{encoding: "shift_jis", languages: "ja"}, {encoding: "euc-jp", languages: "ja"},
		{encoding: "gb18030", languages: "zh"}, {encoding: "big5", languages: "tw"}, {encoding: "euc-kr", languages: "ko"},
		{encoding: "windows-1251", languages: "ru uk bg sr"}, {encoding: "koi8-r", languages: "ru"},
		{encoding: "koi8-u", languages: "uk"},
		{encoding: "windows-1250", languages: central}, {encoding: "iso-8859-2", languages: central, penalty: .02},
		{encoding: "windows-1253", languages: "el"}, {encoding: "iso-8859-7", languages: "el", penalty: .02},
		{encoding: "windows-1254", languages: "tr"},
		{encoding: "windows-1255", languages: "he"}, {encoding: "iso-8859-8", languages: "he", penalty: .02},
		{encoding: "windows-1256", languages: "ar fa"}, {encoding: "iso-8859-6", languages: "ar", penalty: .02},
		{encoding: "windows-1257", languages: "lt lv et"}, {encoding: "windows-1258", languages: "vi"},
		{encoding: "windows-874", languages: "th"},
		{encoding: "iso-8859-5", languages: "ru uk bg sr", penalty: .03},
		{encoding: "ibm866", languages: "ru uk", penalty: .03},
		{encoding: "x-mac-cyrillic", languages: "ru uk", penalty: .1},
		{encoding: "macintosh", languages: western, penalty: .1}, {encoding: "ibm850", languages: western, penalty: .15},
		{encoding: "ibm852", languages: central, penalty: .15},
	}
}

// Guess returns the encoding that a text is most likely in, and how sure that is, in percent. The text must not be
// UTF-8.
func Guess(text []byte) (canonical string, percent int) {
	sample := interesting(text)
	best, second := -10., -10.
	chosen, decoded := Western, ""
	first := map[string]string{} // the first encoding that gives a text
	for _, c := range candidates() {
		text, ok := strict(c.encoding, sample)
		if !ok {
			continue
		}
		score := bestOf(text, c.languages) - c.penalty
		if first[text] == "" {
			first[text] = c.encoding
		}
		switch {
		case score > best:
			if decoded != text {
				second = best
			}
			best, chosen, decoded = score, first[text], text
		// An encoding that gives the same text is no rival.
		case text != decoded:
			second = max(second, score)
		}
	}
	if best < minimumFit {
		return Western, 20
	}
	fit, margin := min(max(best, 0), 1), min(max(best-second, 0), .5)
	return chosen, int(min(max(100*fit*(.6+.8*margin), 20), 99))
}

// minimumFit is the score below which a text looks like no language.
const minimumFit = 0.

// interesting returns the lines of a text that are not ASCII, up to sampleSize bytes. Most of a table or of a
// source file is ASCII, and tells nothing.
func interesting(text []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if len(kept) >= sampleSize {
			break
		}
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
			kept = append(kept, line[:min(len(line), sampleSize-len(kept))]...)
		}
	}
	return kept
}

// maxMistakes is how many characters in a thousand may be undefined in the encoding of a text.
const maxMistakes = 3

// strict decodes a sample. ok is false if it contains too many bytes that are no text in the encoding. A character
// that the end of the sample cuts is no mistake.
func strict(canonical string, sample []byte) (text string, ok bool) {
	text = Decode(canonical, sample)
	mistakes := strings.Count(strings.TrimRight(text, "\ufffd"), "\ufffd")
	mistakes += max(0, len(text)-len(strings.TrimRight(text, "\ufffd"))-utf8.RuneLen(utf8.RuneError)) / 3
	return text, mistakes*1000 <= maxMistakes*max(len(sample)-asciiBytes(sample), 1)
}

func asciiBytes(sample []byte) (n int) {
	for _, c := range sample {
		if c < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// bestOf returns the highest score of a decoded text in one of the languages.
func bestOf(text, languages string) float64 {
	best := -10.
	for name := range strings.FieldsSeq(languages) {
		best = max(best, all[name].score(text))
	}
	return best
}

// A language tells how likely a text is of this language.
type language struct {
	// letters are the letters outside of ASCII in lower case, with their weights. Those of another script occur seldom
	// or frequently.
	letters map[rune]float64
	words   map[string]bool // frequent words; nil for languages without spaces
	script  func(rune) bool // the letters of this language's script; nil for Latin
	large   bool            // the script has thousands of characters
	absent  string          // letters of ASCII that the language does not use
}

// The weights of a character outside of ASCII.
const (
	frequentLetter = 1.
	rareLetter     = .3
	foreignLetter  = -1.5
	punctuation    = .3
	strangeSign    = -3.
	caseChange     = -2.
	scriptChange   = -2. // within a word
	wordWeight     = .5
	absentWeight   = 2.
)

// score returns how well a text fits: about 1 for a typical text, and below 0 for a text that is not readable.
func (l language) score(text string) float64 {
	sum, count := 0., 0.
	ascii, absent, letters := 0, 0, 0
	before := ' '
	for _, r := range text {
		if r >= utf8.RuneSelf {
			sum += l.weight(before, r)
			count++
			if unicode.IsLetter(r) {
				letters++
			}
		} else if unicode.IsLetter(r) {
			ascii++
			if strings.ContainsRune(l.absent, unicode.ToLower(r)) {
				absent++
			}
		}
		sum += l.change(before, r)
		before = r
	}
	if count == 0 {
		return 0
	}
	if letters*3 <= int(count) { // signs such as € are the same in many encodings
		return min(sum/count, punctuation) / (1 + wordWeight)
	}
	score := sum/count - absentWeight*float64(absent)/float64(max(ascii, 1))
	if l.words == nil {
		return score
	}
	return (score + wordWeight*l.known(text)) / (1 + wordWeight)
}

// change returns the weight of two letters that follow each other and do not belong into one word.
func (l language) change(before, r rune) float64 {
	if before < utf8.RuneSelf && r < utf8.RuneSelf || !unicode.IsLetter(before) || !unicode.IsLetter(r) {
		return 0
	}
	switch {
	case l.script != nil && l.script(before) != l.script(r) && !l.large:
		return scriptChange
	case unicode.IsUpper(r) && unicode.IsLower(before):
		return caseChange
	}
	return 0
}

// known returns the share of frequent words in a text, between 0 and 1. A third of all words are frequent ones.
func (l language) known(text string) float64 {
	words, known := 0, 0
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		words++
		if l.words[strings.ToLower(word)] {
			known++
		}
	}
	return min(1, 3*float64(known)/float64(max(words, 1)))
}

// weight returns the weight of one character after another one.
func (l language) weight(before, r rune) float64 {
	letter, known := l.letters[unicode.ToLower(r)]
	switch {
	case unicode.Is(unicode.Thai, r) && unicode.IsMark(r) && !carriesMark(before):
		return strangeSign
	case known:
		return l.likely(before, r, letter)
	case l.script != nil && l.script(r):
		if l.large {
			return rareCharacter(r)
		}
		return foreignLetter / 3
	case strings.ContainsRune("“”‘’„‚–—…«»€§©®°·•\u00a0‹›№、。，「」『』（）：；！？・《》ー～", r):
		return punctuation
	case unicode.IsLetter(r):
		return foreignLetter
	case unicode.IsMark(r) && l.script != nil:
		return rareLetter
	case unicode.IsControl(r), r == utf8.RuneError, unicode.Is(unicode.Co, r), !unicode.IsGraphic(r):
		return strangeSign
	case unicode.IsLetter(before): // such as ³ in the middle of a word
		return strangeSign
	}
	return -1
}

// carriesMark reports whether a Thai mark can follow a character.
func carriesMark(r rune) bool {
	return r >= 'ก' && r <= 'ฮ' || unicode.Is(unicode.Thai, r) && unicode.IsMark(r)
}

// likely returns the weight of a letter of the language. In Latin text, a capital letter after a sign is less likely.
func (l language) likely(before, r rune, weight float64) float64 {
	if l.script == nil && before >= utf8.RuneSelf && !unicode.IsLetter(before) && unicode.IsUpper(r) {
		return rareLetter
	}
	return weight
}

// rareCharacter returns the weight of a Chinese or Korean character that is not a frequent one.
func rareCharacter(r rune) float64 {
	switch {
	case r >= 0xac00 && r <= 0xd7a3, r >= 0x3040 && r <= 0x30ff:
		return rareLetter
	case r >= 0x4e00 && r <= 0x9fff:
		return 0
	}
	return foreignLetter
}

// GuessNames returns the encoding of names of files that are not UTF-8. Archives of old programs have them in the
// code page of DOS, which is the result when nothing else is likely.
func GuessNames(names []byte) string {
	names = interesting(names)
	best, chosen := .45, "ibm437"
	for _, c := range candidates() {
		switch c.encoding {
		case "shift_jis", "gb18030", "big5", "euc-kr", "euc-jp", "ibm866", "windows-1251", Western, "ibm850", "ibm852":
		default:
			continue
		}
		if text, ok := strict(c.encoding, names); ok {
			penalty := .2 // code pages of Windows are rare in archives
			if strings.HasPrefix(c.encoding, "ibm") || !SingleByte(c.encoding) {
				penalty = 0
			}
			if score := bestOf(text, c.languages) - penalty; score > best {
				best, chosen = score, c.encoding
			}
		}
	}
	return chosen
}
