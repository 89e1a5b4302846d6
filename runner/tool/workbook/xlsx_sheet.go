package workbook

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// maxSharedFormulas is the total length of the shared formulas of a sheet, in bytes.
const maxSharedFormulas = 8 << 20

// readSheet reads the sheet with index i, and what belongs to it.
func (b *xlsxBook) readSheet(i int) error {
	ref := b.sheets[i]
	target := b.targets[ref.id]
	s := b.text.newSheet(ref.name)
	if ref.hidden != "" {
		s.facts = append(s.facts, ref.hidden)
	}
	if target.Kind == "chartsheet" {
		s.facts = append(s.facts, "only a chart")
	}
	related, err := b.r.Relations(target.Target)
	if err == nil {
		v := &sheetReader{book: b, sheet: s, related: related, shared: map[string]sharedFormula{}}
		_, err = b.r.Parse(target.Target, v)
	}
	if err == nil {
		err = b.readRelated(s, related)
	}
	return s.end(i+1, err)
}

// A sharedFormula is a formula of many cells, as it is in the first of them.
type sharedFormula struct {
	text string
	at   cellAt
}

// A sheetReader reads the cells of a sheet.
type sheetReader struct {
	book       *xlsxBook
	sheet      *sheetText
	related    map[string]archive.Relation
	shared     map[string]sharedFormula
	sharedSize int

	row, column    int             // of the present cell
	kind, style    string          // attributes t and s of the cell
	value, formula strings.Builder // of the cell
	formulaKind    string          // attribute t of f
	formulaRef, si string          // its cells, and its number among the shared ones
	hasFormula     bool
	into           *strings.Builder // nil to ignore text
	phonetic       bool
	choices        string // cells with a list of choices
	list           strings.Builder
}

// Start reads the attributes of an element.
func (v *sheetReader) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "col":
		if isTrue(attr.Get("hidden")) {
			first, _ := strconv.Atoi(attr.Get("min")) // 0 hides nothing
			last, _ := strconv.Atoi(attr.Get("max"))
			v.sheet.hideColumns(first, last)
		}
	case "row":
		v.row++
		// The attribute r is optional: without it, a row follows the previous one.
		if n, err := strconv.Atoi(attr.Get("r")); err == nil {
			v.row = n
		}
		v.column = 0
		v.sheet.beginRow(v.row, isTrue(attr.Get("hidden")))
	case "c":
		v.startCell(attr)
	case "v":
		v.into = &v.value
	case "t":
		if !v.phonetic {
			v.into = &v.value
		}
	case "rPh":
		v.phonetic = true
	case "f":
		v.into, v.hasFormula = &v.formula, true
		v.formulaKind, v.formulaRef, v.si = attr.Get("t"), attr.Get("ref"), attr.Get("si")
	default:
		v.startNote(name.Local, attr)
	}
	return nil
}

func (v *sheetReader) startCell(attr archive.Attributes) {
	v.column++ // the attribute r is optional: without it, a cell follows the previous one
	if n, _ := cutColumn(attr.Get("r")); n > 0 {
		v.column = n
	}
	v.kind, v.style = attr.Get("t"), attr.Get("s")
	v.value.Reset()
	v.formula.Reset()
	v.formulaKind, v.hasFormula = "", false
}

// startNote reads an element that follows the cells.
func (v *sheetReader) startNote(name string, attr archive.Attributes) {
	switch name {
	case "mergeCell":
		if a, ok := parseArea(attr.Get("ref")); ok {
			v.sheet.note("merged cells", a, a.String())
		}
	case "hyperlink":
		v.link(attr)
	case "dataValidation":
		v.choices = ""
		if attr.Get("type") == "list" {
			v.choices = attr.Get("sqref")
		}
		v.list.Reset()
	case "formula1":
		v.into = &v.list
	}
}

// link adds the address of a link.
func (v *sheetReader) link(attr archive.Attributes) {
	a, ok := parseArea(attr.Get("ref"))
	if !ok {
		return
	}
	address := v.related[attr.Get("r:id")].Target
	if place := attr.Get("location"); place != "" {
		address += "#" + place
	}
	v.sheet.note("links", a, a.String()+" to "+address)
}

// Text adds to the value or formula of the cell.
func (v *sheetReader) Text(text string) error {
	if v.into != nil {
		v.into.WriteString(text)
	}
	return nil
}

// End ends an element.
func (v *sheetReader) End(name xml.Name) error {
	switch name.Local {
	case "v", "t", "f", "formula1":
		v.into = nil
	case "rPh":
		v.phonetic = false
	case "c":
		return v.endCell()
	case "row":
		return v.sheet.endRow()
	case "dataValidation":
		v.endChoices()
	}
	return nil
}

// endChoices adds the list of choices of some cells.
func (v *sheetReader) endChoices() {
	first, _, _ := strings.Cut(v.choices, " ")
	if a, ok := parseArea(first); ok && v.list.Len() > 0 {
		v.sheet.note("choices", a, v.choices+": "+strings.Trim(plainFormula(v.list.String()), `"`))
	}
}

// endCell adds a cell to its row.
func (v *sheetReader) endCell() error {
	if v.hasFormula && v.formulaKind == "shared" && v.formula.Len() > 0 {
		v.share()
	}
	if !v.sheet.wants(v.column) {
		// An empty cell with a format is no content.
		if v.value.Len() > 0 {
			return v.sheet.cell(v.column, "x")
		}
		return nil
	}
	value := v.shown()
	if v.hasFormula {
		value = v.withFormula(value)
	}
	v.exactly()
	return v.sheet.cell(v.column, value)
}

// share stores a shared formula for the cells that follow.
func (v *sheetReader) share() {
	if v.sharedSize += v.formula.Len(); v.sharedSize <= maxSharedFormulas {
		v.shared[v.si] = sharedFormula{v.formula.String(), cellAt{v.column, v.row}}
	}
}

// withFormula returns the cell with its formula before the value.
func (v *sheetReader) withFormula(value string) string {
	text := plainFormula(v.formula.String())
	if master, ok := v.shared[v.si]; ok && v.formulaKind == "shared" && text == "" {
		text = plainFormula(shifted(master.text, v.column-master.at.column, v.row-master.at.row))
	}
	switch {
	case v.formulaKind == "dataTable":
		text = "{=TABLE()}"
	case text == "":
		return value
	case v.formulaKind == "array":
		text = "{=" + text + "}"
		if a, ok := parseArea(v.formulaRef); ok && a.size() > 1 {
			text += " in " + a.String()
		}
	default:
		text = "=" + text
	}
	// No program has computed its value yet.
	if value == "" && v.kind != "str" {
		value = "(not computed)"
	}
	return shownCell(text, value)
}

// shown returns the value of the cell as text, "" for an empty cell.
func (v *sheetReader) shown() string {
	text := v.value.String()
	switch v.kind {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || i < 0 || i >= len(v.book.strings) {
			return ""
		}
		text = v.book.strings[i]
		if f := v.format(); f != nil && text != "" {
			text = f.textShown(text)
		}
		return text
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[text]
	case "", "n":
		return v.number(text)
	}
	return cellText(text)
}

// format returns the number format of the cell, nil for none.
func (v *sheetReader) format() *numberFormat {
	if i, err := strconv.Atoi(v.style); err == nil && i >= 0 && i < len(v.book.styles) {
		return v.book.styles[i]
	}
	if v.style == "" && len(v.book.styles) > 0 {
		return v.book.styles[0]
	}
	return nil
}

// number returns a number in the format of its cell.
func (v *sheetReader) number(text string) string {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return cellText(text)
	}
	f := v.format()
	if f == nil {
		return general(n, v.book.locale)
	}
	shown := cellText(f.number(n, v.book.oldDates))
	// Some formats, such as ;;; hide a number. It must not get lost.
	if shown == "" && n != 0 {
		return fmt.Sprintf("(not shown: %s)", general(n, v.book.locale))
	}
	return shown
}

// exactly notes the exact value of a number, if the call selects only this cell.
func (v *sheetReader) exactly() {
	a := v.book.text.cells
	f := v.format()
	if a.first != a.last || f == nil || v.value.Len() == 0 || v.kind != "" && v.kind != "n" {
		return
	}
	v.sheet.note("exact value", a, fmt.Sprintf("%s, format %q", v.value.String(), f.code))
}
