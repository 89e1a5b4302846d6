package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"journeyman/store/engine"
)

const (
	// lockPatience is the time to wait for the lock of a process that has just ended.
	lockPatience = 2 * time.Second
	// lockCheck is the interval of the checks of the lock's connection.
	lockCheck = 5 * time.Second
	// longestBackoff limits the pause between tries to reconnect, which doubles with each try.
	longestBackoff = 2 * time.Second
)

// lockKey is the number of the lock. It depends on the schema, because each schema is a separate
// database of this program.
const lockKey = `hashtextextended('journeyman ' || current_schema(), 0)`

// A lock prevents other processes from using the database. A shared lock permits others that hold a
// shared one, too. The lock has its own connection, so that the server releases the lock when the
// process ends for any reason.
//
// The process may lose the connection without noticing. Then another process can take the lock, and
// increments the epoch. Each write checks the epoch: see DB.opening.
type lock struct {
	cfg    *config
	shared int64                 // the version of the program, whose lock is held, too; 0: the lock is not shared
	conn   *conn                 // used only by the goroutine watch after start
	lost   atomic.Pointer[error] // the reason why writes are refused; nil while the lock is held
	epoch  int64
	stop   context.CancelFunc
	done   chan struct{} // closed when watch returns
}

// acquire takes the lock of the database. The caller must then call start with the epoch.
// shared is the version of the program if the lock is shared, or 0.
func acquire(ctx context.Context, cfg *config, shared int64) (*lock, error) {
	l := &lock{cfg: cfg, shared: shared}
	until := time.Now().Add(lockPatience)
	for try := 1; ; try++ {
		err := l.take(ctx)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, ErrInUse) || time.Now().After(until) {
			return nil, err
		}
		if err := pause(ctx, try); err != nil {
			return nil, err
		}
	}
}

// take connects and takes the lock. It returns an error if another process holds the lock.
func (l *lock) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := connect(ctx, l.cfg)
	if err != nil {
		return err
	}
	if err := l.takeOn(ctx, c); err != nil {
		c.close()
		return err
	}
	l.conn = c
	return nil
}

func (l *lock) takeOn(ctx context.Context, c *conn) error {
	scope := ``
	if c.unnamed {
		// Behind a proxy, only a transaction keeps its server connection. A transaction that has
		// not changed or read anything does not prevent the server from removing old rows.
		const noLimit = `BEGIN; SELECT set_config(name, '0', true) FROM pg_settings
			WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')`
		if err := c.script(ctx, noLimit); err != nil {
			return fmt.Errorf("begin the transaction of the lock: %w", err)
		}
		scope = `_xact`
	}
	name := `pg_try_advisory` + scope + `_lock` + l.mode()
	text := `SELECT ` + name + `(` + lockKey + `)`
	if l.shared > 0 {
		text += ` AND ` + name + `(` + fmt.Sprintf(versionKey, l.shared) + `)`
	}
	var held *bool
	err := c.row(ctx, text, nil, &held)
	switch {
	case err != nil:
		return fmt.Errorf("lock the database: %w", err)
	case held == nil:
		return errors.New("the schema of the database's search_path does not exist")
	case !*held:
		return ErrInUse
	}
	return nil
}

// mode returns the end of the name of the server's functions for this kind of lock.
func (l *lock) mode() string {
	if l.shared > 0 {
		return `_shared`
	}
	return ``
}

// start watches the lock until close.
func (l *lock) start(epoch int64) {
	l.epoch, l.done = epoch, make(chan struct{})
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	go l.watch(ctx)
}

// close releases the lock.
func (l *lock) close() {
	if l.stop != nil {
		l.stop()
		<-l.done
	}
	if l.conn != nil {
		l.conn.close()
	}
}

// check returns an error if the lock is not held.
func (l *lock) check() error {
	if err := l.lost.Load(); err != nil {
		return *err
	}
	return nil
}

// refuse makes writes fail with err from now on.
func (l *lock) refuse(err error) { l.lost.Store(&err) }

// watch takes the lock again whenever it is lost. It returns when ctx ends.
func (l *lock) watch(ctx context.Context) {
	defer close(l.done)
	for ctx.Err() == nil {
		if l.alive(ctx) {
			continue
		}
		l.refuse(errLockLost)
		l.conn.close()
		l.conn = nil
		if !l.regain(ctx) {
			<-ctx.Done()
		}
	}
}

// alive waits for up to lockCheck, and reports whether the lock's connection is still alive.
func (l *lock) alive(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, lockCheck)
	defer cancel()
	err := l.conn.pg.WaitForNotification(waiting)
	if ctx.Err() != nil {
		return true // close ends the connection
	}
	if err != nil && !pgconn.Timeout(err) {
		return false
	}
	testing, cancel := context.WithTimeout(ctx, lockCheck)
	defer cancel()
	return l.conn.script(testing, `SELECT 1`) == nil || ctx.Err() != nil
}

// regain takes the lock again and reports whether the lock is held. It returns false if ctx has
// ended, or if another process has used the database meanwhile. In the second case this process's
// cached state is wrong, so writes stay refused.
func (l *lock) regain(ctx context.Context) bool {
	for try := 1; ; try++ {
		err := l.retake(ctx)
		switch {
		case err == nil:
			l.lost.Store(nil)
			return true
		case errors.Is(err, errFenced):
			l.refuse(err)
			return false
		case errors.Is(err, ErrInUse):
			l.refuse(fmt.Errorf("%w: %w", errLockLost, err))
		}
		if engine.Pause(ctx, min(50*time.Millisecond<<min(try, 10), longestBackoff)) != nil {
			return false
		}
	}
}

// retake takes the lock unless another process has held it meanwhile.
func (l *lock) retake(ctx context.Context) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	epoch, err := readEpoch(ctx, l.conn)
	if err == nil && epoch != l.epoch {
		err = errFenced
	}
	if err == nil && l.shared > 0 {
		err = l.checkVersion(ctx)
	}
	if err != nil {
		l.conn.close()
		l.conn = nil
	}
	return err
}

// checkVersion returns an error if the tables were upgraded to a version that this program cannot use. No
// lock has prevented that meanwhile.
func (l *lock) checkVersion(ctx context.Context) error {
	oldest, err := readNumber(ctx, l.conn, selectOldest)
	if err == nil && oldest > l.shared {
		err = errFenced
	}
	return err
}
