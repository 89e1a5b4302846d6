package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// change runs the server's SQL on a database that is not open.
func change(t *testing.T, url, text string) {
	t.Helper()
	is := is.New(t)
	ctx := context.Background() // a cleanup also calls this function
	c, err := pgx.Connect(ctx, url)
	is.NoErr(err)
	_, err = c.Exec(ctx, text)
	is.NoErr(err)
	is.NoErr(c.Close(ctx))
}

// TestDifferences opens databases whose tables were changed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ change, says string }{
		"missing table":  {`DROP TABLE notes`, `the table "notes" is missing`},
		"more tables":    {`CREATE TABLE more (id text)`, `the table "more" is unknown`},
		"missing column": {`ALTER TABLE log DROP COLUMN size`, `the column "size" of the table "log" is missing`},
		"more columns":   {`ALTER TABLE log ADD COLUMN more text`, `the column "more" of the table "log" is unknown`},
		"other type":     {`ALTER TABLE log ALTER COLUMN size TYPE numeric`, `"size" of the table "log" is declared`},
		"null":           {`ALTER TABLE log ALTER COLUMN detail DROP NOT NULL`, `"detail" of the table "log" is declared`},
		"collation":      {`ALTER TABLE notes ALTER COLUMN id TYPE text COLLATE "default"`, `"id" of the table "notes"`},
		"unique":         {`ALTER TABLE log DROP CONSTRAINT log_detail_key`, `"log_detail_key" of the table "log" is miss`},
		"more checks":    {`ALTER TABLE log ADD CHECK (detail <> '')`, `"log_detail_check" of the table "log" is unknown`},
		"unique index":   {`CREATE UNIQUE INDEX more ON log (size)`, `the index "more" of the table "log" is unknown`},
		"plain index":    {`CREATE INDEX more ON log (size)`, ""},
		"newer":          {`UPDATE meta SET value = '2' WHERE name = 'version'`, "use a newer program"},
		"no version":     {`DELETE FROM meta`, "did not make"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			url := pgtest.URL(t)
			db, err := postgres.Open(t.Context(), url, schema, nil)
			is.NoErr(err)
			is.NoErr(db.Close())
			change(t, url, tt.change)
			db, err = postgres.Open(t.Context(), url, schema, nil)
			if err == nil {
				is.NoErr(db.Close())
			}
			is.Equal(err != nil, tt.says != "")
			is.True(err == nil || strings.Contains(err.Error(), tt.says)) // the error names the difference
		})
	}
}

// TestOtherTables checks that a database with tables of another program is refused.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	change(t, url, `CREATE TABLE theirs (id text)`)
	_, err := postgres.Open(t.Context(), url, schema, nil)
	is.True(err != nil && strings.Contains(err.Error(), "did not make"))
	change(t, url, `DROP TABLE theirs`)
	openURL(t, url)
}

// TestEncoding checks that a database with another encoding than UTF-8 is refused.
func TestEncoding(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	server := pgtest.URL(t)
	u, err := url.Parse(server)
	is.NoErr(err)
	name := "latin" + strings.TrimPrefix(u.Path, "/test")
	u.Path = "/" + name
	change(t, server, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`)
	t.Cleanup(func() { change(t, server, `DROP DATABASE `+name+` WITH (FORCE)`) })
	_, err = postgres.Open(t.Context(), u.String(), schema, nil)
	is.True(err != nil && strings.Contains(err.Error(), "UTF8"))
}

// TestMigration upgrades a database. A failed upgrade changes nothing.
func TestMigration(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url, schema, nil)
	is.NoErr(err)
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("old")))
	is.NoErr(db.Close())

	const step = `CREATE TABLE more (id TEXT COLLATE "C" NOT NULL PRIMARY KEY); INSERT INTO more SELECT id FROM notes`
	newer := schema + `CREATE TABLE more (id TEXT PRIMARY KEY) STRICT;`
	_, err = postgres.Open(t.Context(), url, newer, []string{step + `; SELECT no_such_column FROM notes`})
	is.True(err != nil && strings.Contains(err.Error(), "bring database to version 2"))

	for range 2 {
		db, err = postgres.Open(t.Context(), url, newer, []string{step})
		is.NoErr(err)
		ids, err := texts(t.Context(), db, `SELECT id FROM more`)
		is.NoErr(err)
		is.Equal(ids, []string{"old"})
		is.NoErr(db.Close())
	}
	_, err = postgres.Open(t.Context(), url, schema, nil)
	is.True(err != nil && strings.Contains(err.Error(), "use a newer program"))
}
