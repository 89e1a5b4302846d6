package postgres_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/postgres"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"parameters":                {`a = ? AND b = ?`, `a = $1 AND b = $2`},
		"numbered parameters":       {`a = ?2 OR b = ?1 OR c = ?2`, `a = $2 OR b = $1 OR c = $2`},
		"after a numbered one":      {`a = ?3 AND b = ? AND c = ?1 AND d = ?`, `a = $3 AND b = $4 AND c = $1 AND d = $5`},
		"a quoted question mark":    {`a = '?' AND "b?" = ?`, `a = '?' AND "b?" = $1`},
		"a doubled quote":           {`a = 'it''s ?' AND b = ?`, `a = 'it''s ?' AND b = $1`},
		"a backslash is no escape":  {`a LIKE ? ESCAPE '\' AND b = ?`, `a ILIKE $1 ESCAPE '\' AND b = $2`},
		"comments":                  {"a -- why?\n= /* ? */ ?", `a = $1`},
		"a lock":                    {`SELECT a FROM t WHERE b = ? /* FOR UPDATE */`, `SELECT a FROM t WHERE b = $1 FOR UPDATE`},
		"a lock that skips":         {`SELECT a LIMIT 1 /*FOR UPDATE  SKIP LOCKED*/`, `SELECT a LIMIT 1 FOR UPDATE SKIP LOCKED`},
		"a lock beside keys":        {`SELECT a /* FOR NO KEY UPDATE SKIP LOCKED */`, `SELECT a FOR NO KEY UPDATE SKIP LOCKED`},
		"a lock of a key":           {`SELECT a /* FOR KEY SHARE */`, `SELECT a FOR KEY SHARE`},
		"a lock of a table":         {`SELECT a /* FOR KEY SHARE OF t */`, `SELECT a FOR KEY SHARE OF t`},
		"a shared lock":             {`SELECT a /* FOR SHARE */`, `SELECT a FOR SHARE`},
		"an order":                  {`FROM (SELECT b FROM t) /* ORDER BY b DESC */ LIMIT ?`, `FROM (SELECT b FROM t) ORDER BY b DESC LIMIT $1`},
		"another comment":           {`SELECT a /* FOR people */ FROM t`, `SELECT a FROM t`},
		"white space":               {"SELECT a\n\tFROM t", "SELECT a\n\tFROM t"},
		"an index":                  {`FROM t INDEXED BY t_by_a WHERE a`, `FROM t WHERE a`},
		"an index and no space":     {`'a'INDEXED BY t_by_a'b'`, `'a' 'b'`},
		"an updated index":          {`UPDATE t INDEXED BY t_by_a SET a = 1`, `UPDATE t SET a = 1`},
		"joins":                     {`FROM a CROSS JOIN b ON b.x = a.x CROSS JOIN c ON c.y = b.y`, `FROM a JOIN b ON b.x = a.x JOIN c ON c.y = b.y`},
		"a join of a query":         {`a CROSS JOIN (SELECT b FROM c JOIN d ON e) AS f ON g`, `a JOIN (SELECT b FROM c JOIN d ON e) AS f ON g`},
		"a join without condition":  {`FROM a CROSS JOIN b WHERE c`, `FROM a CROSS JOIN b WHERE c`},
		"a join before another":     {`FROM a CROSS JOIN b JOIN c ON d`, `FROM a CROSS JOIN b JOIN c ON d`},
		"a join in parentheses":     {`x IN (SELECT 1 FROM a CROSS JOIN b) AND EXISTS (SELECT 1 FROM c JOIN d ON e)`, `x IN (SELECT 1 FROM a CROSS JOIN b) AND EXISTS (SELECT 1 FROM c JOIN d ON e)`},
		"IS of a parameter":         {`a IS ? AND b IS NOT ?`, `a IS NOT DISTINCT FROM $1 AND b IS DISTINCT FROM $2`},
		"IS of columns":             {`a.b IS c.d`, `a.b IS NOT DISTINCT FROM c.d`},
		"IS of texts":               {`a IS 'b'`, `a IS NOT DISTINCT FROM 'b'`},
		"IS NULL":                   {`a IS NULL OR b IS NOT NULL`, `a IS NULL OR b IS NOT NULL`},
		"NOT LIKE":                  {`a NOT LIKE 'b%'`, `a NOT ILIKE 'b%'`},
		"no limit":                  {`ORDER BY a LIMIT -1 OFFSET ?`, `ORDER BY a OFFSET $1`},
		"a limit":                   {`LIMIT 1`, `LIMIT 1`},
		"email":                     {`SELECT email FROM users WHERE email = ?`, `SELECT email FROM users WHERE lower(email) = lower($1 COLLATE "C")`},
		"email of a table":          {`ON u.email = l.email WHERE`, `ON lower(u.email) = lower(l.email COLLATE "C") WHERE`},
		"email of a query":          {`AND email = (SELECT email FROM users WHERE id = ?) AND a`, `AND lower(email) = lower((SELECT email FROM users WHERE id = $1) COLLATE "C") AND a`},
		"email that is set":         {`UPDATE users SET a = 1, email = ? WHERE id = ?`, `UPDATE users SET a = 1, email = $1 WHERE id = $2`},
		"email that is set first":   {`UPDATE users SET email = ?`, `UPDATE users SET email = $1`},
		"email that is tested":      {`WHERE email IS NOT NULL`, `WHERE email IS NOT NULL`},
		"iif":                       {`SELECT iif(a, b, c)`, `SELECT CASE WHEN a THEN b ELSE c END`},
		"iif in iif":                {`IIF(a = ?, iif(b,1,'(,'), (SELECT x, y))`, `CASE WHEN a = $1 THEN CASE WHEN b THEN 1 ELSE '(,' END ELSE (SELECT x, y) END`},
		"a sum":                     {`coalesce(sum(a + b), 0)`, `coalesce(CAST(sum(a + b) AS BIGINT), 0)`},
		"a sum over a window":       {`SELECT sum(a) OVER w AS b WINDOW w AS (ORDER BY c)`, `SELECT CAST(sum(a) OVER w AS BIGINT) AS b WINDOW w AS (ORDER BY c)`},
		"a filtered sum":            {`SELECT sum(a) FILTER (WHERE b IS c), d`, `SELECT CAST(sum(a) FILTER (WHERE b IS NOT DISTINCT FROM c) AS BIGINT), d`},
		"a column called sum":       {`SELECT sum, iif FROM t`, `SELECT sum, iif FROM t`},
		"an object":                 {`SELECT json_object('a', b) c`, `SELECT CAST(json_build_object('a', b) AS TEXT) c`},
		"an array of objects":       {`json_group_array(json_object('a', iif(b, 1, 0)))`, `coalesce(CAST(json_agg(json_build_object('a', CASE WHEN b THEN 1 ELSE 0 END)) AS TEXT), '[]')`},
		"an array of values":        {`json_group_array(a.b)`, `coalesce(CAST(json_agg(a.b) AS TEXT), '[]')`},
		"a list in place of a name": {`(a, b) > (?, ?)`, `(a, b) > ($1, $2)`},
		"two operators":             {`a || b <> c`, `a || b <> c`},
		"letters outside of ASCII":  {`SELECT 'ä' AS größe`, `SELECT 'ä' AS größe`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := postgres.Translate(tt.text)
			is.NoErr(err)
			is.Equal(got, tt.want)
		})
	}
}

func TestTranslateRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, says string }{
		"an open text":         {`a = 'b`, "a quote has no end"},
		"an open comment":      {`a /* b`, "a comment has no end"},
		"an open parenthesis":  {`iif(a, b`, "not closed"},
		"a closed parenthesis": {`a)`, "not opened"},
		"parameter 0":          {`a = ?0`, "?0"},
		"a large parameter":    {`a = ?65536`, "?65536"},
		"a huge parameter":     {`a = ?99999999999999999999`, "out of range"},
		"one too many":         {`a = ?65535 AND b = ?`, "no number"},
		"two arguments of iif": {`iif(a, b)`, "2 arguments"},
		"no index":             {`FROM t INDEXED BY`, "name of an index"},
		"an index in quotes":   {`FROM t INDEXED BY'i' WHERE a`, "name of an index"},
		"emails in a list":     {`WHERE email IN (?, ?)`, "email IN"},
		"email on the right":   {`WHERE ? = u.email`, "left"},
		"email and a number":   {`WHERE email = 1`, "no translation"},
		"email and nothing":    {`WHERE email =`, "no right side"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, err := postgres.Translate(tt.text)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the error names the problem
		})
	}
}

var columnWithoutCase = regexp.MustCompile(`(?m)^    (\w+)\s+TEXT.*COLLATE NOCASE`)

// TestColumnsWithoutCase compares the columns whose comparisons ignore case with the columns that
// the schema declares so.
func TestColumnsWithoutCase(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	schema := readSchema(t)
	var declared []string
	for _, m := range columnWithoutCase.FindAllStringSubmatch(schema, -1) {
		declared = append(declared, m[1])
		got, err := postgres.Translate(`WHERE ` + m[1] + ` = ?`)
		is.NoErr(err)
		is.Equal(got, `WHERE lower(`+m[1]+`) = lower($1 COLLATE "C")`)
	}
	is.Equal(slices.Compact(declared), []string{"email"})
	is.Equal(strings.Count(schema, "COLLATE"), len(declared)) // the pattern finds all declarations
	// Translate sees only names, so every column with that name must have the collation.
	is.Equal(len(regexp.MustCompile(`(?m)^    email\b`).FindAllString(schema, -1)), len(declared))
}

func readSchema(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../schema.sql")
	is.New(t).NoErr(err)
	return string(text)
}

// FuzzTranslate checks that a translation terminates, keeps each quoted text, and has as many
// parameters as the statement.
func FuzzTranslate(f *testing.F) {
	for _, seed := range []string{
		`SELECT a FROM t INDEXED BY i CROSS JOIN u ON u.x IS t.x WHERE b LIKE ? ESCAPE '\' LIMIT -1 OFFSET ?2`,
		`UPDATE users SET email = ? WHERE email = (SELECT email FROM users WHERE id = ?)`,
		`iif(a, sum(b) FILTER (WHERE c), json_group_array(json_object('d', "e", 'it''s', max(f, g))))`,
		"x -- y\n/* FOR UPDATE SKIP LOCKED */ z /* ORDER BY a */", `(`, `)`, `''''`, `?1?2?`, `IS`, `IS NOT`, `CROSS JOIN`, `WHERE email =`, `sum(a, 'b')`, `sum()`,
		`t INDEXED BY'i'`, `t INDEXED BY ?`, `t INDEXED BY`,
	} {
		f.Add(seed)
	}
	quote := regexp.MustCompile(`'(?:[^']|'')*'`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := postgres.Translate(text)
		if err != nil {
			return
		}
		if strings.Contains(text, "--") || strings.Contains(text, "/*") || strings.ContainsAny(text, "\"`$") {
			return // a quote may be inside a comment or a name, and a name may have a $
		}
		want := quote.FindAllString(text, -1)
		if strings.Contains(strings.ToLower(text), "json_group_array") {
			return // its translation adds a text
		}
		if have := quote.FindAllString(got, -1); !slices.Equal(have, want) {
			t.Errorf("%q has the texts %q, and its translation %q has %q", text, want, got, have)
		}
		plain := quote.ReplaceAllString(text, "")
		if n := strings.Count(quote.ReplaceAllString(got, ""), "$"); n != strings.Count(plain, "?") {
			t.Errorf("%q and its translation %q differ in their parameters", text, got)
		}
	})
}
