package workbook

import (
	"strings"
	"testing"
	"time"
)

// write writes a workbook without its notes.
func write(content string) ([]byte, error) {
	data, _, err := Write([]byte(content), now, never)
	return data, err
}

// now is a time of formulas such as TODAY().
var now = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		content, want string // expected text, or text of the error
	}{
		"CSV": {"Name,Qty,Day,Phone\n\"Ann, B\",3.50,2024-02-29,0049301234\n=1+1,,-7,x<y\n", "row | A | B | C | D\n1 | Name | Qty | Day | Phone\n" +
			"2 | Ann, B | 3.5 | 2024-02-29 | 0049301234\n3 | =1+1 |  | -7 | x<y\n\n"},
		"semicolons": {"a;b\n1,5;2\n", "1 | a | b\n2 | 1,5 | 2\n"},
		"tabs":       {"a\tb\n1\t2\n", "1 | a | b\n2 | 1 | 2\n"},
		"JSON rows":  {`[["a","b"],[1.25,null,true],[{"formula":"=SUM(A2:A2)"}]]`, "1 | a | b\n2 | 1.25 |  | TRUE\n3 | =SUM(A2:A2) → 1.25\n"},
		"sheets":     {`{"Z":[["z"]],"A & b":[["a"]]}`, "[sheet \"Z\"]\n[A1]\nrow | A\n1 | z\n\n[sheet \"A & b\"]\n[A1]\nrow | A\n1 | a\n"},
		"nothing":    {" \n", "there are no rows"},
		"no sheets":  {"{}", "there are no sheets"},
		"half JSON":  {`{"A":[["a"]]`, "the JSON is broken"},
		"no rows":    {`{"A":7}`, "must be a list of rows"},
		"objects":    {`[[{"a":1}]]`, "a cell must be"},
		"lists":      {`[[[1]]]`, "a cell must not be a list"},
		"bad name":   {`{"A/B":[["a"]]}`, "a name has 1 to 31 characters"},
		"twice":      {`{"A":[["a"]],"a":[["b"]]}`, "is there twice"},
		"long text":  {`[["` + strings.Repeat("é", maxCellText+1) + `"]]`, "more than 32767 characters"},
		"wide row":   {strings.Repeat(",", maxColumns), "more than 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := write(tt.content)
			var got []byte
			if err == nil {
				got, err = readAll(data, never)
			}
			if err != nil {
				got = []byte(err.Error())
			}
			if !strings.Contains(string(got), tt.want) {
				t.Errorf("%q does not hold %q", got, tt.want)
			}
		})
	}
}

func FuzzWrite(f *testing.F) {
	f.Add([]byte("a,b\n1,2024-01-01\n"))
	f.Add([]byte(`{"A":[["a",1e400,{"formula":"A1"}]]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		data, err := write(string(content))
		if err != nil {
			return
		}
		if _, err := readAll(data, never); err != nil && err != errEmpty {
			t.Fatalf("%q: %v", content, err)
		}
	})
}
