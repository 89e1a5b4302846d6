// Package mark writes the marks that office programs show before and in texts: numbers of lists in all
// formats, and the characters of symbol fonts.
//
// It is pure, and imports no other package of this program.
package mark

import (
	"strconv"
	"strings"
)

// The largest numbers of formats whose texts grow with the number. Larger ones are written as decimals.
const (
	maxRoman  = 3999
	maxLetter = 780 // zzz…, 30 letters
)

// Number returns a number in a format of ECMA-376 part 1, section 17.18.59. It returns decimals for a
// format that it does not know, and "" for the format of items without a number.
func Number(n int, format string) string {
	if n < 0 {
		return strconv.Itoa(n)
	}
	switch format {
	case "none", "bullet":
		return ""
	case "decimalZero":
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
	case "upperRoman":
		return roman(n)
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "ordinal":
		return strconv.Itoa(n) + ordinal(n)
	case "hex":
		return strings.ToUpper(strconv.FormatInt(int64(n), 16))
	case "numberInDash":
		return "- " + strconv.Itoa(n) + " -"
	case "decimalEnclosedParen":
		return "(" + strconv.Itoa(n) + ")"
	case "decimalFullWidth", "decimalFullWidth2":
		return digits(n, "０１２３４５６７８９")
	case "decimalEnclosedCircle", "decimalEnclosedCircleChinese":
		if n >= 1 && n <= 20 {
			return string('①' + rune(n-1))
		}
	case "chineseCounting", "chineseCountingThousand", "japaneseCounting", "koreanCounting", "ideographDigital":
		return counting(n)
	case "chicago":
		return repeated(n, "*†‡§")
	}
	if letters := alphabets[format]; letters != "" {
		return repeated(n, letters)
	}
	return strconv.Itoa(n)
}

// alphabets are the letters of the formats that count with letters.
var alphabets = map[string]string{
	"upperLetter": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lowerLetter": "abcdefghijklmnopqrstuvwxyz",
	"russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ", "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя",
	"arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي", "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
	"hebrew2": "אבגדהוזחטיכלמנסעפצקרשת", "ganada": "가나다라마바사아자차카타파하",
	"aiueo": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
	"iroha": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス",
}

// repeated returns a letter, which is repeated after the end of the letters: a, b, …, z, aa, bb.
func repeated(n int, letters string) string {
	all := []rune(letters)
	if n < 1 || n > maxLetter {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(all[(n-1)%len(all)]), (n-1)/len(all)+1)
}

// roman returns a number in Roman numerals.
func roman(n int) string {
	if n < 1 || n > maxRoman {
		return strconv.Itoa(n)
	}
	var b strings.Builder
	for _, step := range []struct {
		value int
		text  string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"},
		{10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= step.value; n -= step.value {
			b.WriteString(step.text)
		}
	}
	return b.String()
}

// ordinal returns the English ending of an ordinal number.
func ordinal(n int) string {
	if n%100 >= 11 && n%100 <= 13 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}

// digits returns a decimal number with other digits.
func digits(n int, zeroToNine string) string {
	all := []rune(zeroToNine)
	return strings.Map(func(r rune) rune { return all[r-'0'] }, strconv.Itoa(n))
}

// counting returns a number in Chinese and Japanese numerals, up to 99.
func counting(n int) string {
	const one = "〇一二三四五六七八九"
	switch {
	case n > 99:
		return strconv.Itoa(n)
	case n < 10:
		return digits(n, one)
	}
	text := "十"
	if n >= 20 {
		text = digits(n/10, one) + text
	}
	if n%10 > 0 {
		text += digits(n%10, one)
	}
	return text
}
