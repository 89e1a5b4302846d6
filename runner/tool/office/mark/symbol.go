package mark

import "strings"

// privateUse is the first character of the area of Unicode where programs store the characters of symbol
// fonts. The last two digits are the code of the character in the font.
const privateUse = 0xF000

// Symbol returns the character that a reader sees for a character of a font. For the characters of other
// fonts than symbol fonts it returns r itself. It returns a small square for a sign that has no equivalent.
func Symbol(font string, r rune) rune {
	private := r >= privateUse && r < privateUse+0x100
	if private {
		r -= privateUse
	}
	font = strings.ToLower(strings.TrimSpace(font))
	known := true
	var seen rune
	switch font {
	case "wingdings":
		seen = at(wingdings, r)
	case "wingdings 2", "webdings", "wingdings 3":
		seen = fewSigns[font][r]
	// The private characters of an unknown font are most often those of Symbol, such as bullets.
	default:
		seen, known = at(symbol, r), private || font == "symbol"
	}
	switch {
	case !known, r < ' ' && !private:
		return r
	case r == ' ':
		return ' '
	case seen == 0:
		return '▪'
	}
	return seen
}

// Font reports whether a font has signs instead of letters.
func Font(name string) bool {
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "symbol", "wingdings", "wingdings 2", "wingdings 3", "webdings":
		return true
	}
	return false
}

// Text returns what a reader sees of a text in a font, without soft hyphens, which are only visible at the
// end of a line.
func Text(font, text string) string {
	signs := Font(font)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u00ad':
			return -1
		case signs, r >= privateUse && r < privateUse+0x100:
			return Symbol(font, r)
		}
		return r
	}, text)
}

// at returns the sign with a code in a table, 0 if there is none.
func at(table []rune, code rune) rune {
	if code < ' ' || int(code-' ') >= len(table) {
		return 0
	}
	return table[code-' ']
}

// unused stands for the codes 0x7F to 0x9F, which the font Symbol does not use.
const unused = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// symbol and wingdings are the signs of these fonts, from the code 0x20 on.
var (
	symbol = []rune(` !∀#∃%&∍()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼` + unused +
		`€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐─↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓⋄〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪€〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭`)
	wingdings = []rune(` ✏✂✁👓🔔📖🕯☎✆✉✉📪📫📬📭📁📂📄🗏🗐🗄⌛⌨🖰🖲💻💽💾🖬✇✍🖎✌👌👍👎☜☞☝☟✋☺😐☹💣☠🏳🏱✈☼💧❄🕆✞🕈✠✡☪☯ॐ☸♈♉♊♋♌♍♎♏♐♑♒♓&&●❍■□□❑❒⬧⧫◆❖⬥⌧⍓⌘❀✿❝❞` + "\x00" +
		`⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿❧❧❧❧❧❧❧❧·•▪○◉◉◉◎○▪☐✦✦★✶✴✹✵⌖⌖⟡⌑⌑✪✰🕐🕑🕒🕓🕔🕕🕖🕗🕘` +
		`🕙🕚🕛↵↵↵↵↵↵↵↵↵↵↵↵↵↵↵↵↵↵⌫⌦◄➢▲▼⮈➲⮉⮋←→↑↓↖↗↙↘◀➔▲▼↖↗↙↘⇦⇨⇧⇩⇔⇕⇖⇗⇙⇘▭▫✗✓☒☑⊞`)
)

// fewSigns are the signs of further fonts that carry a meaning in texts, such as marks and arrows.
var fewSigns = map[string]map[rune]rune{
	"wingdings 2": {'*': '☐', 'O': '✗', 'P': '✓', 'Q': '☒', 'R': '☑', 'S': '☒', 'T': '☒', 'U': '⊗', 'V': '⊗',
		0x97: '•', 0xA3: '☐'},
	"wingdings 3": {'f': '←', 'g': '→', 'h': '↑', 'i': '↓', 'p': '▲', 'q': '▼', 't': '◀', 'u': '▶', '}': '▶'},
	"webdings": {'a': '✓', 'c': '☐', 'r': '✗', 'g': '■', 'n': '●', 'Y': '♥', '3': '◀', '4': '▶', '5': '▲',
		'6': '▼', 'H': '🏠', 'i': 'ℹ', '~': '⚠', 0xC9: '☎'},
}

// Bullet returns the mark of an item without a number. Only bullets with a meaning, such as boxes to tick,
// are kept.
func Bullet(font, text string) string {
	switch seen := Text(font, text); seen {
	case "☐", "☑", "☒", "✓", "✗":
		return seen
	}
	return "-"
}
