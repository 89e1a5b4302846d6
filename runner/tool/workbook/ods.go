package workbook

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"journeyman/runner/tool/office/archive"
)

var errOdsProtected = errors.New("a password protects it")

// Ods returns the text of the selected part of an OpenDocument workbook, in the form of Xlsx. Numbers and dates are
// the texts that the program stored with them. The workbook may be a single XML file.
func Ods(data []byte, s Selection, expired func() bool) ([]byte, error) {
	r, err := archive.OpenFlat(data, "content.xml", expired)
	if err != nil {
		return nil, err
	}
	book := &bookText{expired: expired}
	v := &odsReader{text: book, r: r, only: -1, hiddenStyles: map[string]bool{}, choices: map[string]string{}}
	if err = v.open(s); err != nil {
		return nil, err
	}
	_, err = r.Parse("content.xml", odsVisitor{v})
	// The reading may have ended inside a sheet.
	if err != nil && v.sheet != nil {
		err = v.sheet.end(v.number, err)
	}
	return book.finish(err, v.number)
}

// An odsVisitor passes elements to an odsReader.
type odsVisitor struct{ *odsReader }

// Start begins an element.
func (v odsVisitor) Start(name xml.Name, attr archive.Attributes) error {
	return v.start(odsName(name), odsAttributes(attr))
}

// End ends an element.
func (v odsVisitor) End(name xml.Name) error { return v.finish(odsName(name)) }

// Text adds a text to the innermost element that has one.
func (v odsVisitor) Text(text string) error {
	if v.paragraphs > 0 {
		v.target().WriteString(text)
	}
	return nil
}

// An odsCell is a cell of the present row.
type odsCell struct {
	column, repeated int
	text             string
}

// An odsReader reads the content of an OpenDocument workbook.
type odsReader struct {
	text         *bookText
	r            archive.Reader
	only         int             // index of the selected sheet, -1 for all
	hiddenStyles map[string]bool // names of the styles of hidden sheets
	choices      map[string]string
	style        string // name of the present style

	number     int        // of the present sheet, from 1
	sheet      *sheetText // nil outside of selected sheets
	nested     int        // tables inside cells
	column     int        // next column
	row        int        // present row
	rowCount   int        // how often it is repeated
	rowHidden  bool
	cells      []odsCell
	cell       odsAttributes // of the present cell
	inCell     bool
	value      strings.Builder // of the cell
	comment    *odsComment     // nil outside of comments
	box        *odsFrame       // nil outside of pictures, charts and text boxes
	paragraphs int             // open paragraphs
	lists      []odsChoices
	pending    []func() // notes about the present row, whose number is known
}

type odsComment struct {
	text, author strings.Builder
	inAuthor     bool
}

type odsFrame struct {
	name, kind, object string
	text               strings.Builder
}

// target returns the text to which the present paragraph belongs.
func (v *odsReader) target() *strings.Builder {
	switch {
	case v.comment != nil && v.comment.inAuthor:
		return &v.comment.author
	case v.comment != nil:
		return &v.comment.text
	case v.box != nil:
		return &v.box.text
	}
	return &v.value
}

// open checks that the workbook can be read, and finds the selected sheet.
func (v *odsReader) open(s Selection) error {
	manifest := &odsElements{wanted: "encryption-data"}
	if _, err := v.r.Parse("META-INF/manifest.xml", manifest); err != nil {
		return err
	}
	if len(manifest.found) > 0 {
		return errOdsProtected
	}
	if v.r.Files["content.xml"] == nil {
		return archive.ErrDamaged
	}
	sheet, cells, err := s.split(nil)
	if err != nil {
		return err
	}
	v.text.sheet, v.text.cells = sheet, cells
	if sheet == "" && cells == everything {
		return nil
	}
	tables := &odsElements{wanted: "table", attribute: "table:name"}
	if _, err := v.r.Parse("content.xml", tables); err != nil {
		return err
	}
	if sheet == "" && len(tables.found) > 0 {
		v.text.sheet, v.only = tables.found[0], 0
		return nil
	}
	v.only, err = pick(sheet, tables.found, func(int) bool { return false })
	return err
}

// start begins an element.
func (v *odsReader) start(name string, attr odsAttributes) error {
	switch name {
	case "style:style":
		v.style = attr.get("style:name")
	case "style:table-properties":
		if attr.get("table:display") == "false" {
			v.hiddenStyles[v.style] = true
		}
	case "table:content-validation":
		v.choices[attr.get("table:name")] = odsList(attr.get("table:condition"))
	case "table:named-range":
		v.bookNote("name %s = %s", attr.get("table:name"), odsReference(attr.get("table:cell-range-address")))
	case "table:database-range":
		if v.sheet == nil && !strings.HasPrefix(attr.get("table:name"), "__Anonymous") {
			v.bookNote("table %q in %s", attr.get("table:name"), odsReference(attr.get("table:target-range-address")))
		}
	case "table:table":
		return v.startTable(attr)
	default:
		if v.sheet != nil {
			v.startInSheet(name, attr)
		}
	}
	return nil
}

func (v *odsReader) bookNote(format string, args ...any) {
	if len(v.text.notes) < maxNotes {
		v.text.notes = append(v.text.notes, cut(fmt.Sprintf(format, args...), maxNote))
	}
}

func (v *odsReader) startTable(attr odsAttributes) error {
	if v.inCell {
		v.nested++
		return nil
	}
	v.number++
	if v.only >= 0 && v.number != v.only+1 {
		return nil
	}
	if v.number > maxSheets && v.only < 0 {
		if err := v.text.line("[further sheets are not read: sheet gives one of them]"); err != nil {
			return err
		}
		return archive.ErrEnough
	}
	v.sheet = v.text.newSheet(attr.get("table:name"))
	if v.hiddenStyles[attr.get("table:style-name")] {
		v.sheet.facts = append(v.sheet.facts, "hidden")
	}
	v.column, v.row, v.rowCount = 1, 1, 0
	return nil
}

// startInSheet begins an element of a selected sheet.
func (v *odsReader) startInSheet(name string, attr odsAttributes) {
	hidden := attr.get("table:visibility")
	isHidden := hidden == "collapse" || hidden == "filter"
	switch {
	case name == "table:table-column" && !v.inCell:
		n := attr.count("table:number-columns-repeated", maxColumns)
		if isHidden {
			v.sheet.hideColumns(v.column, v.column+n-1)
		}
		v.column = min(v.column+n, maxColumns+1)
	case name == "table:table-row" && !v.inCell:
		v.row, v.column = min(v.row+v.rowCount, maxRows+1), 1
		v.rowCount, v.rowHidden = attr.count("table:number-rows-repeated", maxRows), isHidden
		v.cells, v.pending = v.cells[:0], v.pending[:0]
	case name == "table:table-cell" || name == "table:covered-table-cell":
		if !v.inCell {
			v.inCell, v.cell = true, attr
			v.value.Reset()
		}
	case name == "office:annotation":
		v.comment = &odsComment{}
	case name == "creator": // of Dublin Core
		if v.comment != nil {
			v.comment.inAuthor = true
			v.paragraphs++
		}
	default:
		v.startText(name, attr)
	}
}

// startText begins an element of a text, or a frame with a picture or chart.
func (v *odsReader) startText(name string, attr odsAttributes) {
	switch name {
	case "text:p":
		if out := v.target(); out.Len() > 0 {
			out.WriteByte('\n')
		}
		v.paragraphs++
	case "text:s":
		v.target().WriteString(strings.Repeat(" ", attr.count("text:c", maxNotes)))
	case "text:tab", "text:line-break":
		v.target().WriteByte(' ')
	case "text:a":
		if v.inCell && v.comment == nil && v.box == nil {
			at, address := cellAt{v.column, v.row}, odsLink(attr)
			v.pending = append(v.pending, func() { v.sheet.note("links", area{at, at}, at.String()+" to "+address) })
		}
	case "draw:frame", "draw:custom-shape":
		v.box = &odsFrame{name: attr.get("draw:name"), kind: "text box"}
	case "draw:image":
		// The picture of a chart is beside the chart.
		if v.box != nil && v.box.kind != "chart" {
			v.box.kind = "picture"
		}
	case "draw:object":
		if v.box != nil {
			v.box.kind, v.box.object = "chart", odsLink(attr)
		}
	}
}

func odsLink(attr odsAttributes) string {
	for _, a := range attr {
		if a.Name.Local == "href" {
			return a.Value
		}
	}
	return ""
}

// finish ends an element.
func (v *odsReader) finish(name string) error {
	if v.sheet == nil {
		return nil
	}
	switch {
	case name == "text:p":
		v.paragraphs--
	case name == "creator" && v.comment != nil && v.comment.inAuthor:
		v.comment.inAuthor = false
		v.paragraphs--
	case name == "office:annotation" && v.comment != nil:
		v.endComment()
	case (name == "draw:frame" || name == "draw:custom-shape") && v.box != nil:
		return v.endFrame()
	case (name == "table:table-cell" || name == "table:covered-table-cell") && v.nested == 0:
		v.endCell(name)
	case name == "table:table-row" && !v.inCell:
		return v.endRow()
	case name == "table:table" && v.nested > 0:
		v.nested--
	case name == "table:table":
		s := v.sheet
		for _, l := range v.lists {
			s.note("choices", l.cells, l.cells.String()+": "+l.list)
		}
		v.sheet, v.lists = nil, nil
		return s.end(v.number, nil)
	}
	return nil
}

func (v *odsReader) endComment() {
	text, author := strings.TrimSpace(v.comment.text.String()), strings.TrimSpace(v.comment.author.String())
	v.comment = nil
	if author != "" {
		author = " by " + author
	}
	at := cellAt{v.column, v.row}
	note := fmt.Sprintf("on %s%s: %s", at, author, text)
	v.pending = append(v.pending, func() { v.sheet.note("comment", area{at, at}, note) })
}

// endFrame notes a picture, chart or text box. Those outside of cells belong to the sheet.
func (v *odsReader) endFrame() error {
	box := v.box
	v.box = nil
	at, place := area{}, ""
	if v.inCell {
		c := cellAt{v.column, v.row}
		at, place = area{c, c}, " at "+c.String()
	}
	text := strings.TrimSpace(box.text.String())
	switch {
	case box.kind == "picture", box.kind == "chart" && box.object == "": // a flat file has the chart inside
		v.sheet.note(box.kind, at, fmt.Sprintf("%q%s", box.name, place))
	case box.kind == "chart":
		c := &odsChart{}
		object := strings.TrimPrefix(box.object, "./") + "/content.xml"
		if _, err := v.r.Parse(object, c); err != nil {
			return err
		}
		v.sheet.note("chart", at, c.describe(box.name, place))
	case text != "":
		v.sheet.note("text box", at, strings.TrimSpace(place+": "+text))
	}
	return nil
}

// endCell ends a cell. Its neighbours may be equal.
func (v *odsReader) endCell(name string) {
	v.inCell = false
	n := min(v.cell.count("table:number-columns-repeated", maxColumns), maxColumns+1-v.column)
	at := cellAt{v.column, v.row}
	if name == "table:table-cell" {
		v.cellNotes(at, max(n, 1))
	}
	if text := v.shown(); text != "" && n > 0 {
		v.cells = append(v.cells, odsCell{v.column, n, text})
	}
	v.column = min(v.column+n, maxColumns+1)
}

// cellNotes notes what belongs to a cell besides its value.
func (v *odsReader) cellNotes(at cellAt, repeated int) {
	columns := v.cell.count("table:number-columns-spanned", maxColumns)
	rows := v.cell.count("table:number-rows-spanned", maxRows)
	if columns*rows > 1 {
		merged := area{at, cellAt{min(at.column+columns-1, maxColumns), min(at.row+rows-1, maxRows)}}
		v.pending = append(v.pending, func() { v.sheet.note("merged cells", merged, merged.String()) })
	}
	if list := v.choices[v.cell.get("table:content-validation-name")]; list != "" {
		v.addChoices(area{at, cellAt{at.column + repeated - 1, min(at.row+v.rowCount-1, maxRows)}}, list)
	}
	if a := v.text.cells; a.first == a.last && a.first == at && v.cell.get("office:value") != "" {
		v.pending = append(v.pending, func() { v.sheet.note("exact value", a, v.cell.get("office:value")) })
	}
}

// shown returns the text of the cell.
func (v *odsReader) shown() string {
	value := cellText(v.value.String())
	// Some programs store no text beside a number.
	for _, name := range []string{"office:value", "office:date-value", "office:time-value", "office:boolean-value",
		"office:string-value"} {
		if value == "" {
			value = cellText(v.cell.get(name))
		}
	}
	formula := odsFormula(v.cell.get("table:formula"))
	if formula == "" {
		return value
	}
	if v.cell.get("table:number-matrix-columns-spanned") != "" {
		formula = "{" + formula + "}"
	}
	return shownCell(formula, value)
}

// writeCells writes the selected cells of the present row.
func (v *odsReader) writeCells() error {
	selected := v.text.cells
	for _, c := range v.cells {
		to := min(c.column+c.repeated-1, selected.last.column)
		for column := max(c.column, selected.first.column); column <= to; column++ {
			if err := v.sheet.cell(column, c.text); err != nil {
				return err
			}
		}
	}
	return nil
}

// endRow adds the present row as often as it is repeated.
func (v *odsReader) endRow() error {
	for _, note := range v.pending {
		note()
	}
	last := min(v.row+v.rowCount-1, maxRows)
	if len(v.cells) == 0 || v.row > maxRows {
		return nil
	}
	s, selected := v.sheet, v.text.cells
	end := v.cells[len(v.cells)-1]
	s.used = s.used.add(cellAt{v.cells[0].column, v.row}).add(cellAt{end.column + end.repeated - 1, last})
	// Only what is selected is written, so that a row or cell that is repeated a million times costs nothing.
	for row := max(v.row, selected.first.row); row <= min(last, selected.last.row); row++ {
		s.beginRow(row, v.rowHidden)
		if err := v.writeCells(); err != nil {
			return err
		}
		if s.skipped { // nothing of this row and its copies is selected
			return nil
		}
		if err := s.endRow(); err != nil {
			return err
		}
	}
	return nil
}
