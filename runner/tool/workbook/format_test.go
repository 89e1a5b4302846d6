package workbook

import (
	"strings"
	"testing"
)

// TestNumberFormats compares with what Excel and LibreOffice show.
func TestNumberFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code string
		n    float64
		want string
	}{
		{"General", 1234.5, "1234.5"}, {"General", 0.1 + 0.2, "0.3"}, {"General", 1e20, "1E+20"}, {"General", -1.5e-12, "-1.5E-12"},
		{"0", 2.5, "3"}, {"0", -0.4, "0"}, {"00000", 42, "00042"}, {"0.00", 2.675, "2.68"}, {"0.00", 9.999, "10.00"}, {"#", 0, ""},
		{"#,##0", 1234567, "1,234,567"}, {"#,##0", 12, "12"}, {"#,##0.00", -1234.5, "-1,234.50"}, {"0.##", 1.5, "1.5"}, {"0.##", 1, "1."},
		{"0000,000", 1234, "0,001,234"}, {"#,##0,", 1234567, "1,235"}, {`0.0,,"M"`, 1234567, "1.2M"}, {".00", 1.5, "1.50"},
		{"0%", 0.25, "25%"}, {"0 %", 0.255, "26 %"}, {"0.0%", -0.0125, "-1.3%"},
		{"#,##0.00 [$€-407]", 1200.5, "1.200,50 €"}, {"#,##0.00 [$€-407]", -1200.5, "-1.200,50 €"}, {"[$€-1] #,##0", 1200, "€ 1,200"},
		{`#,##0.00\ "€"`, 1200.5, "1,200.50 €"}, {"[$$-409]#,##0.00", 5, "$5.00"}, {"[$-807]#,##0.00", 1200.5, "1’200.50"}, {"[$-de-DE]0.0", 1.5, "1,5"},
		{`_-* #,##0.00\ "€"_-;\-* #,##0.00\ "€"_-;_-* "-"??\ "€"_-;_-@_-`, -3, "- 3.00 €"}, {`_-* #,##0.00\ "€"_-;\-* #,##0.00\ "€"_-;_-* "-"??\ "€"_-;_-@_-`, 0, "- €"},
		{"#,##0_);(#,##0)", -1234, "(1,234)"}, {"#,##0_);[Red](#,##0)", 1234, "1,234"}, {`0;-0;"none"`, 0, "none"}, {";;;", 5, ""},
		{`[>=1000]0.0,"k";0`, 1500, "1.5k"}, {`[>=1000]0.0,"k";0`, 15, "15"}, {`[<0]"loss" 0;[=0]"even";"gain" 0`, -3, "loss 3"}, {`[<0]"loss" 0;[=0]"even";"gain" 0`, 0, "even"},
		{"# ?/?", 1.75, "1 3/4"}, {"# ??/??", 0.5, "1/2"}, {"# ?/8", 2.5, "2 4/8"}, {"?/?", 1.5, "3/2"}, {"# ?/?", 2, "2"}, {"0 ?/?", 0.25, "0 1/4"},
		{"0.00E+00", 12345, "1.23E+04"}, {"0.00E+00", 0.00012, "1.20E-04"}, {"##0.0E+0", 12345, "12.3E+3"}, {"0E+0", 9.6, "1E+1"}, {"0.0E-0", -0, "0.0E0"},
		{"(000) 000-0000", 5551234567, "(555) 123-4567"}, {"000-00", 123, "001-23"}, {`0" Stück"`, 3, "3 Stück"}, {`0\h`, 3, "3h"},
		{"yyyy-mm-dd", 45292, "2024-01-01"}, {"dd.mm.yyyy hh:mm", 45292.75, "01.01.2024 18:00"}, {"d/m/yy", 45292, "1/1/24"}, {"[$-407]d. mmmm yyyy", 45352, "1. März 2024"},
		{"dddd, mmm d", 45292, "Monday, Jan 1"}, {"mmmmm", 45292, "J"}, {"h:mm AM/PM", 0.5, "12:00 PM"}, {"h:mm:ss a/p", 0.25, "6:00:00 A"},
		{"[h]:mm", 1.5, "36:00"}, {"[h]:mm:ss", 100.0 / 86400, "0:01:40"}, {"[mm]:ss", 1.0 / 24, "60:00"}, {"[ss]", 1.0 / 24, "3600"}, {"[h]:mm", -0.5, "-12:00"},
		{"mm:ss.0", 90.25 / 86400, "01:30.3"}, {"hh:mm:ss.000", 0.5 + 0.5/86400, "12:00:00.500"}, {"h:mm", 0.99999999, "0:00"}, {"[hh]:mm", 0.5, "12:00"},
		{"yyyy-mm-dd", 60, "1900-02-29"}, {"yyyy-mm-dd", 1, "1900-01-01"}, {"yyyy-mm-dd", -1, "-1"}, {"yyyy-mm-dd", 3e6, "3000000"}, {"@", 12, "12"}, {"", 7, "7"},
	} {
		if tt.code == "" {
			tt.code = "General"
		}
		if got := parseFormat(tt.code, neutral).number(tt.n, false); got != tt.want {
			t.Errorf("%v as %q is %q, want %q", tt.n, tt.code, got, tt.want)
		}
	}
	if got := parseFormat("yyyy-mm-dd", neutral).number(0, true); got != "1904-01-01" {
		t.Error(got)
	}
	if got := parseFormat(`0;0;0;"text: "@`, neutral).textShown("x"); got != "text: x" {
		t.Error(got)
	}
	if got := builtinFormat(14, localeOf("de-AT")); got != "dd.mm.yyyy" {
		t.Error(got)
	}
}

func FuzzNumberFormat(f *testing.F) {
	f.Add(`[Red][<0]_-* #,##0.00\ "€"_-;# ??/??;[h]:mm:ss.00;@`, 1.5)
	f.Fuzz(func(t *testing.T, code string, n float64) {
		x := parseFormat(code, neutral)
		if shown := x.number(n, false) + x.textShown(strings.Repeat("a", 100)); len(shown) > 400*maxFormat {
			t.Errorf("%q shows %d bytes", code, len(shown))
		}
	})
}

func TestShiftedFormulas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ formula, want string }{
		{"A1+$A1+A$1+$A$1", "B3+$A3+B$1+$A$1"}, {`SUM(B:B)&"A1"`, `SUM(C:C)&"A1"`}, {"SUM(3:$4)", "SUM(5:$4)"},
		{"'A1'!A1*Sheet1!B2:C3", "'A1'!B3*Sheet1!C4:D5"}, {"LOG10(A1)+A1B2", "LOG10(B3)+A1B2"}, {"XFD1", "#REF!"},
		{"Sales[Qty]+[1]Old!A1", "Sales[Qty]+[1]Old!B3"}, {"A1+\x01", "A1+\x01"}, {"1E3+A1", "1E3+B3"}, {"IF(#N/A,A1#)", "IF(#N/A,B3#)"},
	} {
		if got := shifted(tt.formula, 1, 2); got != tt.want {
			t.Errorf("%q is shifted to %q, want %q", tt.formula, got, tt.want)
		}
	}
}

func FuzzFormula(f *testing.F) {
	f.Add(`SUM(Sheet1!A1:$B$2,'x'!C3)*{1,2;3,4}&"a""b"^-2%`)
	f.Fuzz(func(t *testing.T, formula string) {
		lexemes, err := lex(formula)
		if err != nil {
			return
		}
		whole := ""
		for _, x := range lexemes {
			whole += x.text
		}
		if whole != formula {
			t.Errorf("%q became %q", formula, whole)
		}
	})
}
