package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"
	_ "modernc.org/sqlite"

	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestSchemaIsThatOfSQLite applies schema.sql to SQLite, and its translation to PostgreSQL. It
// converts both catalogs to one form, and compares them table by table.
func TestSchemaIsThatOfSQLite(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := connect(t, pgtest.URL(t))
	script, err := postgres.Schema(readSchema(t))
	is.NoErr(err)
	_, err = c.Exec(t.Context(), script)
	is.NoErr(err)
	want, got := catalogOfSQLite(t), catalogOfPostgres(t, c)
	delete(got, "meta") // only PostgreSQL has this table
	ordertest.Above(is, len(want), 30)
	for name, lines := range want {
		compare(t, name, lines, got[name])
		delete(got, name)
	}
	is.Equal(len(got), 0) // no additional tables
}

// compare reports lines that are in only one of two catalogs.
func compare(t *testing.T, table string, want, got []string) {
	t.Helper()
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: PostgreSQL lacks  %s", table, line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: PostgreSQL has    %s", table, line)
		}
	}
	if len(want) != len(got) {
		t.Errorf("%s: SQLite has %d columns, indexes and constraints, PostgreSQL %d", table, len(want), len(got))
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // the server may have crashed
	return c
}

// A catalog contains a line for each column, index and constraint, by table.
type catalog map[string][]string

// catalogOfSQLite returns the catalog that PostgreSQL should have.
func catalogOfSQLite(t *testing.T) catalog {
	t.Helper()
	is := is.New(t)
	db, err := sql.Open("sqlite", ":memory:?_dqs=0")
	is.NoErr(err)
	db.SetMaxOpenConns(1) // each connection would have its own database
	t.Cleanup(func() { is.NoErr(db.Close()) })
	_, err = db.ExecContext(t.Context(), readSchema(t))
	is.NoErr(err)
	all := catalog{}
	for _, row := range query(t, db, `SELECT name, sql FROM sqlite_schema WHERE type = 'table'`) {
		table := row[0]
		all[table] = append(all[table], checks(strings.Count(withoutComments(row[1]), "CHECK (")))
		all[table] = append(all[table], columnsOfSQLite(t, db, table)...)
		all[table] = append(all[table], indexesOfSQLite(t, db, table)...)
		for _, key := range query(t, db, `SELECT group_concat("from", ', '), "table", group_concat("to", ', '), on_delete
			FROM (SELECT * FROM pragma_foreign_key_list(?) ORDER BY id, seq) GROUP BY id`, table) {
			all[table] = append(all[table], fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s(%s) ON DELETE %s", key[0], key[1], key[2], key[3]))
		}
	}
	return all
}

func checks(n int) string { return fmt.Sprintf("%d checks", n) }

func withoutComments(text string) string {
	return regexp.MustCompile(`--.*`).ReplaceAllString(text, "")
}

func columnsOfSQLite(t *testing.T, db *sql.DB, table string) (lines []string) {
	t.Helper()
	kinds := map[string]string{"INTEGER": "bigint", "REAL": "double precision", "TEXT": "text C", "BLOB": "bytea"}
	for _, c := range query(t, db, `SELECT name, type, "notnull" OR pk > 0, coalesce(dflt_value, ''), hidden > 0, cid
		FROM pragma_table_xinfo(?)`, table) {
		identity := c[0] == "num"
		lines = append(lines, columnLine(c[5], c[0], kinds[c[1]], c[2] == "1", c[3], c[4] == "1", identity))
	}
	return lines
}

func columnLine(position, name, kind string, notNull bool, value string, generated, identity bool) string {
	return fmt.Sprintf("column %s %s %s, not null %t, default %s, generated %t, identity %t", position, name, kind, notNull,
		value, generated, identity)
}

func indexesOfSQLite(t *testing.T, db *sql.DB, table string) (lines []string) {
	t.Helper()
	counts, primary := false, ""
	for _, c := range query(t, db, `SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk`, table) {
		primary = strings.TrimPrefix(primary+", "+c[0], ", ")
	}
	counts = primary == "num"
	lines = append(lines, indexLine("", true, primary, "")) // not in the list of SQLite
	for _, i := range query(t, db, `SELECT l.name, l."unique", l.origin, coalesce(s.sql, '')
		FROM pragma_index_list(?) l JOIN sqlite_schema s ON s.name = l.name WHERE l.origin <> 'pk'`, table) {
		var columns []string
		for _, c := range query(t, db, `SELECT coalesce(name, ''), coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno`, i[0]) {
			switch {
			case c[0] == "":
				c[0] = "COALESCE(worker_id, '')" // the only expression in an index
			case c[1] == "NOCASE":
				c[0] = "lower(" + c[0] + ")"
			}
			columns = append(columns, c[0])
		}
		if counts && i[1] == "0" && !slices.Contains(columns, "num") {
			columns = append(columns, "num")
		}
		name, condition := i[0], ""
		if i[2] != "c" {
			name = ""
		}
		if _, where, ok := strings.Cut(i[3], "WHERE "); ok {
			condition = where
		}
		lines = append(lines, indexLine(name, i[1] == "1", strings.Join(columns, ", "), condition))
	}
	return lines
}

// indexLine removes the parts of a condition that PostgreSQL formats differently.
func indexLine(name string, unique bool, columns, condition string) string {
	condition = strings.NewReplacer("(", "", ")", "", "::text", "").Replace(condition)
	columns = strings.ReplaceAll(columns, "::text", "")
	return fmt.Sprintf("index %s, unique %t, of %s, where %s", name, unique, columns, strings.Join(strings.Fields(condition), " "))
}

// query returns the rows of a query in SQLite.
func query(t *testing.T, db *sql.DB, text string, args ...any) (all [][]string) {
	t.Helper()
	is := is.New(t)
	rows, err := db.QueryContext(t.Context(), text, args...)
	is.NoErr(err)
	defer rows.Close()
	columns, err := rows.Columns()
	is.NoErr(err)
	for rows.Next() {
		row, to := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		is.NoErr(rows.Scan(to...))
		all = append(all, row)
	}
	is.NoErr(rows.Err())
	return all
}

// catalogOfPostgres reads the catalog of the connection's schema.
func catalogOfPostgres(t *testing.T, c *pgx.Conn) catalog {
	t.Helper()
	is := is.New(t)
	all := catalog{}
	read := func(text string, line func(row []string) string) {
		rows, err := c.Query(t.Context(), text)
		is.NoErr(err)
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v []string, err error) {
			return v, row.Scan(&v)
		})
		is.NoErr(err)
		for _, row := range found {
			all[row[0]] = append(all[row[0]], line(row[1:]))
		}
	}
	read(`SELECT ARRAY[table_name, (ordinal_position - 1)::text, column_name, data_type || coalesce(' ' || collation_name, ''), is_nullable,
			coalesce(column_default, ''), is_generated, is_identity]
		FROM information_schema.columns WHERE table_schema = current_schema()`, func(r []string) string {
		value, _, _ := strings.Cut(r[4], "::")
		return columnLine(r[0], r[1], r[2], r[3] == "NO", value, r[5] == "ALWAYS", r[6] == "YES")
	})
	// The server names the index of a constraint, so the name is not compared.
	read(`SELECT ARRAY[t.relname::text, CASE WHEN k.oid IS NULL AND i.relname NOT LIKE '%\_key' THEN i.relname::text ELSE '' END, x.indisunique::text,
			(SELECT string_agg(pg_get_indexdef(i.oid, n, true), ', ' ORDER BY n) FROM generate_series(1, x.indnatts) n),
			coalesce(pg_get_expr(x.indpred, t.oid), '')]
		FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
			LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('p', 'u')
		WHERE t.relnamespace = current_schema()::regnamespace`, func(r []string) string {
		return indexLine(r[0], r[1] == "true", r[2], r[3])
	})
	read(`SELECT ARRAY[conrelid::regclass::text, pg_get_constraintdef(oid)] FROM pg_constraint
		WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`, func(r []string) string { return r[0] })
	read(`SELECT ARRAY[t.relname::text, count(k.oid)::text] FROM pg_class t LEFT JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype = 'c'
		WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace GROUP BY t.relname`, func(r []string) string {
		return r[0] + " checks"
	})
	return all
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, says string }{
		"another statement":      {`DROP TABLE t;`, "no translation"},
		"an unknown type":        {`CREATE TABLE t (a NUMERIC) STRICT;`, "t.a: the type NUMERIC"},
		"no end":                 {`CREATE TABLE t (a TEXT) STRICT`, "no semicolon"},
		"an index without table": {`CREATE INDEX i ON t (a);`, "no table"},
		"a short reference":      {`CREATE TABLE t (a TEXT REFERENCES u) STRICT;`, "a reference"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, err := postgres.Schema(tt.text)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the error names the problem
		})
	}
}

// TestFunctions compares the functions of the schema with SQLite's functions.
func TestFunctions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := connect(t, pgtest.URL(t))
	script, err := postgres.Schema(`CREATE TABLE t (num INTEGER PRIMARY KEY) STRICT;`)
	is.NoErr(err)
	_, err = c.Exec(t.Context(), script)
	is.NoErr(err)
	db, err := sql.Open("sqlite", ":memory:?_dqs=0")
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(db.Close()) })
	for _, expression := range []string{
		`max(1, 2)`, `max(2, 1)`, `max(1, NULL)`, `max(NULL, 1)`, `min(1, 2)`, `min(NULL, 2)`,
		`instr('abc', 'b')`, `instr('abc', 'd')`, `instr('äbc', 'b')`, `instr('abc', '')`, `instr(NULL, 'a')`,
		`json_valid('{"a": [1]}')`, `json_valid('{')`, `json_valid('')`, `json_valid('1')`, `json_valid(NULL)`,
		`(SELECT sum(value) FROM json_each('[1, 20, 300]'))`, `(SELECT count(*) FROM json_each('[]'))`,
		`'a' LIKE 'A'`, `'ä' LIKE 'Ä'`, `'a_b' LIKE 'A\_B' ESCAPE '\'`, `'axb' LIKE 'a\_b' ESCAPE '\'`, `iif(NULL IS NULL, 'a', 'b')`,
		`(SELECT json_group_array(x) FROM (SELECT 1 x WHERE 1 = 0) AS t)`,
	} {
		want := query(t, db, `SELECT coalesce(`+expression+`, 'NULL')`)[0][0]
		text, err := postgres.Translate(`SELECT ` + expression)
		is.NoErr(err)
		var got any
		is.NoErr(c.QueryRow(t.Context(), strings.ReplaceAll(text, "ILIKE", `COLLATE "C" ILIKE`)).Scan(&got))
		if got == nil {
			got = "NULL"
		}
		if have := strings.NewReplacer("true", "1", "false", "0").Replace(fmt.Sprint(got)); have != want {
			t.Errorf("%s is %s, and %s in SQLite", expression, have, want)
		}
	}
}
