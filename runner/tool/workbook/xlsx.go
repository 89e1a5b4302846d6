package workbook

import (
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// Limits of a workbook.
const (
	maxStrings = 1_000_000 // shared strings
	maxShared  = 48 << 20  // total bytes of all shared strings
	maxStyles  = 1 << 16   // cell formats; Excel allows fewer
)

var errBinary = errors.New("it is a binary workbook (xlsb), which is not read: " +
	"ask for it as xlsx, or convert it with LibreOffice in a shell, where there is one: " +
	"soffice --headless --convert-to xlsx FILE")

// Xlsx returns the text of the selected part of an xlsx workbook, sheet by sheet: the letters of the columns, then
// each row as its number and its cells, separated by |. A formula stands before its value: =SUM(B2:B9) → 12.
// Numbers look as their cells show them.
func Xlsx(data []byte, s Selection, expired func() bool) ([]byte, error) {
	r, err := archive.Open(data, expired)
	if err != nil {
		return nil, err
	}
	book := &xlsxBook{r: r, text: &bookText{expired: expired, cells: everything}, locale: neutral,
		defined: map[string]string{}, formats: map[string]*numberFormat{}}
	if err = book.open(); err == nil {
		err = book.read(s)
	}
	return book.text.finish(err, len(book.sheets))
}

// An xlsxBook is a workbook during reading.
type xlsxBook struct {
	r       archive.Reader
	text    *bookText
	targets map[string]archive.Relation // of the file with the list of sheets
	locale  *locale

	sheets   []sheetRef
	defined  map[string]string // cells of defined names, by name in lower case
	links    []string          // relations of other workbooks, in the order of their numbers
	oldDates bool              // dates count from 1904, as in old Excel for Mac
	persons  map[string]string // authors of threaded comments

	strings []string
	styles  []*numberFormat          // of each cell format
	formats map[string]*numberFormat // by their texts
}

type sheetRef struct {
	name, id string
	hidden   string // "", "hidden" or "very hidden"
}

// open reads what all sheets need.
func (b *xlsxBook) open() error {
	root := "xl/workbook.xml"
	top, err := b.r.Relations("")
	if err != nil {
		return err
	}
	for _, rel := range top {
		switch {
		case rel.Kind == "officeDocument" && b.r.Files[rel.Target] != nil:
			root = rel.Target
		case rel.Kind == "core-properties":
			if _, err := b.r.Parse(rel.Target, &languageReader{book: b}); err != nil {
				return err
			}
		}
	}
	if strings.HasSuffix(root, ".bin") || b.r.Files["xl/workbook.bin"] != nil {
		return errBinary
	}
	found, err := b.r.Parse(root, &bookReader{book: b})
	if err == nil && !found {
		err = archive.ErrDamaged
	}
	if err == nil {
		b.targets, err = b.r.Relations(root)
	}
	if err != nil {
		return err
	}
	return b.openParts()
}

// openParts reads the texts and formats, to which sheets refer by number, and names what else the workbook holds.
func (b *xlsxBook) openParts() error {
	visitors := map[string]archive.Visitor{"sharedStrings": &sharedStrings{book: b},
		"styles": &styleReader{book: b, custom: map[int]string{}}, "person": &personReader{book: b}}
	all := sorted(b.targets)
	// Some programs write no relation to these parts.
	for _, part := range []archive.Relation{{Kind: "sharedStrings", Target: "xl/sharedStrings.xml"},
		{Kind: "styles", Target: "xl/styles.xml"}} {
		if !slices.ContainsFunc(all, func(r archive.Relation) bool { return r.Kind == part.Kind }) {
			all = append(all, part)
		}
	}
	for _, rel := range all {
		if v := visitors[rel.Kind]; v != nil {
			if _, err := b.r.Parse(rel.Target, v); err != nil {
				return err
			}
		}
		if rel.Kind == "vbaProject" {
			b.text.notes = append(b.text.notes, "macros, which are not run: "+strings.Join(b.macros(rel.Target), ", "))
		}
	}
	for i, id := range b.links {
		if len(b.text.notes) > maxOverview {
			break
		}
		files, err := b.r.Relations(b.targets[id].Target)
		if err != nil {
			return err
		}
		for _, file := range files {
			b.text.notes = append(b.text.notes, fmt.Sprintf("in formulas [%d] is the file %q", i+1, file.Target))
		}
	}
	return nil
}

// sorted returns relations in a fixed order.
func sorted(relations map[string]archive.Relation) []archive.Relation {
	all := make([]archive.Relation, 0, len(relations))
	for _, rel := range relations {
		all = append(all, rel)
	}
	slices.SortFunc(all, func(x, y archive.Relation) int {
		return strings.Compare(x.Kind+"\x00"+x.Target, y.Kind+"\x00"+y.Target)
	})
	return all
}

// macros returns the names of the modules with macros.
func (b *xlsxBook) macros(name string) []string {
	content, err := b.r.Bytes(name, 4<<20)
	if err != nil {
		return []string{"in a part that cannot be read"}
	}
	// The names are in the list of a macro project (MS-OVBA 2.3.1).
	module := regexp.MustCompile(`(?:Module|Class|BaseClass|Document)=([^\r\n/&\x00]{1,100})`)
	names := []string{}
	for _, m := range module.FindAllSubmatch(content, maxOverview) {
		if n := strings.ToValidUTF8(string(m[1]), "?"); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return []string{"without names"}
	}
	return names
}

// read reads the selected sheets.
func (b *xlsxBook) read(s Selection) error {
	sheet, cells, err := s.split(b.defined)
	if err != nil {
		return err
	}
	names := make([]string, len(b.sheets))
	for i, s := range b.sheets {
		names[i] = s.name
	}
	hidden := func(i int) bool { return b.sheets[i].hidden != "" }
	// Cells without a sheet are those of the first sheet that a person sees.
	if sheet == "" && cells != everything {
		for i, name := range names {
			if sheet == "" || hidden(slices.Index(names, sheet)) && !hidden(i) {
				sheet = name
			}
		}
	}
	only, err := pick(sheet, names, hidden)
	if err != nil {
		return err
	}
	b.text.sheet, b.text.cells = sheet, cells
	read := 0
	for i := range b.sheets {
		if only >= 0 && i != only {
			continue
		}
		// The sheets so far are useful, so this is not an error.
		if read == maxSheets {
			return b.text.line(fmt.Sprintf("[%d more sheets are not read: sheet gives one of them]", len(b.sheets)-i))
		}
		read++
		if err := b.readSheet(i); err != nil {
			return err
		}
	}
	return nil
}

// A bookReader reads the list of sheets and names.
type bookReader struct {
	book   *xlsxBook
	name   string          // of the present defined name
	hidden bool            // it is for programs
	cells  strings.Builder // of the present defined name
	inName bool
}

// Start reads a sheet, a name or an option.
func (v *bookReader) Start(name xml.Name, attr archive.Attributes) error {
	b := v.book
	switch name.Local {
	case "workbookPr":
		b.oldDates = isTrue(attr.Get("date1904"))
	case "sheet":
		s := sheetRef{name: attr.Get("name"), id: attr.Get("r:id")}
		switch attr.Get("state") {
		case "hidden":
			s.hidden = "hidden"
		case "veryHidden":
			s.hidden = "very hidden"
		}
		if b.sheets = append(b.sheets, s); len(b.sheets) > archive.MaxEntries {
			return fmt.Errorf("it has more than %d sheets", archive.MaxEntries)
		}
	case "externalReference":
		b.links = append(b.links, attr.Get("r:id"))
	case "definedName":
		v.name, v.inName = attr.Get("name"), true
		v.hidden = isTrue(attr.Get("hidden")) || strings.HasPrefix(v.name, "_xlnm.")
		v.cells.Reset()
	}
	return nil
}

// Text reads the cells of a defined name.
func (v *bookReader) Text(text string) error {
	if v.inName {
		v.cells.WriteString(text)
	}
	return nil
}

// End ends a defined name.
func (v *bookReader) End(name xml.Name) error {
	if name.Local != "definedName" {
		return nil
	}
	v.inName = false
	b := v.book
	if cells := v.cells.String(); !v.hidden && len(cells) <= maxFormula && len(b.defined) < maxNotes {
		b.defined[strings.ToLower(v.name)] = cells
		b.text.notes = append(b.text.notes, cut(fmt.Sprintf("name %s = %s", v.name, plainFormula(cells)), maxNote))
	}
	return nil
}

func isTrue(attribute string) bool {
	return attribute == "1" || attribute == "true" || attribute == "on"
}

// A languageReader finds the language of a workbook, which LibreOffice stores with its title.
type languageReader struct {
	archive.IgnoreText
	book *xlsxBook
	in   bool
}

// Start notices the element of the language.
func (v *languageReader) Start(name xml.Name, _ archive.Attributes) error {
	v.in = name.Local == "language"
	return nil
}

// Text reads the language.
func (v *languageReader) Text(text string) error {
	if l := localeOf(strings.TrimSpace(text)); v.in && l != nil {
		v.book.locale = l
	}
	return nil
}

// A personReader reads the authors of threaded comments.
type personReader struct {
	archive.IgnoreText
	book *xlsxBook
}

// Start reads an author.
func (v *personReader) Start(name xml.Name, attr archive.Attributes) error {
	if name.Local == "person" {
		if v.book.persons == nil {
			v.book.persons = map[string]string{}
		}
		v.book.persons[attr.Get("id")] = attr.Get("displayName")
	}
	return nil
}

// sharedStrings reads the texts that cells refer to.
type sharedStrings struct {
	book    *xlsxBook
	current strings.Builder // text of the present item
	inText  bool
	skip    bool // inside a phonetic reading, which repeats the text
	size    int  // total bytes of all strings so far
}

// Start notices where a text begins.
func (v *sharedStrings) Start(name xml.Name, _ archive.Attributes) error {
	switch name.Local {
	case "si":
		v.current.Reset()
	case "t":
		v.inText = true
	case "rPh":
		v.skip = true
	}
	return nil
}

// Text adds to the present text.
func (v *sharedStrings) Text(text string) error {
	if v.inText && !v.skip {
		v.current.WriteString(text)
	}
	return nil
}

// End ends a text.
func (v *sharedStrings) End(name xml.Name) error {
	switch name.Local {
	case "t":
		v.inText = false
	case "rPh":
		v.skip = false
	case "si":
		v.size += v.current.Len()
		// Clean it once. Many cells can refer to one long text, and a blank one never fills the result.
		v.book.strings = append(v.book.strings, cellText(v.current.String()))
		// All strings stay in memory until the last sheet has been read.
		if len(v.book.strings) > maxStrings || v.size > maxShared {
			return errors.New("it holds too many texts")
		}
	}
	return nil
}

// A styleReader reads the number formats of cells.
type styleReader struct {
	archive.IgnoreText
	book   *xlsxBook
	custom map[int]string
	inXfs  bool // inside cellXfs
}

// Start reads a number format, or the formats of a cell.
func (v *styleReader) Start(name xml.Name, attr archive.Attributes) error {
	id, _ := strconv.Atoi(attr.Get("numFmtId")) // 0, the plain format, if it is not a number
	switch {
	case name.Local == "numFmt":
		v.custom[id] = attr.Get("formatCode")
	case name.Local == "cellXfs":
		v.inXfs = true
	// Cells refer to the xf elements in cellXfs. Those in cellStyleXfs belong to named styles.
	case name.Local == "xf" && v.inXfs && len(v.book.styles) < maxStyles:
		code, ok := v.custom[id]
		if !ok {
			code = builtinFormat(id, v.book.locale)
		}
		v.book.styles = append(v.book.styles, v.book.format(code))
	}
	return nil
}

// End notices the end of the formats of cells.
func (v *styleReader) End(name xml.Name) error {
	if name.Local == "cellXfs" {
		v.inXfs = false
	}
	return nil
}

// format returns the number format with that text.
func (b *xlsxBook) format(code string) *numberFormat {
	f := b.formats[code]
	if f == nil {
		f = parseFormat(code, b.locale)
		b.formats[code] = f
	}
	return f
}

// formulaPrefixes mark functions that are newer than a file format. People do not see them.
var formulaPrefixes = strings.NewReplacer("_xlfn._xlws.", "", "_xlfn.", "", "_xlws.", "", "_xlpm.", "", "_xludf.", "")

// plainFormula returns a formula as people see it.
func plainFormula(formula string) string { return formulaPrefixes.Replace(formula) }
