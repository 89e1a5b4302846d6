package workbook

import (
	"fmt"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// Names of ECMA-376.
const (
	relationType  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	relationSpace = `xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	mainSpace     = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	sheetType     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
	relationsHead = archive.Head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
)

// relationTo returns a relation to another file.
func relationTo(id, kind, target string) string {
	return fmt.Sprintf(`<Relationship Id="%s" Type="%s%s" Target="%s"/>`, id, relationType, kind, target)
}

// add adds a file. contentType is "" if the extension determines it.
func (b *builder) add(name, contentType, content string) {
	b.files = append(b.files, name, content)
	if contentType != "" {
		fmt.Fprintf(&b.types, `<Override PartName="/%s" ContentType="%s"/>`, name, contentType)
	}
}

// build returns the archive of the workbook.
func (b *builder) build() ([]byte, error) {
	var rels, list strings.Builder
	for i, s := range b.sheets {
		// A sheet is listed in three places: content types, relations and workbook.
		n := i + 1
		b.add(fmt.Sprintf("xl/worksheets/sheet%d.xml", n), sheetType+"worksheet+xml", b.sheetXML(s))
		rels.WriteString(relationTo(fmt.Sprintf("s%d", n), "worksheet", fmt.Sprintf("worksheets/sheet%d.xml", n)))
		fmt.Fprintf(&list, `<sheet name="%s" sheetId="%d" r:id="s%d"/>`, archive.Escape(s.name), n, n)
		if len(s.charts) > 0 {
			b.addCharts(n, s)
		}
	}
	b.add("xl/styles.xml", sheetType+"styles+xml", b.stylesXML())
	// Programs that compute do so again when they open the file.
	b.add("xl/workbook.xml", sheetType+"sheet.main+xml", archive.Head+`<workbook `+mainSpace+` `+relationSpace+`><sheets>`+
		list.String()+`</sheets><calcPr calcId="191029" fullCalcOnLoad="1"/></workbook>`)
	b.add("xl/_rels/workbook.xml.rels", "", relationsHead+rels.String()+
		relationTo("styles", "styles", "styles.xml")+`</Relationships>`)
	b.add("_rels/.rels", "", relationsHead+relationTo("rId1", "officeDocument", "xl/workbook.xml")+`</Relationships>`)
	b.add("[Content_Types].xml", "", archive.Head+
		`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">`+
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>`+
		`<Default Extension="xml" ContentType="application/xml"/>`+b.types.String()+`</Types>`)
	return archive.Pack(b.files...)
}

// stylesXML returns the styles of the cells.
func (b *builder) stylesXML() string {
	var formats, cells strings.Builder
	// Excel reserves the numbers below 164 for its own formats.
	ids := map[string]int{"": 0}
	for _, s := range b.styles {
		id, ok := ids[s.format]
		if !ok {
			id = 163 + len(ids)
			ids[s.format] = id
			fmt.Fprintf(&formats, `<numFmt numFmtId="%d" formatCode="%s"/>`, id, archive.Escape(s.format))
		}
		font := 0
		if s.bold {
			font = 1
		}
		fmt.Fprintf(&cells, `<xf numFmtId="%d" fontId="%d" fillId="0" borderId="0" xfId="0" applyFont="1" `+
			`applyNumberFormat="1"/>`, id, font)
	}
	numbers := ""
	if len(ids) > 1 {
		numbers = fmt.Sprintf(`<numFmts count="%d">%s</numFmts>`, len(ids)-1, formats.String())
	}
	// Excel reserves the first two fills, none and gray125, and the first cell format.
	return archive.Head + `<styleSheet ` + mainSpace + `>` + numbers +
		`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>` +
		`<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
		`<fills count="2"><fill><patternFill patternType="none"/></fill>` +
		`<fill><patternFill patternType="gray125"/></fill></fills>` +
		`<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
		`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>` +
		fmt.Sprintf(`<cellXfs count="%d">%s</cellXfs>`, len(b.styles), cells.String()) +
		`<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`
}
