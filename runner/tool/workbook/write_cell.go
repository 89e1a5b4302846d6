package workbook

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// plainNumber matches a text that is a number. It excludes telephone and account numbers: Excel
// would remove their leading zeros, and all digits after the 15th.
var plainNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,12})?$`)
})

// setText sets a cell to a text, or to the number or date that the text is.
func (x *cell) setText(text string) {
	if text == "" {
		return
	}
	if plainNumber().MatchString(text) {
		x.setNumber(text)
		return
	}
	x.value = text
	if serial, clock, ok := parseDate(text); ok {
		x.value, x.digits = serial, strconv.FormatFloat(serial, 'f', -1, 64)
		if x.style.format == "" {
			x.style.format = map[bool]string{true: clockFormat, false: dateFormat}[clock]
		}
	}
}

// setNumber sets a cell to a number. Numbers beyond the range of a cell become texts.
func (x *cell) setNumber(digits string) {
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		x.value = digits
		return
	}
	x.value, x.digits = n, digits
}

// readCell returns a cell. Those of the header stay texts.
func readCell(v any, header bool) (cell, error) {
	x := cell{style: cellStyle{bold: header}}
	switch v := v.(type) {
	case nil, bool:
		x.value = v
	case string:
		if x.value = v; !header {
			x.setText(v)
		}
	case json.Number:
		x.setNumber(v.String())
	case map[string]any:
		return readCellObject(v, x)
	default:
		return x, fmt.Errorf("a cell must not be a list")
	}
	if x.value == "" {
		x.value = nil
	}
	return x, nil
}

// readCellObject returns a cell with a formula, a format or bold text.
func readCellObject(v map[string]any, x cell) (cell, error) {
	wrong := fmt.Errorf(`a cell must be a text, a number, true, false, null or an object such as ` +
		`{"formula": "SUM(A2:A9)", "format": "0%%"} or {"value": 0.25, "format": "0%%", "bold": true}`)
	f, hasFormula := v["formula"]
	value, hasValue := v["value"]
	if hasFormula == hasValue {
		return x, wrong
	}
	for key, option := range v {
		ok := true
		switch key {
		case "format":
			x.style.format, ok = option.(string)
		case "bold":
			x.style.bold, ok = option.(bool)
		case "formula":
			_, ok = option.(string)
		case "value":
			switch option.(type) {
			case map[string]any, []any:
				ok = false
			}
		default:
			ok = false
		}
		if !ok {
			return x, wrong
		}
	}
	if err := checkFormat(x.style.format); err != nil {
		return x, err
	}
	if hasFormula {
		// The element f of ECMA-376 contains a formula without "=".
		x.formula = &formulaCell{text: strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(f.(string)), "="))}
		return x, nil
	}
	style := x.style
	x, err := readCell(value, style.bold && style.format == "@")
	if style.format == "" {
		style.format = x.style.format
	}
	x.style = style
	return x, err
}

// checkFormat returns an error for a number format that Excel reports as damage.
func checkFormat(code string) error {
	wrong := func(why string) error {
		return fmt.Errorf(`the format %q %s; formats are such as "0%%", "#,##0.00", "0.00 \"kg\"" or "yyyy-mm-dd"`, code, why)
	}
	if utf8.RuneCountInString(code) > 255 {
		return wrong("has more than 255 characters")
	}
	p := formatParser{rest: code}
	sections := 1
	for ; p.rest != ""; sections++ {
		for p.rest != "" && p.rest[0] != ';' {
			before := p.rest
			p.next()
			piece := before[:len(before)-len(p.rest)]
			switch c := piece[0]; {
			case c == '"' && (len(piece) == 1 || !strings.HasSuffix(piece, `"`)):
				return wrong("has no closing quotation mark")
			case c == '[' && piece == "[":
				return wrong("has a [ without ]")
			case len(piece) == 1 && (c|0x20 >= 'a' && c|0x20 <= 'z') && !strings.ContainsRune("ymdhsYMDHS", rune(c)):
				return wrong("has a text without quotation marks")
			}
		}
		if p.rest == "" {
			break
		}
		p.rest = p.rest[1:]
	}
	if sections > 4 {
		return wrong("has more than four sections")
	}
	return nil
}
