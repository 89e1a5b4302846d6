package pgtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/postgres/pgtest"
)

func TestURLIsOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	first, second := pgtest.URL(t), pgtest.URL(t)
	is.True(first != second)
	for _, url := range []string{first, second} {
		c, err := pgx.Connect(t.Context(), url)
		is.NoErr(err)
		_, err = c.Exec(t.Context(), `CREATE TABLE t (a TEXT)`) // not in the other database
		is.NoErr(err)
		is.NoErr(c.Close(t.Context()))
	}
}

func TestDatabasesAreDropped(t *testing.T) {
	is := is.New(t)
	var url string
	t.Run("a test", func(t *testing.T) {
		url = pgtest.URL(t)
		c, err := pgx.Connect(t.Context(), url)
		is.NoErr(err)
		is.NoErr(c.Ping(t.Context())) // the cleanup does not close it
	})
	if url == "" {
		t.Skip("there is no server")
	}
	_, err := pgx.Connect(context.Background(), url)
	is.True(err != nil)
}

func TestFarAddsTimeToEachRoundTrip(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c, err := pgx.Connect(t.Context(), pgtest.Far(t, pgtest.URL(t), 40*time.Millisecond))
	is.NoErr(err)
	begun := time.Now()
	is.NoErr(c.Ping(t.Context()))
	ordertest.AtLeast(is, time.Since(begun), 40*time.Millisecond)
	var batch pgx.Batch
	for range 100 {
		batch.Queue(`SELECT 1`)
	}
	begun = time.Now()
	is.NoErr(c.SendBatch(t.Context(), &batch).Close())
	ordertest.Below(is, time.Since(begun), 100*40*time.Millisecond) // no wait between statements
	is.NoErr(c.Close(t.Context()))
}
