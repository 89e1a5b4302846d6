package workbook

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/runner/tool/office/archive"
)

// Limits of the format. Excel reports a workbook that exceeds them as damaged.
const (
	maxCellText  = 32_767 // characters
	maxSheetName = 31     // characters
	widestColumn = 60     // characters; a limit of this program, so that a long text does not hide other columns
)

// Write returns a workbook. The content is CSV or JSON. JSON is a list of rows, or an
// object of such lists by the names of their sheets. The first row of a sheet is its header.
// Texts that are plain numbers or ISO dates become numbers and dates. A cell with the JSON
// object {"formula": "SUM(A2:A9)"} becomes a formula. A text such as "=A1" stays a text,
// because untrusted data must not become a formula.
func Write(content []byte) ([]byte, error) {
	sheets, err := readSheets(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, err
	}
	if err := checkSheets(sheets); err != nil {
		return nil, err
	}
	const main = `application/vnd.openxmlformats-officedocument.spreadsheetml.`
	const kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	types := archive.Head + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="` + main + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + main + `styles+xml"/>`
	rels := archive.Head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="styles" Type="` + kind + `styles" Target="styles.xml"/>`
	book := archive.Head + `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="` +
		kind[:len(kind)-1] + `"><sheets>`
	files := []string{"xl/styles.xml", xlsxStyles}
	for i, s := range sheets {
		// A sheet is listed in three places: content types, relations and workbook.
		n := i + 1
		types += fmt.Sprintf(`<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%sworksheet+xml"/>`, n, main)
		rels += fmt.Sprintf(`<Relationship Id="s%d" Type="%sworksheet" Target="worksheets/sheet%d.xml"/>`, n, kind, n)
		book += fmt.Sprintf(`<sheet name="%s" sheetId="%d" r:id="s%d"/>`, archive.Escape(s.name), n, n)
		files = append(files, fmt.Sprintf("xl/worksheets/sheet%d.xml", n), s.xml())
	}
	return archive.Pack(append(files, "[Content_Types].xml", types+"</Types>",
		"_rels/.rels", xlsxRoot,
		"xl/workbook.xml", book+"</sheets></workbook>", "xl/_rels/workbook.xml.rels", rels+"</Relationships>")...)
}

// A sheet is a sheet for writing.
type sheet struct {
	name string
	rows [][]any // cells: string, json.Number, bool, nil or formula
}

// A formula is the text of a formula, without a leading "=".
type formula string

// readSheets parses the sheets in a CSV or JSON text. The first character determines the
// format.
func readSheets(content []byte) ([]sheet, error) {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) == 0 {
		return nil, errors.New("there are no rows")
	}
	if trimmed[0] != '[' && trimmed[0] != '{' {
		return readCSV(content)
	}
	dec := json.NewDecoder(bytes.NewReader(trimmed))
	dec.UseNumber() // float64 would lose digits of long numbers
	if trimmed[0] == '[' {
		s := sheet{name: "Sheet1"}
		err := s.readRows(dec)
		return []sheet{s}, err
	}
	_, _ = dec.Token() // the opening brace
	var sheets []sheet
	// Read them one by one, because a map would lose the order of the sheets.
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("the JSON is broken: %w", err)
		}
		s := sheet{name: fmt.Sprint(name)}
		if err := s.readRows(dec); err != nil {
			return nil, err
		}
		sheets = append(sheets, s)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the JSON is broken: %w", err)
	}
	return sheets, nil
}

// readRows decodes a JSON list of rows. It returns an error if a cell has an invalid type.
func (s *sheet) readRows(dec *json.Decoder) error {
	if err := dec.Decode(&s.rows); err != nil {
		return fmt.Errorf("sheet %q must be a list of rows, each a list of cells: %w", s.name, err)
	}
	for _, row := range s.rows {
		for i, cell := range row {
			read, err := readCell(cell)
			if err != nil {
				return err
			}
			row[i] = read
		}
	}
	return nil
}

// readCell returns the value of a cell: a formula for an object, and any other value unchanged.
func readCell(cell any) (any, error) {
	switch c := cell.(type) {
	case map[string]any:
		f, ok := c["formula"].(string)
		if !ok || len(c) != 1 || f == "" {
			return nil, errors.New(`a cell must be a text, a number, true, false, null or {"formula": "SUM(A2:A9)"}`)
		}
		// The element f of ECMA-376 contains a formula without "=".
		return formula(strings.TrimPrefix(f, "=")), nil
	case []any:
		return nil, errors.New("a cell must not be a list")
	}
	return cell, nil
}

// readCSV parses rows whose cells are separated by commas, semicolons or tabs.
func readCSV(content []byte) ([]sheet, error) {
	r := csv.NewReader(bytes.NewReader(content))
	// Models write rows of different lengths, and quotation marks inside a cell.
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	line, _, _ := bytes.Cut(content, []byte("\n"))
	// The most frequent of these characters in the first line is the separator.
	for _, mark := range ";\t" {
		if bytes.ContainsRune(line, mark) &&
			bytes.Count(line, []byte(string(mark))) > bytes.Count(line, []byte{byte(r.Comma)}) {
			r.Comma = mark
		}
	}
	s := sheet{name: "Sheet1"}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return []sheet{s}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the CSV is broken: %w", err)
		}
		row := make([]any, len(record))
		for i, cell := range record {
			row[i] = cell
		}
		s.rows = append(s.rows, row)
	}
}

// checkSheets returns an error for sheets that the format does not allow.
func checkSheets(sheets []sheet) error {
	if len(sheets) > maxSheets {
		return fmt.Errorf("a workbook can have %d sheets, and this one has %d", maxSheets, len(sheets))
	}
	names := map[string]bool{}
	for _, s := range sheets {
		// For Excel, names that differ only in case are equal.
		folded := strings.ToLower(s.name)
		switch {
		case s.name == "" || utf8.RuneCountInString(s.name) > maxSheetName || strings.ContainsAny(s.name, `[]:*?/\`) ||
			strings.HasPrefix(s.name, "'") || strings.HasSuffix(s.name, "'"):
			return fmt.Errorf(`sheet %q: a name has 1 to %d characters, none of []:*?/\ and no ' at its ends`,
				s.name, maxSheetName)
		case names[folded]:
			return fmt.Errorf("sheet %q is there twice", s.name)
		case len(s.rows) > maxRows:
			return fmt.Errorf("sheet %q has %d rows, more than %d", s.name, len(s.rows), maxRows)
		}
		names[folded] = true
		if err := checkRows(s); err != nil {
			return err
		}
	}
	if len(sheets) == 0 {
		return errors.New("there are no sheets")
	}
	return nil
}

// checkRows returns an error for rows and cells that the format does not allow.
func checkRows(s sheet) error {
	for i, row := range s.rows {
		if len(row) > maxColumns {
			return fmt.Errorf("row %d of sheet %q has %d cells, more than %d", i+1, s.name, len(row), maxColumns)
		}
		for _, cell := range row {
			if text, ok := cell.(string); ok && utf8.RuneCountInString(text) > maxCellText {
				return fmt.Errorf("a cell in row %d of sheet %q has more than %d characters", i+1, s.name, maxCellText)
			}
		}
	}
	return nil
}

// xml returns the file of a sheet. The first row stays visible when a reader scrolls.
func (s sheet) xml() string {
	var rows strings.Builder
	var widths []int
	for i, row := range s.rows {
		fmt.Fprintf(&rows, `<row r="%d">`, i+1)
		for k, cell := range row {
			if k == len(widths) {
				widths = append(widths, 8)
			}
			// Excel does not adapt the columns to their contents when it opens a file.
			widths[k] = max(widths[k], min(len(fmt.Sprint(cell))+2, widestColumn))
			writeCell(&rows, columnName(k+1)+strconv.Itoa(i+1), cell, i == 0)
		}
		rows.WriteString(`</row>`)
	}
	cols := ""
	for k, width := range widths {
		cols += fmt.Sprintf(`<col min="%d" max="%d" width="%d" customWidth="1"/>`, k+1, k+1, width)
	}
	if cols != "" {
		cols = "<cols>" + cols + "</cols>"
	}
	// The schema of ECMA-376 fixes the order: sheetViews, cols, sheetData.
	return archive.Head + `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetViews>` +
		`<sheetView workbookViewId="0">` +
		`<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView>` +
		`</sheetViews>` + cols + `<sheetData>` + rows.String() + `</sheetData></worksheet>`
}

// plainNumber matches a text that is a number. It excludes telephone and account numbers: Excel
// would remove their leading zeros, and all digits after the 15th.
var plainNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,12})?$`)

// writeCell writes a cell at a position such as "B7".
func writeCell(b *strings.Builder, at string, cell any, header bool) {
	style := ""
	if header {
		style = fmt.Sprintf(` s="%d"`, boldCell)
	}
	text := fmt.Sprint(cell)
	switch c := cell.(type) {
	// An empty cell has no element.
	case nil:
		return
	case bool:
		fmt.Fprintf(b, `<c r="%s"%s t="b"><v>%d</v></c>`, at, style, map[bool]int{true: 1}[c])
		return
	case formula:
		fmt.Fprintf(b, `<c r="%s"%s><f>%s</f></c>`, at, style, archive.Escape(text))
		return
	case json.Number:
		fmt.Fprintf(b, `<c r="%s"%s><v>%s</v></c>`, at, style, text)
		return
	}
	day, err := time.Parse("2006-01-02", text)
	switch {
	case text == "":
	case !header && plainNumber.MatchString(text):
		fmt.Fprintf(b, `<c r="%s"%s><v>%s</v></c>`, at, style, text)
	// Excel counts 29 February 1900, which did not exist, so dates of that year stay texts.
	case !header && err == nil && day.Year() > 1900:
		days := day.Sub(time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)).Hours() / 24
		fmt.Fprintf(b, `<c r="%s" s="%d"><v>%d</v></c>`, at, dateCell, int(days))
	default:
		fmt.Fprintf(b, `<c r="%s"%s t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, at, style, archive.Escape(text))
	}
}
