package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"journeyman/store/engine"
)

// maxDifferences bounds the differences that an error lists.
const maxDifferences = 5

// CheckSchema returns an error unless the database file at path has exactly the tables and
// indexes of schema. The error names what differs. Tables of Litestream and of SQLite itself
// do not count, nor do further indexes that are not unique.
func CheckSchema(ctx context.Context, path, schema string) error {
	r := newReaders(dsn(path, reading))
	return errors.Join(r.checkSchema(ctx, path, schema), r.Close())
}

// checkSchema is CheckSchema on a connection that later queries use: SQLite reads the whole schema on
// each new connection.
func (r *readers) checkSchema(ctx context.Context, path, schema string) error {
	got, err := r.objects(ctx)
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	if equalText(got, schema) {
		return nil // this is nearly always so; the comparison below takes as long as creating a database
	}
	return withDatabase(path, reading, func(c *sql.DB) error {
		list, err := differences(ctx, c, got, schema)
		if err != nil || len(list) == 0 {
			return err
		}
		if more := len(list) - maxDifferences; more > 0 {
			list = append(list[:maxDifferences], fmt.Sprintf("and %d more differences", more))
		}
		return fmt.Errorf("the database is not what this program created: %s. "+
			"Restore a backup, or undo the change that was made to it", strings.Join(list, "; "))
	})
}

// An object is a table, an index or another object of a database.
type object struct{ kind, name, table, text string }

// declaredObjects is the query for the objects that were declared.
const declaredObjects = `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL
	AND name NOT GLOB 'sqlite_*' AND tbl_name NOT GLOB '_litestream_*'`

// objects returns the objects that were declared, by name.
func (r *readers) objects(ctx context.Context) (map[string]object, error) {
	c, err := r.take(ctx)
	if err != nil {
		return nil, err
	}
	defer r.give(c)
	st, err := c.prepare(declaredObjects, 0) // it runs once, and is not kept
	if err != nil {
		return nil, err
	}
	rows, err := st.query(ctx, nil)
	if err != nil {
		return nil, err
	}
	all, err := scanObjects(rows)
	return all, errors.Join(err, rows.Close())
}

// objectsOf returns the objects that were declared, by name.
func objectsOf(ctx context.Context, c *sql.DB) (map[string]object, error) {
	rows, err := c.QueryContext(ctx, declaredObjects)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return scanObjects(rows)
}

func scanObjects(rows engine.Rows) (map[string]object, error) {
	all := map[string]object{}
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.table, &o.text); err != nil {
			return nil, err
		}
		o.text = plainSQL(o.text)[0]
		all[o.name] = o
	}
	return all, rows.Err()
}

// equalText reports whether the statements of schema are those of the objects.
func equalText(objects map[string]object, schema string) bool {
	declared := map[string]bool{}
	for _, o := range objects {
		declared[o.text] = true
	}
	statements := plainSQL(schema)
	for _, text := range statements {
		if !declared[text] {
			return false
		}
	}
	return len(statements) == len(objects)
}

// differences compares a database with a new one, made from schema.
func differences(ctx context.Context, c *sql.DB, got map[string]object, schema string) (list []string, err error) {
	model, err := sql.Open("sqlite", ":memory:?_dqs=0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	model.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := model.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("read the program's schema: %w", err)
	}
	want, err := objectsOf(ctx, model)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w, g := want[name], got[name]
		switch {
		case g.name == "":
			list = append(list, fmt.Sprintf("%s is missing", w))
		case g.text == w.text:
		case w.kind == "table":
			columns, err := differentColumns(ctx, c, model, w)
			if err != nil {
				return nil, err
			}
			list = append(list, columns...)
		default:
			list = append(list, fmt.Sprintf("%s is declared differently", w))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		// An added plain index changes no result. An added unique index could refuse writes.
		if want[name].name == "" && !got[name].isPlainIndex() {
			list = append(list, fmt.Sprintf("%s is unknown to this program", got[name]))
		}
	}
	return list, nil
}

// isPlainIndex reports whether the object is an index that changes no result.
func (o object) isPlainIndex() bool {
	return o.kind == "index" && !strings.HasPrefix(strings.ToUpper(o.text), "CREATE UNIQUE")
}

// String returns the kind and name of an object, for people.
func (o object) String() string {
	if o.kind == "table" {
		return fmt.Sprintf("the table %q", o.name)
	}
	return fmt.Sprintf("the %s %q of the table %q", o.kind, o.name, o.table)
}

// differentColumns returns how the columns of a table differ.
func differentColumns(ctx context.Context, c, model *sql.DB, table object) (list []string, err error) {
	want, names, err := columnsOf(ctx, model, table.name)
	if err != nil {
		return nil, err
	}
	got, gotNames, err := columnsOf(ctx, c, table.name)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch {
		case got[name] == "":
			list = append(list, fmt.Sprintf("%s has no column %q", table, name))
		case got[name] != want[name]:
			list = append(list, fmt.Sprintf("the column %q of %s is declared differently", name, table))
		}
	}
	for _, name := range gotNames {
		if want[name] == "" {
			list = append(list, fmt.Sprintf("%s has a column %q that this program does not know", table, name))
		}
	}
	if len(list) == 0 { // a CHECK, a reference or the order of the columns
		list = append(list, fmt.Sprintf("%s is declared differently", table))
	}
	return list, nil
}

// columnsOf returns the declarations of a table's columns by name, and the names in order.
func columnsOf(ctx context.Context, c *sql.DB, table string) (map[string]string, []string, error) {
	names, err := column[string](c.QueryContext(ctx, `SELECT name FROM pragma_table_xinfo(?) ORDER BY cid`, table))
	if err != nil {
		return nil, nil, err
	}
	texts, err := column[string](c.QueryContext(ctx, `
		SELECT format('%s %d %s %d %d', type, "notnull", dflt_value, pk, hidden)
		FROM pragma_table_xinfo(?) ORDER BY cid`, table))
	if err != nil {
		return nil, nil, err
	}
	columns := map[string]string{}
	for i, name := range names {
		columns[name] = texts[i]
	}
	return columns, names, nil
}

// plainSQL returns the statements of a script without comments, without quotes of names and
// with as little white space as possible. It returns at least one text. A migration declares
// the same table with other comments, and a renamed table has its name in quotes.
func plainSQL(script string) (statements []string) {
	b := make([]byte, 0, len(script))
	end := func() {
		if len(b) > 0 {
			statements = append(statements, string(b))
		}
		b = b[:0]
	}
	last := func() byte {
		if len(b) == 0 {
			return '('
		}
		return b[len(b)-1]
	}
	space := false
	for i := 0; i < len(script); i++ {
		switch ch := script[i]; {
		case ch == '-' && strings.HasPrefix(script[i:], "--"):
			n := strings.IndexByte(script[i:], '\n')
			if n < 0 {
				n = len(script) - i
			}
			i, space = i+n-1, true
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			space = true
		case ch == '"': // of a name: it holds none of the characters above
		case ch == ';':
			end()
			space = false
		default:
			if space && strings.IndexByte("(,", last()) < 0 && strings.IndexByte("(),", ch) < 0 {
				b = append(b, ' ')
			}
			space = false
			if ch != '\'' {
				b = append(b, ch)
				continue
			}
			n := strings.IndexByte(script[i+1:], '\'') + 2 // a text literal is copied unchanged
			if n < 2 {
				n = len(script) - i
			}
			b = append(b, script[i:i+n]...)
			i += n - 1
		}
	}
	end()
	if len(statements) == 0 {
		return []string{""}
	}
	return statements
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
