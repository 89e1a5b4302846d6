#!/usr/bin/python3
"""Makes letters, reports, slides and books with LibreOffice, python-docx and pandoc."""
# packages: python3-docx libreoffice-writer-nogui libreoffice-impress-nogui pandoc
import pathlib
import subprocess
import sys

import docx
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

folder = pathlib.Path(sys.argv[1]).resolve()

SPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        "office": "office", "style": "style", "text": "text", "table": "table", "draw": "drawing",
        "meta": "meta", "number": "datastyle", "presentation": "presentation", "form": "form", "script": "script",
        "fo": "xsl-fo-compatible", "svg": "svg-compatible"}.items()
) + ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

PARAGRAPHS = [
    "The quarterly review shows that deliveries to the northern warehouse were late in eleven of ninety cases.",
    "Größere Bestellungen über 1.250,50 € müssen künftig von zwei Personen geprüft und freigegeben werden.",
    "Les délais de livraison ont été négociés à nouveau ; le fournisseur s'engage à livrer en cinq jours.",
    "Поставки задержались из-за погоды, но договор был исполнен полностью и в срок.",
]


def write_words(name, words):
    (folder / (name + ".words")).write_text(words + "\n", encoding="utf-8")


def convert(source, *formats):
    for form in formats:
        subprocess.run(
            ["soffice", f"-env:UserInstallation=file://{folder}/.settings", "--headless", "--convert-to", form,
             "--outdir", folder, folder / source],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# A report with all that a text document has. LibreOffice converts it to other formats.
REPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document {SPACES} office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text">
<office:styles>
<style:style style:name="Standard" style:family="paragraph"/>
<style:style style:name="Heading" style:family="paragraph" style:parent-style-name="Standard"/>
<style:style style:name="Heading_20_1" style:display-name="Heading 1" style:family="paragraph" style:parent-style-name="Heading" style:default-outline-level="1"/>
<style:style style:name="Heading_20_2" style:display-name="Heading 2" style:family="paragraph" style:parent-style-name="Heading" style:default-outline-level="2"/>
<text:outline-style style:name="Outline">
<text:outline-level-style text:level="1" style:num-format="1" style:num-suffix="."/>
<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2" style:num-suffix="."/>
</text:outline-style>
<text:list-style style:name="Steps">
<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix=")"/>
<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix="."/>
</text:list-style>
<text:list-style style:name="Points">
<text:list-level-style-bullet text:level="1" text:bullet-char="•"/>
<text:list-level-style-bullet text:level="2" text:bullet-char="◦"/>
</text:list-style>
</office:styles>
<office:automatic-styles>
<style:style style:name="Secret" style:family="text"><style:text-properties text:display="none"/></style:style>
<style:page-layout style:name="Page"><style:page-layout-properties fo:page-width="21cm" fo:page-height="29.7cm"/>
<style:header-style/><style:footer-style/></style:page-layout>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="Page">
<style:header><text:p>Warehouse Company confidential</text:p></style:header>
<style:footer><text:p>Prepared for the board</text:p></style:footer>
</style:master-page></office:master-styles>
<office:body><office:text>
<text:tracked-changes><text:changed-region text:id="ct1"><text:insertion><office:change-info><dc:creator>Ann</dc:creator><dc:date>2026-01-02T03:04:05</dc:date></office:change-info></text:insertion></text:changed-region>
<text:changed-region text:id="ct2"><text:deletion><office:change-info><dc:creator>Bob</dc:creator><dc:date>2026-01-02T03:04:05</dc:date></office:change-info><text:p>obsolete</text:p></text:deletion></text:changed-region></text:tracked-changes>
<text:h text:style-name="Heading_20_1" text:outline-level="1">Deliveries</text:h>
<text:p>{PARAGRAPHS[0]}</text:p>
<text:h text:style-name="Heading_20_2" text:outline-level="2">Rules</text:h>
<text:p>{PARAGRAPHS[1]} See our <text:a xlink:type="simple" xlink:href="https://example.com/rules">house rules</text:a>.</text:p>
<text:list text:style-name="Steps"><text:list-item><text:p>Check the order</text:p>
<text:list><text:list-item><text:p>its price</text:p></text:list-item><text:list-item><text:p>its date</text:p></text:list-item></text:list></text:list-item>
<text:list-item><text:p>Sign the order</text:p></text:list-item></text:list>
<text:list text:style-name="Points"><text:list-item><text:p>apples</text:p></text:list-item><text:list-item><text:p>pears</text:p></text:list-item></text:list>
<text:h text:style-name="Heading_20_1" text:outline-level="1">Numbers</text:h>
<table:table table:name="Sums"><table:table-column table:number-columns-repeated="3"/>
<table:table-header-rows><table:table-row><table:table-cell table:number-columns-spanned="2"><text:p>Region and city</text:p></table:table-cell><table:covered-table-cell/><table:table-cell><text:p>Sum</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell table:number-rows-spanned="2"><text:p>North</text:p></table:table-cell><table:table-cell><text:p>Oslo</text:p></table:table-cell><table:table-cell><text:p>120</text:p></table:table-cell></table:table-row>
<table:table-row><table:covered-table-cell/><table:table-cell><text:p>Bergen</text:p></table:table-cell><table:table-cell><text:p>80</text:p></table:table-cell></table:table-row>
</table:table>
<text:p>{PARAGRAPHS[2]}<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>Agreed by telephone in March</text:p></text:note-body></text:note></text:p>
<text:p><text:change-start text:change-id="ct1"/>{PARAGRAPHS[3]}<text:change-end text:change-id="ct1"/><text:change text:change-id="ct2"/></text:p>
<text:p>Please <office:annotation office:name="n1"><dc:creator>Carla</dc:creator><dc:date>2026-01-02T03:04:05</dc:date><text:p>Who answers until when?</text:p></office:annotation>answer<office:annotation-end office:name="n1"/> soon.<text:span text:style-name="Secret">invisible words</text:span></text:p>
<text:p>Signed<text:tab/>Ann<text:s text:c="3"/>Miller<text:line-break/>Head of stock</text:p>
<text:p><draw:frame draw:name="Logo" text:anchor-type="paragraph" svg:width="2cm" svg:height="2cm"><draw:image><office:binary-data>{PIXEL}</office:binary-data></draw:image><svg:title>Our logo</svg:title></draw:frame></text:p>
</office:text></office:body></office:document>
"""

REPORT_WORDS = f"""Warehouse Company confidential
1. Deliveries {PARAGRAPHS[0]}
1.1. Rules {PARAGRAPHS[1]} See our house rules.
1) Check the order a. its price b. its date 2) Sign the order
apples pears
2. Numbers Region and city Sum North Oslo 120 Bergen 80
{PARAGRAPHS[2]} {PARAGRAPHS[3]}
Please answer soon. Signed Ann Miller Head of stock
1 Agreed by telephone in March
Carla Who answers until when?
Prepared for the board"""


def report():
    (folder / "report.fodt").write_text(REPORT, encoding="utf-8")
    convert("report.fodt", "odt", "docx", "rtf")
    for form in ("fodt", "odt", "docx", "rtf"):
        write_words(f"report.{form}", REPORT_WORDS)


SLIDES = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document {SPACES} office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:styles/>
<office:automatic-styles><style:page-layout style:name="Page"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/></style:page-layout>
<style:style style:name="Hidden" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="Default" style:page-layout-name="Page"><draw:frame svg:x="1cm" svg:y="19cm" svg:width="5cm" svg:height="1cm"><draw:text-box><text:p>master text</text:p></draw:text-box></draw:frame></style:master-page></office:master-styles>
<office:body><office:presentation>
<draw:page draw:name="page1" draw:master-page-name="Default">
<draw:frame draw:layer="layout" svg:x="2cm" svg:y="12cm" svg:width="20cm" svg:height="4cm"><draw:text-box><text:p>{PARAGRAPHS[1]}</text:p></draw:text-box></draw:frame>
<draw:frame draw:layer="layout" svg:x="2cm" svg:y="6cm" svg:width="20cm" svg:height="4cm"><draw:text-box><text:list><text:list-item><text:p>{PARAGRAPHS[0]}</text:p></text:list-item><text:list-item><text:p>Second point</text:p></text:list-item></text:list></draw:text-box></draw:frame>
<draw:frame presentation:class="title" draw:layer="layout" svg:x="2cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Plan for the year</text:p></draw:text-box></draw:frame>
<presentation:notes><draw:page-thumbnail draw:page-number="1" presentation:class="page"/><draw:frame presentation:class="notes" svg:x="2cm" svg:y="14cm" svg:width="16cm" svg:height="10cm"><draw:text-box><text:p>Say thanks to the team first</text:p></draw:text-box></draw:frame></presentation:notes>
</draw:page>
<draw:page draw:name="page2" draw:master-page-name="Default" draw:style-name="Hidden">
<draw:frame presentation:class="title" draw:layer="layout" svg:x="2cm" svg:y="1cm" svg:width="20cm" svg:height="3cm"><draw:text-box><text:p>Costs</text:p></draw:text-box></draw:frame>
<draw:frame draw:layer="layout" svg:x="2cm" svg:y="5cm" svg:width="20cm" svg:height="6cm"><table:table><table:table-column/><table:table-column/>
<table:table-row><table:table-cell><text:p>Item</text:p></table:table-cell><table:table-cell><text:p>Euro</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>Trucks</text:p></table:table-cell><table:table-cell><text:p>5.400</text:p></table:table-cell></table:table-row></table:table></draw:frame>
<draw:g><draw:custom-shape draw:layer="layout" svg:x="2cm" svg:y="13cm" svg:width="6cm" svg:height="2cm"><text:p>left box</text:p></draw:custom-shape>
<draw:custom-shape draw:layer="layout" svg:x="12cm" svg:y="13cm" svg:width="6cm" svg:height="2cm"><text:p>right box</text:p></draw:custom-shape></draw:g>
</draw:page>
</office:presentation></office:body></office:document>
"""


def slides():
    (folder / "slides.fodp").write_text(SLIDES, encoding="utf-8")
    convert("slides.fodp", "odp", "pptx")
    words = f"""Plan for the year {PARAGRAPHS[0]} Second point {PARAGRAPHS[1]}
Say thanks to the team first
Costs Item Euro Trucks 5.400 left box right box"""
    for form in ("fodp", "odp", "pptx"):
        write_words(f"slides.{form}", words)


def minutes():
    """Minutes as an office program writes them: styles with numbers, merged cells, a text that was deleted."""
    d = docx.Document()
    section = d.sections[0]
    section.header.paragraphs[0].text = "Minutes of the works council"
    section.footer.paragraphs[0].text = "Page 1 of 1"
    d.add_heading("Minutes", 0)
    d.add_heading("Present", 1)
    for name in ("Ann Miller", "Bob Jones"):
        d.add_paragraph(name, style="List Bullet")
    d.add_heading("Decisions", 1)
    for text in PARAGRAPHS:
        d.add_paragraph(text, style="List Number")
    table = d.add_table(rows=3, cols=3)
    for row, texts in zip(table.rows, (("What", "Who", "When"), ("Order pallets", "Bob", "3 May"), ("", "Ann", "9 May"))):
        for cell, text in zip(row.cells, texts):
            cell.text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    paragraph = d.add_paragraph("Next meeting ")
    deleted = OxmlElement("w:del")
    deleted.set(qn("w:author"), "Ann")
    run = OxmlElement("w:r")
    text = OxmlElement("w:delText")
    text.text = "yesterday"
    run.append(text)
    deleted.append(run)
    paragraph._p.append(deleted)
    paragraph.add_run("on Monday")
    paragraph.add_run().add_break(WD_BREAK.PAGE)
    hidden = paragraph.add_run("nobody sees this")
    hidden.font.hidden = True
    d.add_paragraph("End of the minutes")
    d.save(folder / "minutes.docx")
    write_words("minutes.docx", f"""Minutes of the works council
Minutes Present Ann Miller Bob Jones Decisions
1. {PARAGRAPHS[0]} 2. {PARAGRAPHS[1]} 3. {PARAGRAPHS[2]} 4. {PARAGRAPHS[3]}
What Who When Order pallets Bob 3 May Ann 9 May
Next meeting on Monday End of the minutes Page 1 of 1""")


BOOK = f"""---
title: Small book
lang: en
---

# First chapter

{PARAGRAPHS[0]}

1. one thing
2. another thing

> {PARAGRAPHS[2]}

# Second chapter

{PARAGRAPHS[1]} A note follows.[^1]

| Item  | Euro |
|-------|------|
| Chair | 40   |
| Desk  | 90   |

{PARAGRAPHS[3]}

[^1]: The note of the chapter
"""


def book():
    (folder / "book.md").write_text(BOOK, encoding="utf-8")
    for name in ("book.docx", "book.rtf", "book.odt", "book.epub"):
        subprocess.run(["pandoc", "--standalone", "--output", folder / name, folder / "book.md"], check=True)
    text = f"""First chapter {PARAGRAPHS[0]} one thing another thing {PARAGRAPHS[2]}
Second chapter {PARAGRAPHS[1]} A note follows."""
    rows = "Item Euro Chair 40 Desk 90"
    for name in ("book.docx", "book.odt", "book.epub"):
        write_words(name, f"{text} {rows} {PARAGRAPHS[3]} The note of the chapter")
    write_words("book.rtf", f"{text} {rows} {PARAGRAPHS[3]} The note of the chapter")
    (folder / "book.md").unlink()


report()
slides()
minutes()
book()
subprocess.run(["rm", "-rf", folder / ".settings"], check=True)
