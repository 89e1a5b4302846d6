package store_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestPostgresKnowsEveryText prepares the translation of each statement of the store on PostgreSQL.
// This must succeed, and each parameter must have a type of the columns.
//
// Then it checks the plans. The tables are empty, so sequential scans are disabled, and the server
// uses an index wherever one is usable. Each statement must use an index for each table, unless it
// may scan the table on SQLite, too.
func TestPostgresKnowsEveryText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := emptyPostgres(t) // first, because it may skip the test
	is.NoErr(errOf(c.Exec(t.Context(), `SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan`)))
	f := newFixture(t)
	callEverything(t, f)
	pruneEverything(t, f)
	is.NoErr(f.Ping(t.Context()))
	node := newFixtureWith(t, store.Options{Node: &store.Node{URL: "http://node.test"}})
	callNodes(t, node)
	is.NoErr(node.StartRunner(t.Context(), "run_1", time.Minute))
	node.accept(node.turn())
	is.Equal(len(node.claim("run_1", 1)), 1)
	texts := slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.PreparedTexts(), node.PreparedTexts()))))
	ordertest.Above(is, len(texts), 60) // the statements are collected
	for i, text := range texts {
		if !isQuery.MatchString(text) {
			continue
		}
		name := fmt.Sprint("statement", i)
		line := strings.Join(strings.Fields(text), " ")
		if parameters, ok := prepare(t, c, name, text); ok && !containsAny(line, rare) {
			explain(t, c, name, parameters, line)
		}
	}
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// emptyPostgres returns a connection to a database with empty tables.
func emptyPostgres(t *testing.T) *pgx.Conn {
	t.Helper()
	is := is.New(t)
	url := pgtest.URL(t)
	schema, err := os.ReadFile("../schema.sql")
	is.NoErr(err)
	script, err := postgres.Schema(string(schema))
	is.NoErr(err)
	c, err := pgx.Connect(t.Context(), url)
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(c.Close(context.Background())) })
	is.NoErr(errOf(c.Exec(t.Context(), script)))
	return c
}

// wholeTable matches a plan step that scans a whole table.
var wholeTable = regexp.MustCompile(`Seq Scan on (\w+)`)

// explain reports a plan that scans a whole table.
func explain(t *testing.T, c *pgx.Conn, name string, parameters int, line string) {
	t.Helper()
	arguments := ""
	if parameters > 0 {
		arguments = "(NULL" + strings.Repeat(", NULL", parameters-1) + ")"
	}
	// Use the simple protocol, because EXPLAIN EXECUTE uses prepared statements, but has no
	// parameters.
	rows, err := c.Query(t.Context(), `EXPLAIN EXECUTE `+name+arguments, pgx.QueryExecModeSimpleProtocol)
	is.New(t).NoErr(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	text := strings.Join(plan, "\n")
	few := []string{"runners", "placements", "reservations"}
	if m := wholeTable.FindStringSubmatch(text); m != nil && !slices.Contains(few, m[1]) {
		t.Errorf("%s\n%s", line, text)
	}
}

// prepare prepares the translation of a statement, and returns the number of its parameters.
func prepare(t *testing.T, c *pgx.Conn, name, text string) (parameters int, ok bool) {
	t.Helper()
	translated, err := postgres.Translate(text)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	d, err := c.Prepare(t.Context(), name, translated)
	if err != nil {
		t.Errorf("%v: %s", err, translated)
		return 0, false
	}
	// A time does not fit into an integer of 4 bytes.
	types := []uint32{pgtype.Int8OID, pgtype.TextOID, pgtype.ByteaOID, pgtype.Float8OID, pgtype.BoolOID}
	for i, oid := range d.ParamOIDs {
		if !slices.Contains(types, oid) {
			t.Errorf("the parameter $%d has the type %d: %s", i+1, oid, translated)
		}
	}
	for _, field := range d.Fields {
		if !slices.Contains(append(types, pgtype.Int4OID), field.DataTypeOID) { // of a constant
			t.Errorf("the column %s has the type %d: %s", field.Name, field.DataTypeOID, translated)
		}
	}
	return len(d.ParamOIDs), true
}
