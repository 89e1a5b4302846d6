package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/matryer/is"

	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestPostgresKnowsEveryText has PostgreSQL prepare the translation of each statement that the store
// runs: that has no error, and the type of each parameter is one that a column may have.
func TestPostgresKnowsEveryText(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t) // before the work: it may skip the test
	schema, err := os.ReadFile("../schema.sql")
	is.NoErr(err)
	script, err := postgres.Schema(string(schema))
	is.NoErr(err)
	c, err := pgx.Connect(t.Context(), url)
	is.NoErr(err)
	defer func() { is.NoErr(c.Close(context.Background())) }()
	_, err = c.Exec(t.Context(), script)
	is.NoErr(err)

	f := newFixture(t)
	callEverything(t, f)
	pruneEverything(t, f)
	is.NoErr(f.Ping(t.Context()))
	texts := f.PreparedTexts()
	is.True(len(texts) > 60) // they are collected
	for i, text := range texts {
		if isQuery.MatchString(text) {
			prepare(t, c, fmt.Sprint("statement", i), text)
		}
	}
}

func prepare(t *testing.T, c *pgx.Conn, name, text string) {
	t.Helper()
	translated, err := postgres.Translate(text)
	if err != nil {
		t.Error(err)
		return
	}
	d, err := c.Prepare(t.Context(), name, translated)
	if err != nil {
		t.Errorf("%v: %s", err, translated)
		return
	}
	// An integer of 4 bytes would refuse a time.
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
}
