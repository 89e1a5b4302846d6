package postgres_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// A breaker is a relay that breaks a connection in the middle of a message of the server.
type breaker struct {
	relay
	left atomic.Int64 // messages until the break; there is none below 1
}

// throughBreaker starts a breaker and returns the URL of the database through it.
func throughBreaker(t *testing.T, server string) (*breaker, string) {
	t.Helper()
	b := &breaker{}
	u := b.start(t, server, b.serve)
	q := u.Query()
	q.Set("sslmode", "disable") // the breaker reads the messages
	u.RawQuery = q.Encode()
	return b, u.String()
}

// serve forwards the messages of the server one by one.
func (b *breaker) serve(client, server net.Conn) {
	b.serving.Go(func() {
		_, _ = io.Copy(server, client) // it ends with either connection
		_ = server.Close()
	})
	from := bufio.NewReader(server)
	for {
		head, err := from.Peek(5) // the type and the length of the rest
		if err != nil {
			return
		}
		message := make([]byte, 1+binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(from, message); err != nil {
			return
		}
		breaks := b.left.Add(-1) == 0
		if breaks {
			message = message[:len(message)/2]
		}
		if _, err := client.Write(message); err != nil || breaks {
			return
		}
	}
}

// everyStatement is a write with statements that are sent at once, later, and with the commit.
func everyStatement(ctx context.Context, id string) func(tx engine.Tx) error {
	return func(tx engine.Tx) error {
		if err := tx.ExecLater(`INSERT INTO notes (id) VALUES (?)`, id); err != nil {
			return err
		}
		if _, err := number(ctx, tx, `SELECT COUNT(*) FROM notes`); err != nil {
			return err
		}
		read := func(rows engine.Rows) error { return rows.Err() }
		if err := tx.QueryLater(read, `SELECT id FROM notes LIMIT 2`); err != nil {
			return err
		}
		if _, err := tx.Insert(`INSERT INTO log (detail) VALUES (?)`, id); err != nil {
			return err
		}
		return tx.ExecLater(`INSERT INTO counters (id, n) VALUES (?, 1)`, id)
	}
}

// An operation is a use of a database. A write stores the note id.
type operation func(ctx context.Context, db *postgres.DB, url, id string) error

func operations() map[string]operation {
	return map[string]operation{
		"query": func(ctx context.Context, db *postgres.DB, _, _ string) error {
			_, err := texts(ctx, db, `SELECT id FROM notes LIMIT 2`)
			return err
		},
		"snapshot": func(ctx context.Context, db *postgres.DB, _, _ string) error {
			return db.Snapshot(ctx, func(q engine.Querier) error {
				_, first := texts(ctx, q, `SELECT id FROM notes LIMIT 2`)
				_, second := texts(ctx, q, `SELECT detail FROM log LIMIT 2`)
				if second != nil {
					return second // also if the first has failed
				}
				return first
			})
		},
		"clock": func(ctx context.Context, db *postgres.DB, _, _ string) error {
			_, err := db.Clock(ctx)
			return err
		},
		"inspect": func(ctx context.Context, _ *postgres.DB, url, _ string) error {
			_, err := postgres.Inspect(ctx, url, `SELECT true`)
			return err
		},
		"serializable write": func(ctx context.Context, db *postgres.DB, _, id string) error {
			return db.Write(ctx, engine.Serializable, everyStatement(ctx, id))
		},
		"locking write": func(ctx context.Context, db *postgres.DB, _, id string) error {
			return db.Write(ctx, engine.Locking, everyStatement(ctx, id))
		},
	}
}

// TestEveryBreak breaks a connection in each message of the server that an operation causes. The operation
// succeeds, or its error says that a later try may.
func TestEveryBreak(t *testing.T) {
	t.Parallel()
	for name, do := range operations() {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fresh %v", name, fresh), func(t *testing.T) {
				t.Parallel()
				breakEach(t, do, fresh)
			})
		}
	}
}

// breakEach breaks the first message of the server, then the second one, and so on. If fresh is true, the
// operation has no usable connection when it begins.
func breakEach(t *testing.T, do operation, fresh bool) {
	t.Helper()
	is := is.New(t)
	b, u := throughBreaker(t, pgtest.URL(t))
	db := openURL(t, u)
	db.SetSettling(5 * time.Second)
	broken := 0
	for n, tries := int64(1), 0; ; n, tries = n+1, tries+1 {
		eventually(t, "a write", func() bool {
			return db.Write(t.Context(), engine.Locking, note(fmt.Sprint("before ", tries))) == nil
		})
		if fresh {
			b.cut() // the operation needs new connections
		}
		id := fmt.Sprint("a", tries)
		b.left.Store(n)
		err := do(t.Context(), db, u, id)
		unbroken := b.left.Swap(0) > 0
		if err != nil && !postgres.IsUnavailable(err) {
			t.Fatalf("break %d: %v", n, err)
		}
		stored, failed := number(t.Context(), db, `SELECT COUNT(*) FROM notes WHERE id = ?`, id)
		is.NoErr(failed)
		is.True(stored == 0 || err == nil || errors.Is(err, postgres.ErrUnknown))
		switch {
		case unbroken && err == nil:
			ordertest.Above(is, broken, 2) // the breaks worked
			return
		case unbroken: // the lock of the database was not held again yet
			n--
		default:
			broken++
		}
	}
}

// TestServerErrors makes statements fail with errors of the server. A later try may succeed after those of
// the machine and of the load, but not after those of a statement.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	u := pgtest.URL(t)
	db := openURL(t, u)
	change(t, u, `CREATE FUNCTION broken(code text) RETURNS text LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = code; END $$;
		CREATE FUNCTION broken_later() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = NEW.detail; END $$;
		CREATE CONSTRAINT TRIGGER later AFTER INSERT ON log DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION broken_later()`)
	for code, unavailable := range map[string]bool{
		"08000": true, "08006": true, "08P01": true,
		"25006": true,
		"53000": true, "53100": true, "53200": true, "53300": true,
		"55P03": true,
		"57014": true, "57P01": true, "57P02": true, "57P03": true,
		"58000": true, "58030": true, "58P01": true,
		"22012": false, "23503": false, "42501": false, "XX001": false,
	} {
		fails := func(q engine.Querier) error {
			_, err := q.Query(t.Context(), `SELECT broken(?)`, code)
			return err
		}
		for name, err := range map[string]error{
			"query":    fails(db),
			"snapshot": db.Snapshot(t.Context(), func(q engine.Querier) error { return fails(q) }),
			"write": db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
				return fails(tx)
			}),
			"later": db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
				return errors.Join(tx.ExecLater(`SELECT broken(?)`, code), note("a")(tx))
			}),
			"with the commit": db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error {
				return errors.Join(note("a")(tx), tx.ExecLater(`SELECT broken(?)`, code))
			}),
			"in the commit": db.Write(t.Context(), engine.Locking, exec(`INSERT INTO log (detail) VALUES (?)`, code)),
		} {
			if err == nil || postgres.IsUnavailable(err) != unavailable {
				t.Errorf("%s with the code %s: %v", name, code, err)
			}
		}
	}
}

// TestStatementsAreOutOfDate changes the columns of a statement that connections have prepared. Reads and
// writes prepare it again.
func TestStatementsAreOutOfDate(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	u := pgtest.URL(t)
	db := openURL(t, u)
	change(t, u, `CREATE VIEW v AS SELECT 1 AS a`)
	ask := func(q engine.Querier) error {
		_, err := q.Query(t.Context(), `SELECT * FROM v`)
		return err
	}
	for name, do := range map[string]func() error{
		"query":    func() error { return ask(db) },
		"snapshot": func() error { return db.Snapshot(t.Context(), ask) },
		"write": func() error {
			return db.Write(t.Context(), engine.Locking, func(tx engine.Tx) error { return ask(tx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.NoErr(do())
			change(t, u, `CREATE OR REPLACE VIEW v AS SELECT 1 AS a, '`+name+`' AS `+name)
			is.NoErr(do())
			change(t, u, `DROP VIEW v; CREATE VIEW v AS SELECT 1 AS a`)
		})
	}
}
