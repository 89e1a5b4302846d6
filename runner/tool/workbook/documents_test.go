package workbook

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// documents returns the folder with documents made by other programs.
func documents(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	if folder == "" {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	return folder
}

// TestWorkbooksOfOtherPrograms looks for the words that a person sees.
func TestWorkbooksOfOtherPrograms(t *testing.T) {
	t.Parallel()
	folder := documents(t)
	for name, read := range map[string]func([]byte, Selection, func() bool) ([]byte, error){
		"openpyxl.xlsx": Xlsx, "libreoffice.xlsx": Xlsx, "libreoffice.ods": Ods} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			data, err := os.ReadFile(filepath.Join(folder, name))
			is.NoErr(err)
			got, err := read(data, Selection{}, never)
			is.NoErr(err)
			words, err := os.ReadFile(filepath.Join(folder, name+".words"))
			is.NoErr(err)
			for word := range strings.FieldsSeq(string(words)) {
				if !strings.Contains(string(got), word) {
					t.Errorf("%q is not in\n%s", word, got)
				}
			}
			more := []string{"18 hidden | verborgene Zeile", "D hidden", "merged cells E1:G1", "Bitte prüfen", "=SUM(B1:B2) → "}
			switch name {
			case "libreoffice.xlsx":
				more = append(more, "=SUM(B1:B2) → 1.200,75 €", "=1/0 → #DIV/0!")
			case "libreoffice.ods":
				more = append(more, "=SUM(B1:B2) → 1,200.75 €", "=1/0 → #DIV/0!", `[chart "Stück je Monat" at `, "name Gesamt = Umsatz!$B$16",
					"[choices E5:E9: ja,nein]", "[links E2 to https://example.com/preise]")
			}
			for _, want := range more {
				if !strings.Contains(string(got), want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
		})
	}
}

// withoutValues returns a workbook whose formulas have no values, so that another program computes them.
func withoutValues(t *testing.T, data []byte) []byte {
	t.Helper()
	is := is.New(t)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	is.NoErr(err)
	value := regexp.MustCompile(`</f><v>[^<]*</v>`)
	kind := regexp.MustCompile(`(<c r="[A-Z0-9]+"(?: s="[0-9]+")?) t="(?:str|b|e)"><f`)
	var files []string
	for _, f := range z.File {
		r, err := f.Open()
		is.NoErr(err)
		content, err := io.ReadAll(r)
		is.NoErr(err)
		content = kind.ReplaceAll(value.ReplaceAll(content, []byte("</f>")), []byte("$1><f"))
		files = append(files, f.Name, string(content))
	}
	return pack(t, files...)
}

// Forms of CSV that LibreOffice writes.
const (
	asStored = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false"
	asShown  = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true"
)

// convert converts a workbook with LibreOffice.
func convert(t *testing.T, data []byte, to string) []byte {
	t.Helper()
	is := is.New(t)
	program, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("LibreOffice is not installed")
	}
	folder := t.TempDir()
	is.NoErr(os.WriteFile(filepath.Join(folder, "a.xlsx"), data, 0o600))
	out, err := exec.Command(program, "-env:UserInstallation=file://"+folder+"/user", "--headless", "--convert-to", to,
		"--outdir", folder, filepath.Join(folder, "a.xlsx")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	extension, _, _ := strings.Cut(to, ":")
	converted, err := os.ReadFile(filepath.Join(folder, "a."+extension))
	is.NoErr(err)
	return converted
}

// TestLibreOfficeComputesTheSame compares the values of formulas.
func TestLibreOfficeComputesTheSame(t *testing.T) {
	t.Parallel()
	documents(t)
	is := is.New(t)
	var formulas []string
	for _, x := range formulaResults {
		formulas = append(formulas, x.formula)
	}
	data, err := write(formulaBook(t, formulas...))
	is.NoErr(err)
	// The numbers are written as they are stored, with all digits.
	rows, err := csv.NewReader(bytes.NewReader(convert(t, withoutValues(t, data), asStored))).ReadAll()
	is.NoErr(err)
	for i, x := range formulaResults {
		got := rows[i+5][5]
		// An older version lacks some functions, and writes TRUE as 1.
		if got == "#NAME?" || x.want == "a1TRUE" {
			continue
		}
		n, isNumber := parseNumber(got)
		want, alsoNumber := parseNumber(x.want)
		if got != x.want && !(isNumber && alsoNumber && round15(n) == round15(want)) && !(strings.HasPrefix(x.want, "#") && got != "") {
			t.Errorf("%s: LibreOffice computes %s, and the workbook has %s", x.formula, got, x.want)
		}
	}
}

// TestOtherProgramsReadOurs opens a workbook with formulas and charts.
func TestOtherProgramsReadOurs(t *testing.T) {
	t.Parallel()
	documents(t)
	is := is.New(t)
	content := `{"Sales 2024":{"rows":[["Month","Qty","Price","Total"],["2024-01-31",3,{"value":1200.5,"format":"#,##0.00 [$€-407]"},{"formula":"B2*C2","format":"0.00"}],` +
		`["2024-02-29",5,2,{"formula":"B3*C3"}],["Sum",{"formula":"SUM(B2:B3)","bold":true},null,{"formula":"TEXTJOIN(\", \",TRUE,A4,\"ok\")"}]],"charts":[` +
		`{"kind":"column","title":"Quantities","labels":"A2:A3","values":["B2:B3","D2:D3"]},{"kind":"pie","values":"B2:B3","labels":"A2:A3"},{"kind":"line","values":"B2:B3"},` +
		`{"kind":"scatter","labels":"B2:B3","values":"C2:C3"},{"kind":"bar","values":"B:B"},{"kind":"area","values":"B2:C2","at":"H40"}]},"Other":[["x"],[{"formula":"'Sales 2024'!B4*2"}]]}`
	data, notes, err := Write([]byte(content), now, never)
	is.NoErr(err)
	is.Equal(notes, nil)
	is.Equal(string(convert(t, data, asShown)), "Month,Qty,Price,Total\n2024-01-31,3,\"1,200.50 €\",3601.50\n2024-02-29,5,2,10\nSum,8,,\"Sum, ok\"\n")
	// Of the charts, LibreOffice keeps titles and ranges.
	got, err := readAll(convert(t, data, "xlsx"), never)
	is.NoErr(err)
	for _, want := range []string{`"Quantities" at F2, column: series "Qty" of 'Sales 2024'!$B$2:$B$3 by 'Sales 2024'!$A$2:$A$3`, "pie: series", "line: series", "scatter: series", "bar: series", "at H40, area: series"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	path := filepath.Join(t.TempDir(), "a.xlsx")
	is.NoErr(os.WriteFile(path, data, 0o600))
	out, err := exec.Command("/usr/bin/python3", "-c", `
import sys, openpyxl, pandas
table = pandas.read_excel(sys.argv[1])
print(list(table["Total"]), table["Qty"].sum(), pandas.read_excel(sys.argv[1], sheet_name="Other")["x"][0])
sheet = openpyxl.load_workbook(sys.argv[1]).worksheets[0]
print(sheet["C2"].number_format, sheet["B4"].font.b, sheet["B4"].value, len(sheet._charts), [type(c).__name__ for c in sheet._charts])
`, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	is.Equal(string(out), "[3601.5, 10, 'Sum, ok'] 16 16\n#,##0.00 [$€-407] True =SUM(B2:B3) 6 "+
		"['BarChart', 'PieChart', 'LineChart', 'ScatterChart', 'BarChart', 'AreaChart']\n")
}
