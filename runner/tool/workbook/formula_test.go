package workbook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// The cells to which the formulas of the tests refer.
const testCells = `[["Item","Qty","Price","Day"],["Apple",3,1.5,"2024-01-31"],["pear",5,2,"2024-02-29"],["Plum",null,4,"2024-03-15"],["apple",2,"n/a",true]`

// formulaResults are formulas and their results, as texts. LibreOffice gives the same results.
var formulaResults = []struct{ formula, want string }{
	{"1+2*3", "7"}, {"-2^2", "4"}, {"2^3^2", "64"}, {"(1+2)*3", "9"}, {"10%", "0.1"}, {"200%%", "0.02"}, {"1/0", "#DIV/0!"}, {`"a"&1&TRUE`, "a1TRUE"}, {`"2"+1`, "3"}, {`"x"+1`, "#VALUE!"},
	{`"a"="A"`, "TRUE"}, {`"b">"a"`, "TRUE"}, {`1<"a"`, "TRUE"}, {"0.1+0.2=0.3", "TRUE"}, {"#N/A", "#N/A"}, {"1E3", "1000"}, {"=1+1", "2"}, {"--B2", "3"}, {"+B2", "3"}, {"B4", "0"},
	{"SUM(B2:B5)", "10"}, {"SUM(B:B)", "10"}, {"SUM(2:2)", "45326.5"}, {"SUM(C2:C5,1)", "8.5"}, {"SUM(A2)", "0"}, {"AVERAGE(B2:B5)", "3.33333333333333"}, {"MIN(B2:B5)", "2"}, {"MAX(B2:B5)", "5"},
	{"COUNT(B2:B5)", "3"}, {"COUNTA(A2:C5)", "11"}, {"COUNTBLANK(B2:B5)", "1"}, {"MEDIAN(B2:B5)", "3"}, {"PRODUCT(B2:B5)", "30"}, {"STDEV(B2:B5)", "1.52752523165195"}, {"VAR.P(B2:B5)", "1.55555555555556"},
	{"LARGE(B2:B5,1)", "5"}, {"SMALL(B2:B5,2)", "3"}, {"RANK(B2,B2:B5)", "2"}, {"SUBTOTAL(9,B2:B5)", "10"}, {"PERCENTILE(B2:B5,0.5)", "3"}, {"SUMSQ(1,2)", "5"},
	{`COUNTIF(A2:A5,"apple")`, "2"}, {`COUNTIF(A2:A5,"p*")`, "2"}, {`COUNTIF(B2:B5,">2")`, "2"}, {`COUNTIF(B2:B5,"<>3")`, "3"}, {`COUNTIF(A2:A5,"?????")`, "2"}, {`SUMIF(A2:A5,"apple",B2:B5)`, "5"}, {`SUMIF(B2:B5,">2")`, "8"},
	{`SUMIFS(B2:B5,A2:A5,"apple",B2:B5,">2")`, "3"}, {`COUNTIFS(A2:A5,"apple",B2:B5,2)`, "1"}, {`AVERAGEIF(A2:A5,"apple",B2:B5)`, "2.5"}, {`AVERAGEIFS(B2:B5,B2:B5,">2")`, "4"}, {`MAXIFS(B2:B5,A2:A5,"apple")`, "3"},
	{"SUMPRODUCT(B2:B4,C2:C4)", "14.5"}, {`SUMPRODUCT((A2:A5="apple")*B2:B5)`, "5"}, {"SUMPRODUCT(--(B2:B5>2))", "2"}, {"SUM(B2:B4*C2:C4)", "14.5"}, {`SUM(IF(A2:A5="apple",B2:B5,0))`, "5"}, {"SUM({1,2;3,4})", "10"},
	{"ROUND(2.675,2)", "2.68"}, {"ROUND(-2.5,0)", "-3"}, {"ROUND(1234,-2)", "1200"}, {"ROUNDUP(1.01,1)", "1.1"}, {"ROUNDDOWN(-1.99,1)", "-1.9"}, {"INT(-1.5)", "-2"}, {"TRUNC(-1.5)", "-1"}, {"MOD(-1,3)", "2"},
	{"CEILING(1.2,0.5)", "1.5"}, {"FLOOR(1.2,0.5)", "1"}, {"MROUND(7,5)", "5"}, {"ABS(-1)", "1"}, {"SQRT(-1)", "#NUM!"}, {"POWER(2,10)", "1024"}, {"LOG(8,2)", "3"}, {"SIGN(-3)", "-1"}, {"ROUND(PMT(0.01,12,1000),2)", "-88.85"},
	{`IF(B2>2,"yes","no")`, "yes"}, {`IF(B4="","blank")`, "blank"}, {"IF(B2>9,1)", "FALSE"}, {"IF(TRUE,,1)", "0"}, {"IF(FALSE,1/0,2)", "2"}, {"IFERROR(1/0,7)", "7"}, {`IFNA(VLOOKUP("x",A2:C5,2,FALSE),"none")`, "none"},
	{"AND(TRUE,B2>2)", "TRUE"}, {"OR(B2>9,B3>9)", "FALSE"}, {"NOT(TRUE)", "FALSE"}, {"XOR(TRUE,TRUE)", "FALSE"}, {`IFS(B2>9,"a",TRUE,"b")`, "b"}, {`SWITCH(B2,1,"a",3,"c","d")`, "c"}, {`CHOOSE(2,"a","b")`, "b"},
	{"ISBLANK(B4)", "TRUE"}, {"ISNUMBER(B2)", "TRUE"}, {"ISTEXT(A2)", "TRUE"}, {"ISERROR(1/0)", "TRUE"}, {"ISEVEN(B2)", "FALSE"}, {"NA()", "#N/A"},
	{`VLOOKUP("pear",A2:C5,3,FALSE)`, "2"}, {`VLOOKUP("x",A2:C5,2,FALSE)`, "#N/A"}, {"VLOOKUP(2,{1,10;3,30},2)", "10"}, {`VLOOKUP("pear",A2:C5,4,0)`, "#REF!"}, {`HLOOKUP("Price",A1:D3,3,FALSE)`, "2"}, {`MATCH("Plum",A2:A5,0)`, "3"},
	{"MATCH(4,{1,3,5},1)", "2"}, {"INDEX(A2:C5,2,3)", "2"}, {"SUM(INDEX(A2:C5,0,2))", "10"}, {`INDEX(C2:C5,MATCH("Plum",A2:A5,0))`, "4"}, {`XLOOKUP("Plum",A2:A5,C2:C5)`, "4"}, {`XLOOKUP("x",A2:A5,C2:C5,"none")`, "none"},
	{`LEFT("abc",2)`, "ab"}, {`RIGHT("abc")`, "c"}, {`MID("abcd",2,2)`, "bc"}, {`LEN("häß")`, "3"}, {`TRIM("  a  b ")`, "a b"}, {`UPPER("aä")&LOWER("B")`, "AÄb"}, {`PROPER("ann o'neil")`, "Ann O'Neil"},
	{`CONCATENATE("a",B2)`, "a3"}, {`TEXTJOIN(", ",TRUE,A2:A4,"",B4)`, "Apple, pear, Plum"}, {`SUBSTITUTE("a-b-c","-","+",2)`, "a-b+c"}, {`REPLACE("abcd",2,2,"x")`, "axd"}, {`FIND("c","abc")`, "3"}, {`SEARCH("B?","abc")`, "2"}, {`SEARCH("b*d?","abxdcd")`, "2"}, {`SEARCH("~*","a*b")`, "2"}, {`SEARCH("c?","abc")`, "#VALUE!"},
	{`REPT("ab",3)`, "ababab"}, {`EXACT("a","A")`, "FALSE"}, {`TEXT(0.256,"0.0%")`, "25.6%"}, {`TEXT(D2,"dd.mm.yyyy")`, "31.01.2024"}, {`VALUE("12.5")`, "12.5"}, {`CHAR(65)&CODE("A")`, "A65"}, {`FIND("x","abc")`, "#VALUE!"},
	{`TEXT(DATE(2024,2,30),"yyyy-mm-dd")`, "2024-03-01"}, {"YEAR(D2)*100+MONTH(D3)", "202402"}, {"DAY(EOMONTH(D2,1))", "29"}, {"DAY(EDATE(D2,1))", "29"}, {"D3-D2", "29"}, {"WEEKDAY(D2,2)", "3"}, {"DAYS(D3,D2)", "29"},
	{"HOUR(TIME(13,30,0))", "13"}, {"MINUTE(0.5+1/1440)", "1"}, {"NETWORKDAYS(D2,D3)", "22"}, {`DATEDIF(D2,D4,"m")`, "1"}, {"ISOWEEKNUM(D2)", "5"}, {"ROW(B7)", "7"}, {"COLUMNS(A1:C1)", "3"}, {"ROWS(A:A)", "1048576"},
	{"Other!A1*2", "84"}, {"'Other'!$A$1", "42"}, {"SUM(Other!A1:B2)", "42"}, {"ADDRESS(2,3)", "$C$2"}, {"COUNTIF(Other!A:A,42)", "1"}, {"SUM(Other!A1:XFD1048576)", "42"},
}

// formulaBook returns a workbook with all formulas in column F of its first sheet.
func formulaBook(t testing.TB, formulas ...string) string {
	var rows strings.Builder
	for i, f := range formulas {
		text, err := json.Marshal(f)
		is.New(t).NoErr(err)
		fmt.Fprintf(&rows, `,["r%d",null,null,null,null,{"formula":%s}]`, i, text)
	}
	return `{"Data":` + testCells + rows.String() + `],"Other":[[42]]}`
}

func TestFormulas(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var formulas []string
	for _, x := range formulaResults {
		formulas = append(formulas, x.formula)
	}
	data, notes, err := Write([]byte(formulaBook(t, formulas...)), now, never)
	is.NoErr(err)
	got, err := Xlsx(data, Selection{Sheet: "Data", Range: "F6:F999"}, never)
	is.NoErr(err)
	lines := strings.Split(string(got), "\n")[3:]
	for i, x := range formulaResults {
		want := strings.ReplaceAll(x.want, "|", `\|`)
		if _, value, _ := strings.Cut(lines[i], " → "); value != want {
			t.Errorf("%s is %s, want %s", x.formula, lines[i], x.want)
		}
	}
	is.Equal(len(notes), 1) // none is left without a value
	is.True(strings.HasPrefix(notes[0], "formulas whose result is an error: Data!F12 #DIV/0!; Data!F15 #VALUE!;"))
}

func TestFormulasThatAreRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000)
	for formula, says := range map[string]string{
		"1+": "it ends where a value is expected", "SUM(A1": "a ( has no )", "A1)": "a ) has no (", `"a`: "no closing quotation mark", "": "it ends where",
		"SUMME(A1:A2)": "there is no function SUMME", "Plan!A1": `there is no sheet "Plan"`, "'My plan'!A1": `there is no sheet "My plan"`, "SUM(A1;A2)": "a comma separates arguments",
		"A1 B2": "an operator is missing before B2", "Qty*2": "Qty is neither a cell nor a function", "[1]Old!A1": "in another file", "Sales[Qty]": "there is no table", "{1,2;3}": "same length",
		"IF()": "IF has 0 arguments, and takes 2 to 3", "1*/2": "/ stands where a value", "A1:": "inside a range", "§": "has no meaning", "#OOPS": "begins no error value", deep: "nested more than",
		strings.Repeat("-", 1000) + "1": "nested more than", strings.Repeat("A1+", 4000) + "1": "more than 8192 characters", "SUM(F6)": "refers to its own cell", "SUM(1 2)": "missing before 2", "{1": "a { has no }",
	} {
		_, _, err := Write([]byte(formulaBook(t, formula)), now, never)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "Data!F6: the formula ") {
			t.Errorf("%.50s: %v does not say %q", formula, err, says)
		}
	}
}

func TestWriteNotes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	data, notes, err := Write([]byte(formulaBook(t, "UNIQUE(A2:A5)", "F6&1", "1/0", "=TODAY()", "B2*2", "LET(x,1,x)")), now, never)
	is.NoErr(err)
	is.Equal(notes, []string{
		"formulas without a stored value, which other programs compute when they open the file: Data!F6: UNIQUE is not computed here; " +
			"Data!F7: it refers to Data!F6, which is not computed; Data!F11: LET is not computed here",
		"formulas whose result is an error: Data!F8 #DIV/0!"})
	got, err := Xlsx(data, Selection{Range: "F6:F10"}, never)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "6 | =UNIQUE(A2:A5) → (not computed)\n7 | =F6&1 → (not computed)\n8 | =1/0 → #DIV/0!\n9 | =TODAY() → 2024-02-29\n10 | =B2*2 → 6\n"))
	_, notes, err = Write([]byte(`[["a"],["=SUM(A1)"],["="]]`), now, never)
	is.NoErr(err)
	is.Equal(notes, []string{`texts that begin with "=", which are no formulas; a formula is {"formula": "..."}: Sheet1!A2`})
	// A chain of references is longer than any stack, and formulas may look at all cells again and again.
	chain := make([]string, 30_000)
	for i := range chain {
		chain[i] = fmt.Sprintf("F%d+1", i+7)
	}
	chain[len(chain)-1] = "1"
	data, notes, err = Write([]byte(formulaBook(t, chain...)), now, never)
	is.NoErr(err)
	is.Equal(notes, nil)
	got, err = Xlsx(data, Selection{Range: "F6"}, never)
	is.NoErr(err)
	is.True(strings.Contains(string(got), "→ 30000\n"))
	for i := range chain {
		chain[i] = "SUM(B:B)"
	}
	_, notes, err = Write([]byte(formulaBook(t, chain...)), now, never)
	is.NoErr(err)
	is.True(strings.Contains(notes[0], "the workbook has too many formulas to compute all; "))
}

func FuzzEvaluate(f *testing.F) {
	for _, x := range formulaResults {
		f.Add(x.formula)
	}
	f.Fuzz(func(t *testing.T, formula string) {
		data, _, err := Write([]byte(formulaBook(t, formula, "F6+1")), now, never)
		if err != nil {
			return
		}
		if _, err := readAll(data, never); err != nil {
			t.Fatalf("%q: %v", formula, err)
		}
	})
}
