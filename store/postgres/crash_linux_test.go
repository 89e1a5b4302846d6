package postgres_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/ordertest"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// TestServerCrashesDuringCommit ends the server while a write commits, and starts it again. A server that
// crashes forgets the transactions of which its log on the disk contains nothing, and gives their ids to
// others. A write that returned nil is stored all the same, and one that was undone runs again. Each case
// starts a server of its own: one of them runs without SLOW.
func TestServerCrashesDuringCommit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]crash{
		"undone":                            {slow: true},
		"undone, then a checkpoint":         {checkpoint: true, slow: true},
		"undone, and the id reused":         {reused: true, unknown: true, slow: true},
		"undone, reused, then a checkpoint": {reused: true, checkpoint: true, unknown: true},
		"reused, crash again": {reused: true, checkpoint: true, again: syscall.SIGQUIT, unknown: true,
			slow: true},
		"reused, clean restart": {reused: true, checkpoint: true, again: syscall.SIGINT, unknown: true,
			slow: true},
		"committed":                    {committed: true, unknown: true, slow: true},
		"committed, then a checkpoint": {committed: true, checkpoint: true, unknown: true, slow: true},
	} {
		if tt.slow && !slowly() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			server := crashing(t)
			p, u := throughProxy(t, server.URL())
			db := openURL(t, u)
			is.NoErr(db.Write(t.Context(), engine.Serializable, note("before")))
			id, crashed, ended := tt.write(t.Context(), db, p)
			tt.restart(t, server, <-id)
			close(crashed)
			begun := time.Now()
			p.setDown(false)
			err := <-ended
			ordertest.Below(is, time.Since(begun), settling/2) // no wait for a status that never comes
			is.True(err == nil || postgres.IsUnavailable(err))
			is.Equal(errors.Is(err, postgres.ErrUnknown), tt.unknown)
			stored := len(notes(t, db)) == 2
			is.True(tt.unknown || stored == (err == nil))
			is.True(stored || !tt.committed)
		})
	}
}

// slowly is storetest.Slowly, which tests of this package must not import.
func slowly() bool { return os.Getenv("SLOW") != "" || os.Getenv("LONG") != "" }

const settling = 15 * time.Second

// A crash is an end of the server during the commit of a write.
type crash struct {
	committed  bool           // before the crash
	reused     bool           // another transaction gets the id after the crash
	checkpoint bool           // after that
	unknown    bool           // the result of the write
	again      syscall.Signal // ends the server once more; 0 if nothing does
	slow       bool           // the test runs only with SLOW
}

// write begins a write that cannot reach the server from its commit on. It sends the id of its transaction.
// If the crash comes before the commit, the write waits until crashed is closed.
func (c crash) write(ctx context.Context, db *postgres.DB, p *proxy) (id chan int64, crashed chan struct{},
	ended chan error) {
	id, crashed, ended = make(chan int64, 1), make(chan struct{}), make(chan error, 1)
	runs := 0
	go func() {
		ended <- db.Write(ctx, engine.Serializable, func(tx engine.Tx) error {
			if runs++; runs > 1 {
				return note("a")(tx)
			}
			n, err := number(ctx, tx, `SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)`)
			err = errors.Join(err, note("a")(tx))
			if id <- n; c.committed {
				p.cutForGood("COMMIT")
				return err
			}
			p.refuse()
			<-crashed
			return err
		})
	}()
	return id, crashed, ended
}

// restart ends the server, and starts it again.
func (c crash) restart(t *testing.T, server *pgtest.Cluster, id int64) {
	t.Helper()
	is := is.New(t)
	if c.committed {
		before := connect(t, server.URL())
		eventually(t, "the commit", func() bool {
			var found bool
			err := before.QueryRow(t.Context(), `SELECT EXISTS (SELECT 1 FROM notes WHERE id = 'a')`).Scan(&found)
			return err == nil && found
		})
	}
	server.Stop(syscall.SIGQUIT)
	server.Start()
	after := connect(t, server.URL()) // without the proxy
	for next := int64(0); c.reused && next != id; {
		is.NoErr(after.QueryRow(t.Context(), `SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)`).Scan(&next))
		ordertest.AtMost(is, next, id) // the server has forgotten the transaction
	}
	if c.checkpoint {
		_, err := after.Exec(t.Context(), `CHECKPOINT`)
		is.NoErr(err)
	}
	if c.again != 0 {
		_ = after.Close(t.Context())
		server.Stop(c.again)
		server.Start()
	}
}

// crashing starts a server that writes its log only for a commit.
func crashing(t *testing.T) *pgtest.Cluster {
	t.Helper()
	c := pgtest.NewCluster(t)
	for _, setting := range []string{`wal_writer_delay = '10s'`, `wal_writer_flush_after = '1GB'`, `autovacuum = off`} {
		c.Script(`ALTER SYSTEM SET ` + setting)
	}
	c.Stop(syscall.SIGINT)
	c.Start()
	return c
}
