package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// This file upgrades a database that other processes have open. So servers that share a database
// can be replaced one after the other. A migration that only adds does not break older programs:
// they never name the new parts. The row oldest of the table meta contains the oldest version whose
// programs may still use the database. Each process holds a shared lock of its program's version,
// so an upgrade finds the processes that it would break.

// A plan describes the database that a program needs.
type plan struct {
	script     string   // creates the newest version
	migrations []string // see migrate
	oldest     int64    // programs of this version and later ones may use the newest version
}

func (p plan) newest() int64 { return int64(len(p.migrations) + 1) }

// The statements that an upgrade beside other processes needs, besides those of migrate.
const (
	selectOldest = `SELECT value FROM meta WHERE name = 'oldest'`
	updateOldest = `UPDATE meta SET value = '%d' WHERE name = 'oldest'`
	lockVersion  = `SELECT value FROM meta WHERE name = 'version' FOR UPDATE`
)

// versionKey is the number of the lock of the processes whose programs have a version.
const versionKey = `hashtextextended('journeyman ' || current_schema() || ' %d', 0)`

// An olderError means that processes with older programs prevent an upgrade.
type olderError struct{ version, newest, oldest int64 }

func (e *olderError) Error() string {
	return fmt.Sprintf("servers with a program of version %d use the database, and version %d permits none older than %d: "+
		"stop these servers before the first one with this program starts", e.version, e.newest, e.oldest)
}

// upgradeBeside applies the migrations from a version on in one transaction, while other processes
// have the database open. If several processes call it at once, the later ones wait for the first,
// and then find nothing to do. c has no transaction.
func upgradeBeside(ctx context.Context, c *conn, p plan) error {
	// A migration waits for the transactions that use its tables, and later ones wait for the migration.
	for _, text := range []string{`BEGIN`, `SET LOCAL lock_timeout = '3s'`} {
		if err := c.script(ctx, text); err != nil {
			return errors.Join(err, rollback(ctx, c))
		}
	}
	err := func() error {
		version, err := readNumber(ctx, c, lockVersion)
		if err != nil || version >= p.newest() {
			return err
		}
		if version < p.oldest {
			return errChanged // another version than the caller has read
		}
		for v := int64(1); v < p.oldest; v++ {
			var alone bool
			query := `SELECT pg_try_advisory_xact_lock(` + fmt.Sprintf(versionKey, v) + `)`
			if err := c.row(ctx, query, nil, &alone); err != nil {
				return err
			}
			if !alone {
				return &olderError{v, p.newest(), p.oldest}
			}
		}
		scripts := append(slices.Clone(p.migrations[version-1:]), fmt.Sprintf(updateVersion, p.newest()),
			fmt.Sprintf(updateOldest, p.oldest), `COMMIT`)
		for _, text := range scripts {
			if err := c.script(ctx, text); err != nil {
				return fmt.Errorf("bring database to version %d: %w", p.newest(), err)
			}
		}
		return nil
	}()
	return errors.Join(err, rollback(ctx, c)) // after the commit, there is nothing to roll back
}

// errChanged means that another process has changed the version of the database meanwhile.
var errChanged = errors.New("another process has upgraded the database")

// mayTryAgain reports whether a process that opens a shared database tries again after err: other processes
// may end, or have ended their transactions.
func mayTryAgain(err error) bool {
	var older *olderError
	return errors.Is(err, ErrInUse) || errors.Is(err, errChanged) || errors.As(err, &older) ||
		codeOf(err) == codeDeadlock || codeOf(err) == codeLockTimeout
}

// readNumber returns the value of a row of the table meta.
func readNumber(ctx context.Context, c *conn, text string) (n int64, err error) {
	err = c.row(ctx, text, nil, &n)
	return n, err
}
