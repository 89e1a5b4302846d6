package store_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

var (
	anyConflict = regexp.MustCompile(`\bON CONFLICT (DO|WHERE)\b`)
	derived     = regexp.MustCompile(`\b(?:FROM|JOIN) ?\( ?SELECT\b`)
	alias       = regexp.MustCompile(`^ (AS )?[a-z_]+\b`)
)

// checkSubset fails if a statement omits a clause that SQLite does not need, but the standard or
// another engine does. These are the target of an upsert, the name of a derived table, and the
// ESCAPE of a pattern. Without ESCAPE, the default is a backslash on one engine and none on the
// other.
func checkSubset(t *testing.T, line string) {
	t.Helper()
	if anyConflict.MatchString(line) {
		t.Errorf("ON CONFLICT has no target: %s", line)
	}
	if strings.Count(line, " LIKE ") != strings.Count(line, ` ESCAPE '\'`) {
		t.Errorf("LIKE has no ESCAPE: %s", line)
	}
	for _, at := range derived.FindAllStringIndex(line, -1) {
		if rest := behindParenthesis(line[at[0]+strings.Index(line[at[0]:], "("):]); !alias.MatchString(rest) {
			t.Errorf("a derived table has no name before %.40q: %s", rest, line)
		}
	}
}

// behindParenthesis returns the text after the parenthesis that closes the first one of text.
func behindParenthesis(text string) string {
	open, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			open++
		case c == ')':
			if open--; open == 0 {
				return text[i+1:]
			}
		}
	}
	return ""
}

func TestDerivedTables(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(behindParenthesis(`(SELECT ')' FROM (SELECT 1) AS one) AS x WHERE 1`), " AS x WHERE 1")
	is.True(derived.MatchString("SELECT count(*) FROM (SELECT 1)"))
	is.True(!alias.MatchString(" WHERE 1")) // an upper-case word is a keyword
	is.True(alias.MatchString(" t CROSS JOIN w"))
	is.True(anyConflict.MatchString("ON CONFLICT DO NOTHING"))
	is.True(!anyConflict.MatchString("ON CONFLICT (id) DO NOTHING"))
}
