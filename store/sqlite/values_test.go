package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
)

type (
	named  string
	number int
	flag   bool
)

// destinations holds a value of each type into which a column is read.
var destinations = []any{
	"", []byte(nil), 0, int8(0), int16(0), int32(0), int64(0), uint(0), uint8(0), uint64(0), float32(0), float64(0), false,
	named(""), number(0), flag(false), json.RawMessage(nil), (*string)(nil), (*int64)(nil), (*bool)(nil), (*named)(nil),
	time.Time{}, time.Duration(0), struct{}{}, []string(nil), sql.NullString{}, sql.NullInt64{}, sql.NullBool{},
	sql.NullFloat64{}, sql.Null[[]byte]{}, sql.Null[named]{},
}

// stringOf and the other pointers are arguments that point to a value.
var (
	stringOf = "of a pointer"
	numberOf = number(5)
)

// arguments are values of each type that a query may take.
var arguments = []any{
	nil, 0, 1, 2, -5, 1 << 40, math.MaxInt64, math.MinInt64, int8(-8), int32(32), uint8(8), uint32(math.MaxUint32),
	uint64(64), uint64(math.MaxUint64), 1.5, float32(0.25), 1e300, 3.0, math.Inf(1), math.NaN(), true, false,
	"", "text", "12", "-1.5", "1e3", "true", "a\x00b", "\xff", "ünï", strings.Repeat("long ", 20_000),
	[]byte(nil), []byte{}, []byte("blob"), []byte("12"), []byte{0, 255}, json.RawMessage(`{}`), json.RawMessage(nil),
	named("named"), number(7), flag(true), &stringOf, (*string)(nil), &numberOf,
	sql.NullString{}, sql.NullInt64{Int64: 9, Valid: true},
	time.Second, struct{}{}, []string{"a"}, complex(1, 1), map[string]int{},
}

// A reading is the result of a query for one value.
type reading struct {
	kind   string   // SQLite's name of the type
	values []string // one for each destination, after "error" if the conversion failed
}

// anyRows are rows of this package or of database/sql.
type anyRows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// read selects an argument and reads it into each destination.
func read(query func(query string, args ...any) (anyRows, error), arg any) (r reading) {
	rows, err := query(`SELECT typeof(?1), ?1`, arg)
	if err != nil {
		return reading{kind: "error"}
	}
	defer rows.Close()
	if !rows.Next() {
		return reading{kind: fmt.Sprintf("no row: %v", rows.Err())}
	}
	for _, d := range append([]any{new(any)}, destinations...) {
		to := reflect.New(reflect.TypeOf(d))
		if err := rows.Scan(&r.kind, to.Interface()); err != nil {
			r.values = append(r.values, "error")
		}
		r.values = append(r.values, shown(to.Elem().Interface()))
	}
	return r
}

// shown returns a value in a form that can be compared: NaN does not equal itself.
func shown(v any) string {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		return fmt.Sprintf("pointer to %#v", p.Elem().Interface())
	}
	return fmt.Sprintf("%#v", v)
}

// readers returns the query functions of this package and of database/sql.
func readers(t testing.TB) (ours, theirs func(query string, args ...any) (anyRows, error)) {
	db := open(t)
	ours = func(query string, args ...any) (anyRows, error) {
		return db.Query(context.Background(), query, args...)
	}
	other, err := sql.Open("sqlite", ":memory:")
	is.New(t).NoErr(err)
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	theirs = func(query string, args ...any) (anyRows, error) { return other.Query(query, args...) }
	return ours, theirs
}

// TestValues selects arguments of each type and reads them into variables of each type. The results
// and the errors are those of database/sql.
func TestValues(t *testing.T) {
	t.Parallel()
	ours, theirs := readers(t)
	for i, arg := range arguments {
		t.Run(fmt.Sprintf("%d %T", i, arg), func(t *testing.T) {
			is := is.New(t)
			is.Equal(read(ours, arg), read(theirs, arg))
		})
	}
}

// TestTimeIsRefused passes a time.Time, of which database/sql would make text in a form of its own.
func TestTimeIsRefused(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	_, err := db.Query(t.Context(), `SELECT ?`, time.Now())
	is.True(err != nil)
	got, err := texts(t.Context(), db, `SELECT ?`, "after it")
	is.NoErr(err)
	is.Equal(got, []string{"after it"})
}

// FuzzValues compares more values with those of database/sql.
func FuzzValues(f *testing.F) {
	f.Add(int64(1), 1.0, "1", []byte("1"))
	f.Add(int64(256), -0.5, "0x10", []byte{})
	f.Add(int64(-1<<31-1), 16777217.0, " 1", []byte("nan"))
	ours, theirs := readers(f)
	f.Fuzz(func(t *testing.T, n int64, x float64, text string, blob []byte) {
		for _, arg := range []any{n, x, text, blob} {
			is.New(t).Equal(read(ours, arg), read(theirs, arg))
		}
	})
}

// TestStatements runs queries that are refused: a query is one statement with all its parameters.
func TestStatements(t *testing.T) {
	t.Parallel()
	db := open(t)
	for name, tt := range map[string]struct {
		query string
		args  []any
		says  string
	}{
		"too few values":  {`SELECT ?, ?`, []any{1}, "2 parameters, not 1"},
		"too many values": {`SELECT ?`, []any{1, 2}, "1 parameters, not 2"},
		"two statements":  {`SELECT 1; SELECT 2`, nil, "not one statement"},
		"no statement":    {` -- nothing`, nil, "not one statement"},
		"no SQL":          {`SELEKT`, nil, "syntax error"},
		"a write":         {`DELETE FROM notes`, nil, "readonly"},
		"name in quotes":  {`SELECT "no such column"`, nil, "no such column"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			rows, err := db.Query(t.Context(), tt.query, tt.args...)
			if err == nil {
				rows.Close()
			}
			is.True(err != nil && strings.Contains(err.Error(), tt.says)) // the error names what is wrong
		})
	}
}

// TestSameQueryTwice reads the rows of a query while those of the same query are open.
func TestSameQueryTwice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	const query = `SELECT value FROM json_each(?) ORDER BY value`
	type querier interface {
		Query(ctx context.Context, query string, args ...any) (engine.Rows, error)
	}
	pairs := func(q querier) error {
		outer, err := q.Query(t.Context(), query, `["a","b"]`)
		if err != nil {
			return err
		}
		defer outer.Close()
		var got []string
		for outer.Next() {
			inner, err := q.Query(t.Context(), query, `["c","d"]`)
			if err != nil {
				return err
			}
			for inner.Next() {
				var a, b string
				if err := outer.Scan(&a); err != nil {
					return err
				}
				if err := inner.Scan(&b); err != nil {
					return err
				}
				got = append(got, a+b)
			}
			is.NoErr(inner.Close())
			is.NoErr(inner.Close()) // does nothing
		}
		is.Equal(got, []string{"ac", "ad", "bc", "bd"})
		return outer.Err()
	}
	for range 2 {
		is.NoErr(pairs(db))
		is.NoErr(db.Snapshot(t.Context(), func(s engine.Querier) error { return pairs(s) }))
		is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error { return pairs(tx) }))
	}
}

// TestLongValues writes and reads texts for which a statement needs more memory, and less again.
func TestLongValues(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	for _, n := range []int{0, 1, 255, 256, 20_000, 3_000_000, 10, 40_000} {
		id := strings.Repeat("x", n)
		is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
			changed, err := tx.Exec(`INSERT INTO notes (id) VALUES (?)`, id)
			is.Equal(changed, int64(1))
			return err
		}))
		got, err := texts(t.Context(), db, `SELECT id FROM notes WHERE id = ?`, id)
		is.NoErr(err)
		is.True(len(got) == 1 && got[0] == id)
	}
}
