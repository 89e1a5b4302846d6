package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/postgres/pgtest"
)

// A relay accepts connections of clients, and opens one to the server for each.
type relay struct {
	serving sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

// start returns the URL of a database through the relay. It ends with the test. serve passes the data of
// one client on.
func (r *relay) start(t *testing.T, server string, serve func(client, server net.Conn)) *url.URL {
	t.Helper()
	is := is.New(t)
	u, err := url.Parse(server)
	is.NoErr(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	address := u.Host
	r.serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.serving.Go(func() { r.connect(client, address, serve) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
		r.serving.Wait()
	})
	u.Host = listener.Addr().String()
	return u
}

// connect serves one client.
func (r *relay) connect(client net.Conn, address string, serve func(client, server net.Conn)) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	r.mu.Unlock()
	serve(client, server)
}

// cut breaks all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close() // many have ended already
	}
	r.conns = nil
}

// A proxy forwards data between clients and the server. It can break connections.
type proxy struct {
	relay
	on   []byte // guarded by mu; bytes that break the connection of their client
	late bool   // guarded by mu; these bytes still reach the server
	down bool   // guarded by mu; new connections are closed at once
	last bool   // guarded by mu; down is set when these bytes arrive
}

// throughProxy starts a proxy and returns the URL of the database through it.
func throughProxy(t *testing.T, server string) (*proxy, string) {
	t.Helper()
	p := &proxy{}
	return p, p.start(t, server, p.serve).String()
}

func (p *proxy) serve(client, server net.Conn) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return
	}
	mute, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		answer(client, server, mute)
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		cut, late := p.cuts(buffer[:n])
		if err != nil || cut && !late {
			return
		}
		if cut {
			close(mute)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if cut {
			<-answered // the server has processed the bytes
			return
		}
	}
}

// answer forwards data from the server to the client. Once mute is closed, answer discards data and
// returns.
func answer(client, server net.Conn, mute chan struct{}) {
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-mute:
			return
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cuts reports whether the bytes break their connection, and whether they still reach the server.
func (p *proxy) cuts(b []byte) (cut, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cut = p.on != nil && bytes.Contains(b, p.on); cut {
		p.on = nil
		p.down = p.down || p.last
	}
	return cut, p.late
}

// cutOn breaks the connection on which a client next sends text.
func (p *proxy) cutOn(text string, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.late = []byte(text), late
}

// cutForGood is cutOn, and also breaks all new connections from then on.
func (p *proxy) cutForGood(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.late, p.last = []byte(text), true, true
}

// refuse makes the server unreachable for new connections.
func (p *proxy) refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
}

// setDown makes the server unreachable, or reachable again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cut()
	}
}

// TestConnectionBreaks breaks a connection before the commit. The write runs again.
func TestConnectionBreaks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, u := throughProxy(t, pgtest.URL(t))
	db := openURL(t, u)
	tries := 0
	is.NoErr(db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		if err := note("a")(tx); err != nil {
			return err
		}
		if tries++; tries == 1 {
			p.cutOn("INSERT INTO notes", false)
		}
		_, err := tx.Exec(`INSERT INTO notes (id) SELECT 'b'`)
		return err
	}))
	is.Equal(tries, 2)
	is.Equal(notes(t, db), []string{"a", "b"})
}

// TestConnectionBreaksDuringCommit breaks a connection at the commit, before or after the server receives it. The
// write asks the server for the result, and runs again only if the transaction was undone.
func TestConnectionBreaksDuringCommit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late   bool // the server receives the commit
		events []string
	}{
		"before": {false, []string{"run", "undone", "run", "committed"}},
		"after":  {true, []string{"run", "committed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p, u := throughProxy(t, pgtest.URL(t))
			db := openURL(t, u)
			var events []string
			err := db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
				tx.OnCommit(func() { events = append(events, "committed") })
				tx.OnUndo(func() { events = append(events, "undone") })
				if events = append(events, "run"); len(events) == 1 {
					p.cutOn("COMMIT", tt.late)
				}
				if err := note("a")(tx); err != nil {
					return err
				}
				return tx.ExecLater(`INSERT INTO notes (id) VALUES ('with the commit')`)
			})
			is.NoErr(err)
			is.Equal(events, tt.events)
			is.Equal(notes(t, db), []string{"a", "with the commit"})
		})
	}
}

// TestCommitIsUnknown breaks all connections at the commit. The result of the write is unknown, so
// the write does not run again.
func TestCommitIsUnknown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, u := throughProxy(t, pgtest.URL(t))
	db := openURL(t, u)
	db.SetSettling(100 * time.Millisecond)
	runs := 0
	var committed, undone atomic.Bool
	err := db.Write(t.Context(), engine.Serializable, func(tx engine.Tx) error {
		runs++
		tx.OnCommit(func() { committed.Store(true) })
		tx.OnUndo(func() { undone.Store(true) })
		p.cutForGood("COMMIT")
		return note("a")(tx)
	})
	is.True(errors.Is(err, postgres.ErrUnknown))
	is.True(postgres.IsUnavailable(err))
	is.Equal(runs, 1)
	is.True(!committed.Load() && !undone.Load()) // the result is still unknown

	p.setDown(false)
	eventually(t, "the end of the write", func() bool { return committed.Load() || undone.Load() })
	is.Equal(committed.Load(), slices.Equal(notes(t, db), []string{"a"}))
	is.True(committed.Load() != undone.Load())
}

// TestServerRestarts breaks all connections while they are idle. The next queries and writes open
// new connections after the lock is held again.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p, u := throughProxy(t, pgtest.URL(t))
	db := openURL(t, u)
	is.NoErr(db.Write(t.Context(), engine.Serializable, note("a")))
	p.setDown(true)
	_, err := db.Query(t.Context(), `SELECT id FROM notes`)
	is.True(postgres.IsUnavailable(err))
	is.True(postgres.IsUnavailable(db.Write(t.Context(), engine.Serializable, note("b"))))
	is.True(postgres.IsUnavailable(db.Snapshot(t.Context(), func(q engine.Querier) error {
		_, err := q.Query(t.Context(), `SELECT id FROM notes`)
		return err
	})))
	p.setDown(false)
	is.Equal(notes(t, db), []string{"a"})
	eventually(t, "a write to succeed", func() bool {
		return db.Write(t.Context(), engine.Serializable, note("c")) == nil
	})
	is.NoErr(db.Snapshot(t.Context(), func(q engine.Querier) error {
		_, err := q.Query(t.Context(), `SELECT id FROM notes`)
		return err
	}))
	is.Equal(notes(t, db), []string{"a", "c"})
}

// TestIdleConnectionsEnd makes the server end idle connections, as in a restart. The next query
// opens a new connection.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	db := open(t)
	for _, use := range []func() error{
		func() error { return idle(t.Context(), db, 5) },
		func() error {
			_, err := texts(t.Context(), db, `SELECT id FROM notes`)
			return err
		},
	} {
		is.NoErr(idle(t.Context(), db, 5))
		is.NoErr(db.Snapshot(t.Context(), func(q engine.Querier) error {
			_, err := number(t.Context(), q, `SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			if err != nil {
				return err
			}
			return use() // only the connection of the snapshot is alive
		}))
	}
	eventually(t, "the lock to be held again", func() bool {
		return db.Write(t.Context(), engine.Serializable, note("a")) == nil
	})
	is.Equal(notes(t, db), []string{"a"})
}

// idle runs n queries in parallel, which opens n connections.
func idle(ctx context.Context, db *postgres.DB, n int) error {
	failed := make(chan error, n)
	var together sync.WaitGroup
	together.Add(n)
	for range n {
		go func() {
			failed <- db.Snapshot(ctx, func(q engine.Querier) error {
				_, err := q.Query(ctx, `SELECT 1`)
				together.Done()
				together.Wait()
				return err
			})
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-failed)
	}
	return err
}
