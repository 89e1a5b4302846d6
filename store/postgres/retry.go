package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"journeyman/store/engine"
)

const (
	maxTries       = 100              // of a write
	maxUniqueTries = 3                // of a write that violates a unique index
	maxRetrying    = 10 * time.Second // after this time, a write is not retried
	firstPause     = 2 * time.Millisecond
	longestPause   = 200 * time.Millisecond
	// txTimeout limits one try of a write, because the write locks rows.
	txTimeout = time.Minute
)

// Write runs fn in its own transaction, and retries it after conflicts: see engine.DB. ErrUnknown
// means that the changes may be committed.
func (db *DB) Write(ctx context.Context, mode engine.Mode, fn func(tx engine.Tx) error) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.writes.Done()
	return db.write(ctx, mode, fn)
}

func (db *DB) write(ctx context.Context, mode engine.Mode, fn func(tx engine.Tx) error) error {
	begun := time.Now()
	defer db.stats.Write.UpdateDuration(begun)
	unique := 0
	for try := 1; ; try++ {
		failure, err := db.tryLimited(ctx, mode, try > maxShared, fn)
		if err == nil {
			db.stats.Commits.Add(1)
			db.stats.Operations.Add(1)
			db.stats.Batch.Update(1)
			return nil
		}
		if codeOf(failure) == codeUnique {
			unique++
		}
		if !repeatable(failure) || unique >= maxUniqueTries {
			return err
		}
		if try >= maxTries || time.Since(begun) > maxRetrying {
			return gaveUp(try, failure, err)
		}
		db.stats.Retries.Add(1)
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// maxShared is the number of tries that a serializable write makes beside others. Locking writes can
// change the rows that it needs again and again, so that each try meets a conflict. The next tries run
// alone: see openingAlone.
const maxShared = 4

// gaveUp returns the error of a write that is not retried. After a conflict it is always a
// conflictError, which is unavailable, even if fn returned another error.
func gaveUp(tries int, failure, err error) error {
	if isConflict(codeOf(failure)) {
		return &conflictError{tries, failure}
	}
	return err
}

// repeatable reports whether a failed write may succeed if it runs again. A violation of a unique
// index may be caused by a concurrent write. In the next try, fn will find its row.
func repeatable(err error) bool {
	if e, ok := errors.AsType[*connectionError](err); ok {
		return !e.fresh && !errors.Is(err, ErrUnknown)
	}
	code := codeOf(err)
	return code == codeUnique || code == codeNoStatement || isPlanChanged(err) || isConflict(code)
}

// errTooLong is the cause of a context that ends because one try of a write takes too long.
var errTooLong = errors.New("the server did not answer for too long")

// pause waits for a random time that grows with the number of tries.
func pause(ctx context.Context, tries int) error {
	return engine.Pause(ctx, rand.N(min(firstPause<<min(tries, 10), longestPause)))
}

// tryLimited is try with a limit on concurrent serializable writes.
func (db *DB) tryLimited(ctx context.Context, mode engine.Mode, alone bool,
	fn func(tx engine.Tx) error) (failure, err error) {
	opening := db.opening(mode)
	if alone {
		opening = db.openingAlone(mode)
	}
	if mode != engine.Serializable {
		return db.try(ctx, opening, fn)
	}
	if err := db.limiter.enter(ctx); err != nil {
		return err, err
	}
	failure, err = db.try(ctx, opening, fn)
	db.limiter.leave(isConflict(codeOf(failure)), err == nil)
	return failure, err
}

// try runs fn once, after the statements of opening. It returns the error for the caller, and the failure
// that caused it. The failure is the first error of a statement, even if fn ignored or wrapped it.
func (db *DB) try(ctx context.Context, opening []string, fn func(tx engine.Tx) error) (failure, err error) {
	if err := db.lock.check(); err != nil {
		return err, err
	}
	c, err := db.pool.getForWrite(ctx)
	if err != nil {
		return err, err
	}
	limited, cancel := context.WithTimeoutCause(engine.OfWrite(ctx), db.limit, errTooLong)
	defer cancel()
	t := &tx{session: session{db: db, conn: c, opening: opening, writes: true}, ctx: limited}
	c.trips = 0
	defer func() {
		if t.conn != nil {
			db.stats.RoundTrips.Add(t.conn.trips)
		}
		db.pool.putFromWrite(t.conn)
	}()
	err = engine.Recovered(func() error { return fn(t) })
	if failure = t.err; failure == nil {
		failure = err
	}
	if err == nil {
		err = t.err
	}
	if err == nil {
		err = t.commit()
		failure = err
	}
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(limited), errTooLong) &&
		!errors.Is(err, ErrUnknown) {
		// This deadline is not the caller's.
		err = &connectionError{doing: "write", err: errTooLong}
		failure = err
	}
	switch {
	case err == nil:
		t.Committed()
	case errors.Is(err, ErrUnknown):
		db.settleLater(t) // neither committed nor undone, until the server reports the result
	default:
		t.end(limited)
		t.Undone()
	}
	return failure, err
}
