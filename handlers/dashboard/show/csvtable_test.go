package show

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestReadTable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", tableCell+1)
	for name, tt := range map[string]struct {
		text string
		head string // its cells, joined by |
		rows []string
		cut  bool
	}{
		"commas":                {"a,b\n1,2\n3,4\n", "a|b", []string{"1|2", "3|4"}, false},
		"semicolons and commas": {"name;note\nAnn;one, two\nBob;three, four, five\n", "name|note", []string{"Ann|one, two", "Bob|three, four, five"}, false},
		"tabs":                  {"a\tb\n1\t2\n", "a|b", []string{"1|2"}, false},
		"quoted separators":     {"a;b\n\"1;,;\";2\n", "a|b", []string{"1;,;|2"}, false},
		"a mark of the order":   {"\uFEFFa,b\n1,2", "a|b", []string{"1|2"}, false},
		"uneven rows":           {"a,b\n1\n1,2,3\n", "a|b|", []string{"1||", "1|2|3"}, false},
		"line ends of Windows":  {"a,b\r\n1,2\r\n", "a|b", []string{"1|2"}, false},
		"a quote left open":     {"a,b\n\"1,2\n3,4", "a|b", []string{"1,2\n3,4|"}, false},
		"one column":            {"a\n1\n", "a", []string{"1"}, false},
		"a long cell":           {"a\n" + long + "\n", "a", []string{long[:tableCell] + "…"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			table, ok := ReadTable(tt.text)
			is.True(ok) // the text is a table
			is.Equal(strings.Join(table.Head, "|"), tt.head)
			var rows []string
			for _, row := range table.Rows {
				rows = append(rows, strings.Join(row, "|"))
			}
			is.Equal(rows, tt.rows)
			is.Equal(table.Cut, tt.cut)
		})
	}
	is := is.New(t)
	_, ok := ReadTable("")
	is.True(!ok) // an empty file is no table
	table, ok := ReadTable(strings.Repeat(strings.Repeat("x,", 1000)+"\n", 1000))
	is.True(ok)
	is.Equal(len(table.Rows), tableRows) // the number of rows is limited
	is.Equal(len(table.Head), tableColumns)
	is.True(table.Cut)
}

// FuzzReadTable checks that a table keeps its limits and its form for any text.
func FuzzReadTable(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"", "a;b\n\"x\n", "\xff\xfe,\x00", strings.Repeat("|", 100), "\r\n\r\n", "\uFEFF"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, ok := ReadTable(text)
		if !ok {
			return
		}
		if len(table.Rows) > tableRows || len(table.Head) > tableColumns {
			t.Fatalf("%d rows of %d columns", len(table.Rows), len(table.Head))
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Head) {
				t.Fatalf("a row has %d cells and the head %d", len(row), len(table.Head))
			}
		}
	})
}
