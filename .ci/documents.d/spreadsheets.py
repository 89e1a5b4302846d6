#!/usr/bin/python3
# packages: python3-openpyxl libreoffice-calc-nogui
"""Makes workbooks with openpyxl and LibreOffice, and beside each the words that a person sees."""
import datetime
import pathlib
import subprocess
import sys
import tempfile

import openpyxl
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

book = openpyxl.Workbook()
sheet = book.active
sheet.title = "Umsatz"
rows = [
    ("Anteil", 0.25, "0%"), ("Betrag", 1200.5, "#,##0.00\\ [$€-407]"), ("Verlust", -1234.5, "#,##0.00_);(#,##0.00)"),
    ("Bruch", 1.75, "# ?/?"), ("Messung", 12345, "0.00E+00"), ("Tag", datetime.date(2024, 3, 1), "dd\\.mm\\.yyyy"),
    ("Monat", datetime.date(2024, 3, 1), "[$-407]mmmm\\ yyyy"), ("Uhrzeit", datetime.time(18, 30), "hh:mm"),
    ("Dauer", datetime.timedelta(hours=36, minutes=15), "[h]:mm"), ("Minuten", datetime.timedelta(minutes=75), "[mm]:ss"),
    ("Nummer", 42, "00000"), ("Menge", 3, '0" Stück"'), ("Wahr", True, "General"), ("Text", "Zeile eins\nZeile zwei", "@"),
]
for number, (label, value, code) in enumerate(rows, 1):
    sheet.cell(number, 1, label)
    sheet.cell(number, 2, value).number_format = code
sheet["A16"] = "Summe"
sheet["B16"] = "=SUM(B1:B2)"
sheet["B16"].number_format = "#,##0.00\\ [$€-407]"
sheet["A17"] = "Fehler"
sheet["B17"] = "=1/0"
sheet["A18"] = "verborgene Zeile"
sheet.row_dimensions[18].hidden = True
sheet["D1"] = "verborgene Spalte"
sheet.column_dimensions["D"].hidden = True
sheet.merge_cells("E1:G1")
sheet["E1"] = "verbunden"
sheet["E2"] = "Seite"
sheet["E2"].hyperlink = "https://example.com/preise"
sheet["B2"].comment = Comment("Bitte prüfen", "Ann")
choices = DataValidation(type="list", formula1='"ja,nein"')
choices.add("E5:E9")
sheet.add_data_validation(choices)
sheet["XA3"] = "weit weg"
data = book.create_sheet("Daten")
for row in [("Monat", "Stück"), ("Januar", 3), ("Februar", 5)]:
    data.append(row)
data.add_table(Table(displayName="Verkauf", ref="A1:B3"))
chart = BarChart()
chart.title = "Stück je Monat"
chart.add_data(Reference(data, min_col=2, min_row=1, max_row=3), titles_from_data=True)
chart.set_categories(Reference(data, min_col=1, min_row=2, max_row=3))
data.add_chart(chart, "D2")
secret = book.create_sheet("Geheim")
secret["A1"] = "versteckt"
secret.sheet_state = "hidden"
name = openpyxl.workbook.defined_name.DefinedName("Gesamt", attr_text="Umsatz!$B$16")
if hasattr(book.defined_names, "append"):  # openpyxl before 3.1
    book.defined_names.append(name)
else:
    book.defined_names["Gesamt"] = name
book.save(folder / "openpyxl.xlsx")

words = """Anteil 25% Betrag 1.200,50 € Verlust (1,234.50) Bruch 1 3/4 Messung 1.23E+04 Tag 01.03.2024 Monat März 2024
Uhrzeit 18:30 Dauer 36:15 Minuten 75:00 Nummer 00042 Menge 3 Stück Wahr TRUE Text Zeile eins Zeile zwei Summe Fehler
verborgene Zeile Spalte verbunden Seite weit weg Januar Februar Stück je Monat versteckt Bitte prüfen Ann"""
(folder / "openpyxl.xlsx.words").write_text(words, encoding="utf-8")

# LibreOffice computes the formulas, and writes the same workbook in its own way.
with tempfile.TemporaryDirectory() as profile:
    for kind in ["xlsx", "ods"]:
        out = pathlib.Path(profile) / "out"
        subprocess.run(["soffice", f"-env:UserInstallation=file://{profile}/user", "--headless", "--convert-to", kind,
                        "--outdir", str(out), str(folder / "openpyxl.xlsx")], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (out / f"openpyxl.{kind}").replace(folder / f"libreoffice.{kind}")
        # It drops the author, and stores the text of the number as its own language writes it.
        seen = words.replace(" Ann", "").replace("1.200,50", "1.200,50" if kind == "xlsx" else "1,200.50")
        (folder / f"libreoffice.{kind}.words").write_text(seen, encoding="utf-8")
