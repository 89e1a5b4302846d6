package office

import "journeyman/runner/tool/office/archive"

// Parts that are the same in every document.
const (
	xmlHead = archive.Head

	docxSpaces = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" ` +
		`xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`

	docxTypes = xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="` + wordType + `document.main+xml"/>` +
		`<Override PartName="/word/styles.xml" ContentType="` + wordType + `styles+xml"/>` +
		`<Override PartName="/word/numbering.xml" ContentType="` + wordType + `numbering+xml"/></Types>`
	wordType = `application/vnd.openxmlformats-officedocument.wordprocessingml.`

	docxRoot = xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		`<Relationship Id="rId1" ` +
		`Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" ` +
		`Target="word/document.xml"/></Relationships>`

	// A document without a section has no size of its pages for other programs. A page is A4 with margins of an inch.
	docxSection = `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/>` +
		`<w:pgMar w:top="1440" w:right="1440" w:bottom="1440" w:left="1440" w:header="708" w:footer="708" w:gutter="0"/>` +
		`</w:sectPr>`

	docxStyles = xmlHead + `<w:styles ` + docxSpaces + `><w:docDefaults><w:rPrDefault><w:rPr>` +
		`<w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:cs="Calibri"/><w:sz w:val="22"/></w:rPr></w:rPrDefault>` +
		`<w:pPrDefault><w:pPr><w:spacing w:after="120" w:line="264" w:lineRule="auto"/></w:pPr>` +
		`</w:pPrDefault></w:docDefaults>` +
		`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>` +
		headingStart + `1"><w:name w:val="heading 1"/>` + headingMid + `0"/></w:pPr>` +
		`<w:rPr><w:b/><w:sz w:val="36"/></w:rPr></w:style>` +
		headingStart + `2"><w:name w:val="heading 2"/>` + headingMid + `1"/></w:pPr>` +
		`<w:rPr><w:b/><w:sz w:val="30"/></w:rPr></w:style>` +
		headingStart + `3"><w:name w:val="heading 3"/>` + headingMid + `2"/></w:pPr>` +
		`<w:rPr><w:b/><w:sz w:val="26"/></w:rPr></w:style>` +
		headingStart + `4"><w:name w:val="heading 4"/>` + headingMid + `3"/></w:pPr><w:rPr><w:b/></w:rPr></w:style>` +
		headingStart + `5"><w:name w:val="heading 5"/>` + headingMid + `4"/></w:pPr><w:rPr><w:i/></w:rPr></w:style>` +
		headingStart + `6"><w:name w:val="heading 6"/>` + headingMid + `5"/></w:pPr><w:rPr><w:i/></w:rPr></w:style>` +
		`<w:style w:type="paragraph" w:styleId="Quote"><w:name w:val="Quote"/><w:basedOn w:val="Normal"/>` +
		`<w:pPr><w:ind w:left="567" w:right="567"/></w:pPr><w:rPr><w:i/></w:rPr></w:style>` +
		`<w:style w:type="paragraph" w:customStyle="1" w:styleId="Code">` +
		`<w:name w:val="Code"/><w:basedOn w:val="Normal"/>` +
		`<w:rPr><w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas"/><w:sz w:val="19"/></w:rPr></w:style>` +
		`<w:style w:type="character" w:styleId="Hyperlink"><w:name w:val="Hyperlink"/>` +
		`<w:rPr><w:color w:val="0563C1"/><w:u w:val="single"/></w:rPr></w:style>` +
		`<w:style w:type="table" w:customStyle="1" w:styleId="Grid"><w:name w:val="Grid"/><w:tblPr><w:tblBorders>` +
		`<w:top ` + border + `<w:left ` + border + `<w:bottom ` + border + `<w:right ` + border +
		`<w:insideH ` + border + `<w:insideV ` + border +
		`</w:tblBorders><w:tblCellMar><w:left w:w="108" w:type="dxa"/>` +
		`<w:right w:w="108" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style></w:styles>`
	headingStart = `<w:style w:type="paragraph" w:styleId="Heading`
	headingMid   = `<w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:pPr>` +
		`<w:keepNext/><w:spacing w:before="240" w:after="80"/><w:outlineLvl w:val="`
	border = `w:val="single" w:sz="4" w:space="0" w:color="auto"/>`
)
