package workbook

import (
	"math"
	"strconv"
	"strings"
)

// general returns a number without a number format. It removes rounding errors of binary fractions, such as in
// 0.30000000000000004.
func general(n float64, l *locale) string {
	var text string
	if size := math.Abs(n); size != 0 && (size >= 1e15 || size < 1e-9) {
		text = strings.Replace(strconv.FormatFloat(round15(n), 'E', -1, 64), "E+0", "E+", 1)
	} else {
		text = strconv.FormatFloat(round15(n), 'f', -1, 64)
	}
	if text == "-0" {
		text = "0"
	}
	return strings.Replace(text, ".", l.decimal, 1)
}

// round15 rounds to 15 significant digits, which is the precision of Excel.
func round15(n float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 15, 64), 64)
	if err != nil {
		return n
	}
	return rounded
}

// decimal returns a number that is not negative with some decimals. It rounds half up, as people do:
// strconv would round the binary fraction, and make 2.67 of 2.675.
func decimal(n float64, decimals int) (whole, fraction string) {
	text := strconv.FormatFloat(round15(n), 'f', -1, 64)
	whole, fraction, _ = strings.Cut(text, ".")
	if len(fraction) <= decimals {
		return whole, fraction + strings.Repeat("0", decimals-len(fraction))
	}
	up := fraction[decimals] >= '5'
	digits := []byte(whole + fraction[:decimals])
	for i := len(digits) - 1; up && i >= 0; i-- {
		if up = digits[i] == '9'; up {
			digits[i] = '0'
		} else {
			digits[i]++
		}
	}
	if up {
		digits = append([]byte("1"), digits...)
	}
	return string(digits[:len(digits)-decimals]), string(digits[len(digits)-decimals:])
}

// A layout is the places for digits in a section.
type layout struct {
	whole, decimals, exponent int // places before the point, after it, and of the exponent
	lastWhole                 int // index of the last place before the point
	grouped                   bool
	thousands, percents       int // factors of 1000 and of 1/100
	slash                     int // index of the slash of a fraction, -1 for none
	power                     bool
}

func (s *section) layout() layout {
	x := layout{slash: -1, lastWhole: -1}
	point := false
	for i, t := range s.tokens {
		switch t.kind {
		case pointToken:
			point = true
		case exponentToken:
			x.power = true
		case percentToken:
			x.percents++
		case slashToken:
			if x.whole > 0 && x.slash < 0 {
				x.slash = i
			}
		case digitToken:
			switch {
			case x.power:
				x.exponent++
			case point:
				x.decimals++
			default:
				x.whole++
				x.grouped, x.thousands = x.grouped || x.thousands > 0, 0
				x.lastWhole = i
			}
		case commaToken:
			// Commas after the last place before the point divide by 1000. Others separate groups.
			if x.whole > 0 && !x.power {
				x.thousands++
			}
		}
	}
	return x
}

// showNumber shows a number in a section with places for digits.
func (s *section) showNumber(n float64, unsigned bool, l *locale) string {
	x := s.layout()
	size := math.Abs(n) * math.Pow(100, float64(min(x.percents, 8))) / math.Pow(1000, float64(min(x.thousands, 8)))
	if math.IsInf(size, 0) || math.IsNaN(size) {
		return general(n, l)
	}
	var shown string
	zero := false
	switch {
	case x.slash >= 0:
		shown = s.showFraction(size, x, l)
	case x.power:
		shown = s.showPower(size, x, l)
	default:
		whole, fraction := decimal(size, x.decimals)
		zero = strings.Trim(whole+fraction, "0") == ""
		shown = s.fill(whole, fraction, "", x, l)
	}
	if n < 0 && !unsigned && !zero {
		return "-" + shown
	}
	return shown
}

// showPower shows a number with an exponent.
func (s *section) showPower(n float64, x layout, l *locale) string {
	exponent := 0
	if n != 0 {
		exponent = int(math.Floor(math.Log10(n)))
		// With several places before the point, the exponent is a multiple of their number, as in 12.3E+3.
		if step := max(x.whole, 1); step > 1 {
			exponent = int(math.Floor(float64(exponent)/float64(step))) * step
		}
	}
	whole, fraction := decimal(scale10(n, exponent), x.decimals)
	// The rounding may have added a digit, as in 9.99 to 10.0.
	if x.whole <= 1 && len(whole) > 1 {
		exponent++
		whole, fraction = decimal(scale10(n, exponent), x.decimals)
	}
	sign := ""
	if exponent < 0 {
		sign, exponent = "-", -exponent
	}
	digits := strconv.Itoa(exponent)
	return s.fill(whole, fraction, sign+strings.Repeat("0", max(x.exponent-len(digits), 0))+digits, x, l)
}

// scale10 returns n / 10^exponent, without an overflow of the power.
func scale10(n float64, exponent int) float64 {
	half := exponent / 2
	return n / math.Pow10(half) / math.Pow10(exponent-half)
}

// fill puts digits into the places of the section.
func (s *section) fill(whole, fraction, exponent string, x layout, l *locale) string {
	var b strings.Builder
	whole = strings.TrimLeft(whole, "0")
	places, point, power := x.whole, false, false
	for i, t := range s.tokens {
		switch t.kind {
		case digitToken:
			switch {
			case power:
				b.WriteString(exponent)
				exponent = "" // all at the first place
			case point:
				b.WriteString(decimalPlace(t.text, &fraction))
			default:
				wholePlace(&b, t.text, &whole, places, x.grouped, l)
				places--
			}
		case pointToken:
			if x.whole == 0 {
				b.WriteString(whole) // a format such as ".00" has no place for them
			}
			point = true
			b.WriteString(l.decimal)
		case commaToken:
			if x.whole == 0 || i > x.lastWhole && x.thousands == 0 {
				b.WriteString(t.text)
			}
		case exponentToken:
			power = true
			b.WriteString("E")
			switch {
			case strings.HasPrefix(exponent, "-"):
				b.WriteString("-")
				exponent = exponent[1:]
			case t.text[1] == '+':
				b.WriteString("+")
			}
		default:
			b.WriteString(t.text)
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// wholePlace writes the digits of a place before the point. places is how many are left, with this one.
func wholePlace(b *strings.Builder, place string, whole *string, places int, grouped bool, l *locale) {
	count := len(*whole) - places + 1 // more than 1 at the first place of a long number
	digits := (*whole)[:max(count, 0)]
	*whole = (*whole)[len(digits):]
	if digits == "" {
		digits = map[string]string{"0": "0", "?": " "}[place]
	}
	for i := range len(digits) {
		b.WriteByte(digits[i])
		right := places - 1 + len(digits) - i - 1 // places to the right of this digit
		if grouped && right > 0 && right%3 == 0 && digits[i] != ' ' {
			b.WriteString(l.group)
		}
	}
}

// decimalPlace returns the digit of a place after the point, and removes it from fraction. Zeros at the end are
// not shown in places of #.
func decimalPlace(place string, fraction *string) string {
	digit := (*fraction)[:1]
	rest := *fraction
	*fraction = (*fraction)[1:]
	if strings.Trim(rest, "0") == "" && place != "0" {
		return map[string]string{"?": " "}[place]
	}
	return digit
}

// showFraction shows a number such as 1 3/4.
func (s *section) showFraction(n float64, x layout, l *locale) string {
	// The places after the slash are the digits of the denominator, or they are a fixed denominator.
	places, fixed := 0, ""
	end := x.slash + 1
	for ; end < len(s.tokens) && (s.tokens[end].kind == digitToken || isDigits(s.tokens[end].text)); end++ {
		places++
		fixed += s.tokens[end].text
	}
	begin := x.slash
	for begin > 0 && s.tokens[begin-1].kind == digitToken {
		begin--
	}
	mixed := false
	for _, t := range s.tokens[:begin] {
		mixed = mixed || t.kind == digitToken
	}
	whole, part := 0.0, n
	if mixed {
		whole, part = math.Modf(n)
	}
	above, below := fractionOf(part, places, fixed)
	if mixed && above == below && below > 0 {
		whole, above = whole+1, 0
	}
	var b strings.Builder
	wrote := false
	for i, t := range s.tokens {
		switch {
		case i >= begin && i < end:
			if i == begin && (above != 0 || !mixed) {
				b.WriteString(strconv.FormatFloat(above, 'f', 0, 64) + "/" + strconv.FormatFloat(below, 'f', 0, 64))
			}
		case t.kind == digitToken:
			if !wrote && (whole != 0 || above == 0 || t.text == "0") {
				b.WriteString(strconv.FormatFloat(whole, 'f', 0, 64))
			}
			wrote = true
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// fractionOf returns the fraction nearest to n whose denominator has some digits, or is the fixed number.
func fractionOf(n float64, places int, fixed string) (above, below float64) {
	if d, err := strconv.ParseFloat(strings.Trim(fixed, "#?"), 64); err == nil && d > 0 {
		return math.Round(n * d), d
	}
	most := math.Pow10(min(max(places, 1), 4)) - 1
	best := math.Inf(1)
	below = 1
	for d := 1.0; d <= most; d++ {
		a := math.Round(n * d)
		if distance := math.Abs(n - a/d); distance < best-1e-12 {
			above, below, best = a, d, distance
		}
	}
	return above, below
}
