package postgres_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/sqlite"
)

type (
	named    string
	number64 int64
	flag     bool
)

// destinations contains a value of each type into which a column is read.
var destinations = []any{
	"", []byte(nil), 0, int8(0), int32(0), int64(0), uint(0), uint64(0), float64(0), false, named(""), number64(0),
	flag(false), json.RawMessage(nil), (*string)(nil), (*int64)(nil), (*bool)(nil), time.Time{}, time.Duration(0),
	sql.NullString{}, sql.NullInt64{}, sql.NullBool{}, sql.NullFloat64{}, sql.Null[[]byte]{}, sql.Null[named]{},
}

// stringOf is a value for an argument that is a pointer.
var stringOf = "of a pointer"

// columns are the column types of the store, with arguments that the store writes to them.
var columns = map[string][]any{
	"INTEGER": {
		nil, 0, 1, -5, 1 << 40, math.MaxInt64, math.MinInt64, int8(-8), uint32(math.MaxUint32), uint64(64),
		uint64(math.MaxUint64), true, false, 3.0, "42", "-7", number64(7), flag(true), time.Second, (*string)(nil),
		sql.NullInt64{}, sql.NullInt64{Int64: 9, Valid: true}, 1e18, "text", struct{}{}, []string{"a"}, time.Now(),
	},
	"REAL": {nil, 1.5, float32(0.25), 1e300, -1e-300, 3.0, 7, 0.1, math.Inf(1), math.Inf(-1), math.NaN(), "1.5", "text"},
	"TEXT": {
		nil, "", "text", "12", "-1.5", "true", "ünï", strings.Repeat("long ", 20_000), named("named"), 12, -5, true,
		&stringOf, sql.NullString{}, `back\slash 'quote' "`, `\x00`, "{}", "line\nline",
	},
	"BLOB": {nil, []byte(nil), []byte("blob"), []byte("12"), []byte{0, 255}, []byte(`\x00`), json.RawMessage(`{}`)},
}

// read writes a value and reads it into each destination. It returns "error" for a refused value,
// and for each destination that cannot hold the value.
func read(t *testing.T, db engine.DB, kind string, arg any) (list []string) {
	t.Helper()
	err := db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		if _, err := tx.Exec(`DELETE FROM all_` + kind); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO all_`+kind+` (v) VALUES (?)`, arg)
		return err
	})
	if err != nil {
		return []string{"error"}
	}
	rows, err := db.Query(t.Context(), `SELECT v FROM all_`+kind)
	is.New(t).NoErr(err)
	defer rows.Close()
	if !rows.Next() {
		t.Fatal("no row")
	}
	for _, d := range append([]any{new(any)}, destinations...) {
		to := reflect.New(reflect.TypeOf(d))
		if err := rows.Scan(to.Interface()); err != nil {
			list = append(list, "error")
		}
		list = append(list, shown(to.Elem().Interface()))
	}
	return list
}

// shown returns a value as text for comparisons, because NaN does not equal itself.
func shown(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		return fmt.Sprintf("pointer to %#v", p.Elem().Interface())
	}
	return fmt.Sprintf("%#v", v)
}

// TestValues writes arguments of each type to columns of each type, and reads them into variables
// of each type. The results must be those of the embedded engine.
func TestValues(t *testing.T) {
	t.Parallel()
	const tables = `
		CREATE TABLE all_INTEGER (v INTEGER) STRICT;
		CREATE TABLE all_REAL (v REAL) STRICT;
		CREATE TABLE all_TEXT (v TEXT) STRICT;
		CREATE TABLE all_BLOB (v BLOB) STRICT;`
	for name, options := range map[string]string{"prepared": "", "unnamed": "&default_query_exec_mode=exec"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := openSchema(t, pgtest.URL(t)+options, tables)
			theirs, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), tables, nil)
			is.New(t).NoErr(err)
			defer theirs.Close()
			for kind, args := range columns {
				for i, arg := range args {
					t.Run(fmt.Sprintf("%s %d %T", kind, i, arg), func(t *testing.T) {
						is := is.New(t)
						is.Equal(read(t, ours, kind, arg), read(t, theirs, kind, arg))
					})
				}
			}
		})
	}
}

// TestExpressions compares the values of expressions with those of the embedded engine.
func TestExpressions(t *testing.T) {
	t.Parallel()
	ours := open(t)
	theirs, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), schema, nil)
	is.New(t).NoErr(err)
	defer theirs.Close()
	for query, args := range map[string][]any{
		`SELECT EXISTS (SELECT 1 FROM notes)`:      nil,
		`SELECT NOT EXISTS (SELECT 1 FROM notes)`:  nil,
		`SELECT COUNT(*) FROM notes`:               nil,
		`SELECT COALESCE(SUM(n), 0) FROM counters`: nil,
		`SELECT SUM(n) FROM counters`:              nil,
		`SELECT SUM(n) FROM (SELECT CAST(? AS BIGINT) AS n UNION ALL SELECT CAST(? AS BIGINT)) AS pair`: {1 << 61, 1 << 60},
		`SELECT CASE WHEN CAST(? AS BIGINT) = 1 THEN 'yes' ELSE 'no' END`:                               {true},
		`SELECT CAST(? AS BIGINT) + 1`:               {"41"},
		`SELECT LENGTH(CAST(? AS TEXT))`:             {"ünï"},
		`SELECT NULL`:                                nil,
		`SELECT 'it''s'`:                             nil,
		`SELECT 1 WHERE CAST(? AS TEXT) IS NOT NULL`: {"x"},
	} {
		t.Run(query, func(t *testing.T) {
			is := is.New(t)
			value := func(db engine.DB) (v any) {
				rows, err := db.Query(t.Context(), query, args...)
				is.NoErr(err)
				is.True(rows.Next())
				is.NoErr(rows.Scan(&v))
				is.NoErr(rows.Close())
				return v
			}
			is.Equal(value(ours), value(theirs))
		})
	}
}

// TestTextsThatTheServerRefuses checks that such texts are stored in another form.
func TestTextsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	for text, want := range map[string]string{
		"a\x00b":           "a\uFFFDb",
		"\x00":             "\uFFFD",
		"a\xffb":           "a\uFFFDb",
		"\xed\xa0\x80":     "\uFFFD",
		"whole \U0001F600": "whole \U0001F600",
	} {
		for _, arg := range []any{text, []byte(text), &text, json.RawMessage(text)} {
			var got []string
			is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) (err error) {
				if _, err := tx.Exec(`DELETE FROM notes`); err != nil {
					return err
				}
				if _, err := tx.Exec(`INSERT INTO notes (id) VALUES (?)`, arg); err != nil {
					return err
				}
				got, err = texts(t.Context(), tx, `SELECT id FROM notes`)
				return err
			}))
			is.Equal(got, []string{want})
		}
	}
}

// TestParameters runs statements with too few and too many arguments.
func TestParameters(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, tt := range map[string]struct {
		args []any
		says string
	}{
		"too few":  {[]any{"a"}, "2 parameters, not 1"},
		"too many": {[]any{"a", "b", "c"}, "2 parameters, not 3"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			for range 2 { // the statement is prepared in the first round
				_, err := db.Query(t.Context(), `SELECT id FROM notes WHERE id = ? OR id = ?`, tt.args...)
				is.True(err != nil && strings.Contains(err.Error(), tt.says))
				err = db.Write(t.Context(), engine.Locking, exec(`DELETE FROM notes WHERE id = ? OR id = ?`, tt.args...))
				is.True(err != nil && strings.Contains(err.Error(), tt.says))
			}
			_, err := db.Query(t.Context(), `SELECT id FROM notes WHERE id = ? OR id = ?`, "a", "b")
			is.NoErr(err)
		})
	}
}
